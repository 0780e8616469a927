"""Conformance cases of the elementwise functions, complex numbers and zero-derivative functions, each on a domain
where it is smooth."""

import operator
from typing import Any

import numpy as np
from tests.primitives.case import Case

from pullback.primitives.elementwise.operators import OPERATORS
from pullback.primitives.elementwise.sinc_and_bessel import i1
from pullback.primitives.shared.masked_arithmetic import masked_divide, masked_multiply
from pullback.primitives.shared.numpy_names import available

_rng = np.random.default_rng(11)
ANY = np.array([[-1.3, -0.4, 0.35], [0.6, 1.7, -2.2]])
POSITIVE = np.array([[0.2, 0.7, 1.3], [1.9, 3.1, 0.06]])
UNIT = np.array([[-0.85, -0.4, 0.15], [0.3, 0.55, 0.9]])
ABOVE = np.array([[1.1, 1.5, 2.0], [3.3, 7.0, 1.02]])
ANGLES = np.array([[-1.2, -0.4, 0.35], [0.6, 1.1, -0.9]])
PLANE = ANY + 1j * np.array([[0.4, -0.8, 1.1], [-0.3, 0.5, 0.9]])
OTHER = np.array([[0.7, -1.1, 2.3], [-0.9, 0.8, 1.4]])
COLUMN, LINE = np.array([[0.7], [-1.6], [2.3]]), np.array([1.2, -0.45, 0.9, 2.6])
EMPTY, NUMBER = np.zeros((0, 3)), np.array(0.6)
STRIDED = np.asfortranarray(_rng.uniform(0.1, 0.9, size=(4, 6)))[
    ::-1, ::2
]  # Fortran order, a negative stride, and gaps
BOTH = ("float32", "float64")

UNARY: tuple[tuple[Any, Any], ...] = (
    *(
        (f, ANY)
        for f in (
            np.absolute,
            np.fabs,
            np.negative,
            np.positive,
            np.conjugate,
            np.exp,
            np.exp2,
            np.expm1,
            np.square,
            np.cbrt,
        )
    ),
    *((f, ANY) for f in (np.reciprocal, np.sin, np.cos, np.sinh, np.cosh, np.tanh, np.arctan, np.arcsinh)),
    *((f, ANY) for f in (np.deg2rad, np.radians, np.rad2deg, np.degrees, np.sinc, np.i0, i1)),
    *((f, POSITIVE) for f in (np.sqrt, np.log, np.log2, np.log10, np.log1p)),
    *((f, UNIT) for f in (np.arcsin, np.arccos, np.arctanh)),
    (np.arccosh, ABOVE),
    *((f, ANY) for f in OPERATORS if len(f.operands) == 1),
    (np.tan, ANGLES),
)
HOLOMORPHIC = (
    *(
        np.exp,
        np.exp2,
        np.expm1,
        np.log,
        np.log2,
        np.log10,
        np.log1p,
        np.sqrt,
        np.square,
        np.reciprocal,
        np.negative,
        np.positive,
    ),
    *(
        np.sin,
        np.cos,
        np.tan,
        np.sinh,
        np.cosh,
        np.tanh,
        np.arcsin,
        np.arccos,
        np.arctan,
        np.arcsinh,
        np.arccosh,
        np.arctanh,
        np.sinc,
    ),
)


def name_of(function: Any) -> str:
    """The name under which a function is registered."""
    return str(getattr(function, "__name__", "") or function.name)


def _unary() -> tuple[Case, ...]:
    rows = [Case(name_of(f), f, (x,), (name_of(f),), dtypes=BOTH) for f, x in UNARY]
    rows += [Case(f"{name_of(f)} complex", f, (PLANE,), (name_of(f),), dtypes=("complex128",)) for f in HOLOMORPHIC]
    for f in (np.sin, np.exp, np.sqrt, np.log, np.absolute, np.sinc):
        name = name_of(f)
        rows += [
            Case(f"{name} 0-d", f, (NUMBER,), (name,), dtypes=BOTH),
            Case(f"{name} of nothing", f, (EMPTY,), (name,)),
            Case(f"{name} strided", f, (STRIDED,), (name,)),
        ]
    for f in (
        np.exp,
        np.exp2,
        np.sqrt,
        np.cbrt,
        np.reciprocal,
        np.tan,
        np.tanh,
    ):  # x is held already: the other alternative
        rows.append(
            Case(f"{name_of(f)} of a held operand", lambda x, f=f: (x * x) * f(x), (UNIT + 1.1,), (name_of(f),))
        )
    return tuple(rows)


_SMOOTH_PAIRS: tuple[tuple[Any, Any, Any], ...] = (
    *(
        (f, ANY, OTHER)
        for f in (np.add, np.subtract, np.multiply, np.divide, np.logaddexp, np.logaddexp2, np.arctan2, np.hypot)
    ),
    *(
        (f, ANY, OTHER)
        for f in (np.maximum, np.minimum, np.fmax, np.fmin, np.copysign, np.remainder, np.fmod, np.heaviside)
    ),
    *((f, POSITIVE, OTHER) for f in (np.power, np.float_power)),
    *((f, POSITIVE, OTHER) for f in OPERATORS if len(f.operands) == 2),
    *((f, ANY, OTHER) for f in (masked_multiply, masked_divide)),
)


def _binary() -> tuple[Case, ...]:
    rows = []
    for f, x, y in _SMOOTH_PAIRS:
        name, column = name_of(f), COLUMN if x is ANY else np.abs(COLUMN)
        rows += [
            Case(name, f, (x, y), (name,), dtypes=BOTH),
            Case(f"{name} of itself", lambda x, f=f: f(x, 1.5 * x), (POSITIVE,), (name,)),
            Case(f"{name} with a number", lambda x, f=f: f(x, 1.7), (POSITIVE,), (name,), dtypes=BOTH),
            Case(f"{name} of a number", lambda y, f=f: f(1.7, y), (OTHER,), (name,), dtypes=BOTH),
            Case(f"{name} of constants", lambda x, f=f, y=y: f(x, y) + f(np.abs(y), x), (POSITIVE,), (name,)),
        ]
        if not name.startswith("masked"):  # their cotangent has the shape of the result
            rows += [
                Case(f"{name} broadcast", f, (column, LINE), (name,)),
                Case(f"{name} 0-d with a line", f, (NUMBER, LINE), (name,)),
                Case(f"{name} of nothing", f, (EMPTY, LINE[:3]), (name,)),
            ]
    for f in (np.add, np.subtract, np.multiply, np.divide, np.power, np.float_power, masked_multiply, masked_divide):
        rows.append(Case(f"{name_of(f)} complex", f, (PLANE, PLANE[::-1] + 0.3), (name_of(f),), dtypes=("complex128",)))
    rows += [
        Case("multiply real by complex", np.multiply, (ANY, PLANE), ("multiply",)),
        Case("divide complex by real", np.divide, (PLANE, OTHER), ("divide",)),
        Case("subtract, mixed precision", lambda x: x - 2 * OTHER, (ANY,), ("subtract",), dtypes=("float32",)),
    ]
    return tuple(rows)


def _exponents() -> tuple[Case, ...]:
    """x ** n at every kind of n, and x at 0 where it is smooth there."""
    at_zero, whole = np.array([0.0, 1.3, -0.7]), np.array([3, 1, 2])
    exponents = (0, 1, 2, 3, -1, -2, 0.0, 2.0, np.int64(3))
    rows = [
        Case(f"power {n!r}", lambda x, n=n: x**n, (ANY,), ("power", "operator_power"), dtypes=BOTH) for n in exponents
    ]
    rows += [
        Case("power 0.5", lambda x: x**0.5, (POSITIVE,), ("power", "operator_power"), dtypes=BOTH),
        Case("power at 0", lambda x: np.power(x, 2) + x**3, (at_zero,), ("power",)),
        Case(
            "power, array of exponents at 0",
            lambda x: np.power(x, np.array([[0.0], [2.0], [3.0]])),
            (at_zero,),
            ("power",),
        ),
        Case("power, integer exponents", lambda x: x ** np.array([0, 2, 3], np.uint8), (ANY,), ("power",), dtypes=BOTH),
        Case("power of an integer", lambda y: 2**y + whole**y, (ANY,), ("power", "operator_power")),
        *(
            Case(
                f"{name_of(f)} backwards in place",
                lambda x, y, f=f: f((x * 1.0)[::-1], y),
                (POSITIVE, OTHER),
                (f"in_place_{name}",),
            )
            for f, name in ((operator.imul, "multiply"), (operator.ipow, "power"))
        ),
        Case("power in place", lambda x: operator.ipow(x * 1.0, 2), (ANY,), ("power", "operator_power")),
    ]
    return tuple(rows)


def _kinks() -> tuple[Case, ...]:
    """Points at which the derivative jumps, is infinite, or the formula divides 0 by 0."""
    zeros, ones = np.array([0.0, -0.0, 1.0]), np.array([1.0, -1.0, 0.5])
    far = (np.array([-np.inf, np.inf, 1e4]), np.array([-np.inf, 0.0, -1e4]))
    tied = (np.array([1.0, 2.0, np.nan, 3.0, np.nan]), np.array([1.0, 3.0, 0.0, np.nan, np.nan]))
    at_0 = {np.absolute: "kink", np.fabs: "kink", np.sqrt: "pole", np.cbrt: "pole", np.sinc: "", np.i0: ""}
    rows = [Case(f"{f.__name__} at 0", f, (zeros,), (f.__name__,), rough=word) for f, word in at_0.items()]
    rows += [Case(f"{f.__name__} at 1", f, (ones,), (f.__name__,), rough="pole") for f in (np.arcsin, np.arccos)]
    rows += [
        Case(f"{f.__name__} ties", f, tied, (f.__name__,), rough="tie")
        for f in (np.maximum, np.minimum, np.fmax, np.fmin)
    ]
    origin = (zeros, zeros[::-1] - 1)
    rows += [
        Case(f"{f.__name__} at the origin", f, origin, (f.__name__,), rough="kink") for f in (np.hypot, np.arctan2)
    ]
    rows += [
        Case("absolute complex at 0", np.absolute, (np.array([0j, 3 + 4j]),), ("absolute",), rough="kink"),
        Case("logaddexp at infinities", np.logaddexp, far, ("logaddexp",), rough="nan"),
        Case("heaviside at 0", np.heaviside, (zeros, ones), ("heaviside",), rough="jump"),
    ]
    return tuple(rows)


def _several_outputs() -> tuple[Case, ...]:
    whole = np.array([3, -2, 0, 5, 1, -4]).reshape(2, 3)
    return (
        Case("modf", np.modf, (ANY,), ("modf",), dtypes=BOTH),
        Case("modf, fraction only", lambda x: np.modf(x)[0] * x, (ANY,), ("modf",)),
        Case("modf, whole part only", lambda x: np.modf(x)[1] * x, (ANY,), ("modf",)),
        Case("frexp", lambda x: np.frexp(x)[0], (ANY,), ("frexp",), dtypes=BOTH),
        Case("divmod", np.divmod, (ANY, OTHER), ("divmod",), dtypes=BOTH),
        Case(
            "divmod, one output", lambda x, y: np.divmod(x, y)[0] * x + np.divmod(x, y)[1], (COLUMN, LINE), ("divmod",)
        ),
        Case("ldexp", lambda x: np.ldexp(x, whole), (ANY,), ("ldexp",), dtypes=BOTH),
        Case("ldexp broadcast", lambda x: np.ldexp(x, whole[:, :1]), (ANY[:1],), ("ldexp",)),
    )


def _complexes() -> tuple[Case, ...]:
    rows = []
    for f in (np.absolute, np.conjugate, np.real, np.imag, np.angle, np.sign):
        names = ("sign", "complex_sign") if f is np.sign else (f.__name__,)
        rows += [
            Case(f"{f.__name__} complex", f, (PLANE,), names, dtypes=("complex128",)),
            Case(f"{f.__name__} of a number z", f, (np.array(0.3 - 0.8j),), names, dtypes=("complex64", "complex128")),
        ]
    return (
        *rows,
        Case("real of a real", lambda x: x * np.real(x), (ANY,), ("numpy.real",)),
        Case("imag of a real", lambda x: x + np.imag(x), (ANY,), ("imag",)),
        Case("x.real, x.imag", lambda z: z.real * z.imag**2, (PLANE,), ("real", "imag")),
        Case("x.conj()", lambda z: z * z.conj() + z.conjugate(), (PLANE,), ("conj", "conjugate")),
        Case("angle in degrees", lambda z: np.angle(z, deg=True), (PLANE,), ("angle",)),
        Case("angle of a real", lambda x: x * np.angle(x), (ANY,), ("angle",)),
        Case("real_if_close", lambda x: np.real_if_close(x * (1 + 0j)), (ANY,), ("real_if_close",)),
        Case("real_if_close, far", np.real_if_close, (PLANE,), ("real_if_close",)),
        Case("sign of a real", lambda x: x * np.sign(x), (ANY,), ("sign",)),
    )


_ROUNDING = (np.ceil, np.floor, np.trunc, np.rint, *available("fix"), np.round, np.around, np.spacing)
_TESTS = (
    np.signbit,
    np.isfinite,
    np.isinf,
    np.isnan,
    np.isneginf,
    np.isposinf,
    np.isreal,
    np.iscomplex,
    np.logical_not,
    np.all,
    np.any,
)
_TESTS_OF_TWO = (
    *(
        np.equal,
        np.not_equal,
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.logical_and,
        np.logical_or,
        np.logical_xor,
    ),
    *(
        np.allclose,
        np.isclose,
        np.array_equal,
        np.array_equiv,
        np.isin,
        np.floor_divide,
        np.may_share_memory,
        np.shares_memory,
    ),
)
_COUNTS = (
    *(np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.argsort, np.flatnonzero, np.count_nonzero, np.ndim, np.size),
    *(np.iscomplexobj, np.isrealobj),
)


def _zero() -> tuple[Case, ...]:
    """Each as a constant factor or index of something that does depend on x."""
    line = LINE
    rows = [Case(f.__name__, lambda x, f=f: x * f(x), (ANY,), (f.__name__,)) for f in (*_ROUNDING, *_TESTS)]
    rows += [
        Case(f.__name__, lambda x, f=f: x * f(x, OTHER) + f(OTHER, x), (ANY,), (f.__name__,)) for f in _TESTS_OF_TWO
    ]
    rows += [Case(f.__name__, lambda x, f=f: x * f(x), (line,), (f.__name__,)) for f in _COUNTS]
    rows += [
        Case("argpartition", lambda x: x * np.argpartition(x, 1), (line,), ("argpartition",)),
        Case("nextafter", lambda x: x * np.nextafter(x, 9.0), (ANY,), ("nextafter",), rough="rounding"),
        Case("lexsort", lambda x: x[np.lexsort((x, -x))], (line,), ("lexsort",)),
        Case("searchsorted", lambda x: x * np.searchsorted(np.arange(4.0), x), (line,), ("searchsorted",)),
        Case("digitize", lambda x: x * np.digitize(x, np.arange(4.0)), (line,), ("digitize",)),
        Case("nonzero", lambda x: x[np.nonzero(x)], (line,), ("nonzero",)),
        Case("argwhere", lambda x: x * len(np.argwhere(x)), (line,), ("argwhere",)),
        Case("shape", lambda x: x * np.shape(x)[0], (ANY,), ("shape",)),
        Case(
            "result_type", lambda x: x * np.zeros(1, np.result_type(x, np.float32)).itemsize, (ANY,), ("result_type",)
        ),
        Case("common_type", lambda x: x * np.common_type(x, x)(2), (ANY,), ("common_type",)),
        Case("min_scalar_type", lambda x: x * np.min_scalar_type(x).itemsize, (ANY,), ("min_scalar_type",)),
        Case("can_cast", lambda x: x * np.can_cast(x.dtype, "f8"), (ANY,), ("can_cast",)),
        Case("tril_indices_from", lambda x: x[np.tril_indices_from(x)], (ANY,), ("tril_indices_from",)),
        Case("triu_indices_from", lambda x: x[np.triu_indices_from(x)], (ANY,), ("triu_indices_from",)),
        Case("diag_indices_from", lambda x: x[np.diag_indices_from(x)], (ANY[:, :2],), ("diag_indices_from",)),
        Case("array_repr", lambda x: x * (len(np.array_repr(x)) > 20), (ANY,), ("array_repr",)),
        Case("array_str", lambda x: x * (len(np.array_str(x)) > 20), (ANY,), ("array_str",)),
        Case("array2string", lambda x: x * (len(np.array2string(x)) > 20), (ANY,), ("array2string",)),
        Case("ix_", lambda x: x[np.ix_(x[:, 0] > 0, [0, 2])], (ANY,), ("getitem",)),
        Case("einsum_path", lambda x: x * len(np.einsum_path("ij,ij->", x, x)), (ANY,), ("einsum_path",)),
    ]
    return tuple(rows)


CASES: tuple[Case, ...] = (
    *_unary(),
    *_binary(),
    *_exponents(),
    *_kinks(),
    *_several_outputs(),
    *_complexes(),
    *_zero(),
)
