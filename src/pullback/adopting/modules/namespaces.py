"""What adopted code finds where it imports NumPy, ``math``, ``cmath``, ``functools`` or a module for which a plugin
brings a namespace: modules with the same names, of which some mean something else on tracers."""

import cmath
import functools
import math
import sys
from collections.abc import Callable, Mapping
from functools import cache, partial, reduce, wraps
from importlib import import_module
from operator import mul
from types import ModuleType
from typing import Any, Final
from warnings import catch_warnings, simplefilter

import numpy as np

from pullback.adopting.kinds import dispatching, iterators, matrices, memoised
from pullback.adopting.kinds.number_functions import double, further_names
from pullback.adopting.modules import numpy_calls
from pullback.adopting.modules.arrays_as_handles import alone, note_call, note_joined, owned
from pullback.adopting.modules.compiling import numba_class_names, numba_names
from pullback.adopting.modules.random_numbers import random_namespace_names
from pullback.adopting.modules.structured import Fields
from pullback.memory.in_force import LIVE, innermost
from pullback.primitives.shaping.reshaping import python_number
from pullback.primitives.shaping.windows import as_strided
from pullback.recording.handles import Handle, value
from pullback.recording.recorder import LISTS
from pullback.rules.declaration import primitive
from pullback.words import plugins
from pullback.words.errors import PluginError
from pullback.words.specs import INEXACT

CREATORS: Final = tuple(
    "zeros ones empty eye identity tri linspace logspace geomspace fromfunction frombuffer fromstring "
    "loadtxt genfromtxt fromfile load zeros_like ones_like empty_like copy arange full full_like array asarray "
    "asanyarray ascontiguousarray asfortranarray asarray_chkfinite require fromiter".split()
)
"""NumPy functions that make arrays."""
_UFUNCS: Final = {
    **{name: name for name in "sin cos tan exp expm1 log2 log10 log1p sqrt cbrt sinh cosh tanh fabs exp2".split()},
    **{f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh tan2".split()},
    **{name: name for name in "copysign degrees radians floor ceil trunc isnan isinf isfinite fmod".split()},
    "pow": "power",
    "phase": "angle",
    "log": "log",
}
"""Functions of ``math`` and ``cmath``, and the NumPy functions that mean them on tracers."""


class Namespace(ModuleType):
    """A module that answers for another one: names of its own, and all others of that."""

    def __init__(
        self, original: Any, names: Mapping[str, Any], inner: Callable[[str], Any] = lambda name: None
    ) -> None:
        super().__init__(original.__name__, original.__doc__)
        self.__dict__.update({
            name: given for name, given in vars(original).items() if name not in ("__doc__", "__getattr__")
        })
        self.__dict__.update(names)
        self.__dict__["_pullback_original"], self.__dict__["_pullback_inner"] = original, inner

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_pullback"):
            raise AttributeError(name)
        found = self.__dict__["_pullback_inner"](name)
        return getattr(self.__dict__["_pullback_original"], name) if found is None else found


def _bound_as(plain: Any, call: Callable[..., Any]) -> Callable[..., Any]:
    """``call`` in the place of ``plain``: a function written in C stays what it is as an attribute of a class, where
    one of Python's would become a method."""
    return call if hasattr(plain, "__get__") else staticmethod(call)


def _creating(name: str) -> Callable[..., Any]:
    """A NumPy function whose result is a buffer, where it is new and a trace is under way."""
    plain: Any = getattr(np, name)
    traced: Any = getattr(numpy_calls, name, plain)
    blank, whole = name == "empty", name == "array" or name.startswith("as")

    @wraps(plain)
    def create(*args: Any, **kwargs: Any) -> Any:
        if not LIVE:
            return plain(*args, **kwargs)
        if whole and len(args) == 1 and not kwargs and type(args[0]) is Fields:
            return args[0].copy() if name == "array" else args[0]
        made = traced(*args, **kwargs)
        if isinstance(made, Handle) and args and type(args[0]) in LISTS:
            note_joined(args[0])
        return owned(made, blank=blank) if type(made) is np.ndarray and alone(made) and not _given(made, args) else made

    return _bound_as(plain, create)


def _given(made: Any, args: tuple[Any, ...]) -> bool:
    return any(made is given for given in args) or (made.base is not None and any(made.base is a for a in args))


def _asking(name: str) -> Any:
    """A NumPy function that does not ask its arguments: for tracers only while a trace is under way."""
    plain, traced = getattr(np, name), getattr(numpy_calls, name)
    if isinstance(plain, type) or not callable(plain):
        return traced

    @wraps(plain)
    def ask(*args: Any, **kwargs: Any) -> Any:
        return traced(*args, **kwargs) if LIVE else plain(*args, **kwargs)

    return _bound_as(plain, ask)


@cache
def random_namespace() -> Namespace:
    """``numpy.random``, for adopted code."""
    return Namespace(np.random, random_namespace_names())


@cache
def lib_namespace() -> Namespace:
    """``numpy.lib``, for adopted code."""
    return Namespace(np.lib, {"stride_tricks": stride_tricks_namespace()})


@cache
def stride_tricks_namespace() -> Namespace:
    """``numpy.lib.stride_tricks``, for adopted code."""
    plain = np.lib.stride_tricks.as_strided

    @wraps(plain)
    def ask(x: Any, *args: Any, **kwargs: Any) -> Any:
        return (as_strided if isinstance(x, Handle) else plain)(x, *args, **kwargs)

    return Namespace(np.lib.stride_tricks, {"as_strided": ask})


def _own_matrix(made: Any) -> Any:
    """A new matrix of adopted code: while a trace is under way one that can hold traced values."""
    if not LIVE or innermost(follows=True) is None:
        return made
    array = np.array(made)
    return matrices.Matrix(owned(array) if array.dtype.kind in INEXACT else array)


@cache
def numpy_namespace() -> Namespace:
    """NumPy, for adopted code."""
    names: dict[str, Any] = {name: _asking(name) for name in JOINING}
    names |= {name: _creating(name) for name in CREATORS}
    names |= {"r_": numpy_calls.r_, "c_": numpy_calls.c_, "vectorize": numpy_calls.vectorize}
    names |= {name: matrices.MatrixMaker(name, _own_matrix) for name in ("matrix", "asmatrix")}
    names |= {"bmat": partial(matrices.bmat, own=_own_matrix)}
    names["random"], names["lib"] = random_namespace(), lib_namespace()
    names |= {name: getattr(iterators, name) for name in ("broadcast", "nditer", "ndenumerate")}
    names |= {"isscalar": numpy_calls.isscalar, "__all__": list(np.__all__)}
    return Namespace(np, names)


JOINING: Final = tuple(
    "append concatenate stack vstack hstack concat dstack column_stack copyto fill_diagonal place put "
    "put_along_axis putmask frompyfunc".split()
)
"""NumPy functions that take lists with tracers, or write."""


def _of_numbers(plain: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of ``math`` or ``cmath``, which is NumPy's where it is given a tracer."""
    by_numpy: Any = getattr(np, name)

    @wraps(plain)
    def call(*args: Any) -> Any:
        if not LIVE or not any(isinstance(x, Handle) for x in args):
            return plain(*args)
        note_call(name)
        made = plain(*map(value, args))  # raises what it raises, for the value
        if type(made) not in (float, complex):  # an integer or a boolean: constant between jumps
            return made
        args = tuple(map(double, args))
        if type(made) is complex:  # of a number, too: cmath.sqrt(-1.0)
            args = tuple(map(_complex, args))
        if name == "log" and len(args) == 2:
            return python_number(np.log(args[0]) / np.log(args[1]))
        return python_number(by_numpy(*args))

    return _bound_as(plain, call)


def _complex(x: Any) -> Any:
    """A number as ``cmath`` computes with it."""
    traced: Any = x
    return traced.astype(complex) if isinstance(x, Handle) else complex(x)


def _hypot(*lengths: Any) -> Any:
    if not any(isinstance(x, Handle) for x in lengths):
        return math.hypot(*lengths)
    if len(lengths) == 2:
        note_call("hypot")
    sides = tuple(map(double, lengths))
    return python_number(np.hypot(*sides) if len(sides) == 2 else np.sqrt(sum(np.square(x) for x in sides)))


def _fsum(numbers: Any) -> Any:
    numbers = list(numbers)
    if not any(isinstance(x, Handle) for x in numbers):
        return math.fsum(numbers)
    return python_number(sum(map(double, numbers)))


def _of_values(plain: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says yes or no, of the values."""

    @wraps(plain)
    def call(*args: Any, **kwargs: Any) -> Any:
        return plain(*map(value, args), **{name: value(x) for name, x in kwargs.items()})

    return _bound_as(plain, call)


def _prod(numbers: Any, *, start: Any = 1) -> Any:
    numbers = list(numbers)
    if not any(isinstance(x, Handle) for x in (*numbers, start)):
        return math.prod(numbers, start=start)
    return reduce(mul, numbers, start)


def _special(plain: Callable[[Any], Any]) -> Callable[[Any], Any]:
    served = error_function if plain is math.erf else complementary_error_function

    @wraps(plain)
    def call(x: Any) -> Any:
        return python_number(served(double(x))) if LIVE and isinstance(x, Handle) else plain(x)

    return _bound_as(plain, call)


def _of_error_function(sign: float) -> Callable[[Any, Any], Any]:
    return lambda ct, x: ct * (sign * 2.0 / math.sqrt(math.pi)) * np.exp(-x * x)


error_function = primitive(
    lambda x: np.float64(math.erf(x)), name="math.erf", operands=("x",), vjps={"x": _of_error_function(1.0)}
)
complementary_error_function = primitive(
    lambda x: np.float64(math.erfc(x)), name="math.erfc", operands=("x",), vjps={"x": _of_error_function(-1.0)}
)


@cache
def numbers_namespace(name: str) -> Namespace:
    """``math`` or ``cmath``, for adopted code: ``math.sin(t)`` is ``np.sin(t)``."""
    original = {"math": math, "cmath": cmath}[name]
    names = {
        one: _of_numbers(getattr(original, one), other) for one, other in _UFUNCS.items() if hasattr(original, one)
    }
    names |= further_names(original) | {"isclose": _of_values(original.isclose)}
    if original is math:
        names |= {name: staticmethod(call) for name, call in (("hypot", _hypot), ("fsum", _fsum), ("prod", _prod))}
        names |= {"erf": _special(math.erf), "erfc": _special(math.erfc)}
    return Namespace(original, names)


@cache
def functools_namespace() -> Namespace:
    """``functools``, for adopted code: its dispatchers ask for the class of what a tracer stands for, its caches let
    traced arguments by."""
    names = {name: getattr(dispatching, name) for name in ("singledispatch", "singledispatchmethod")}
    names |= {name: getattr(memoised, name) for name in ("lru_cache", "cache")}
    return Namespace(functools, names)


@cache
def library_namespace(name: str) -> Any:
    """A library, or a submodule, of which installed plugins bring parts; the plain module where none does."""
    plain = import_module(name)
    brought = brought_by_plugins(name)
    if brought is None and not any(point == name.partition(".")[0] for point in libraries()):
        return plain

    def inner(part: str) -> Any:
        try:
            return library_namespace(f"{name}.{part}")
        except ModuleNotFoundError:
            return None

    names = _handed_down(name, plain) if brought is None else _names_of(brought, plain)
    made = Namespace(plain, names, inner)
    for part in [n for n, v in vars(made).items() if _is_part(v, f"{name}.{n}") and n[0] != "_"]:
        del made.__dict__[part]  # found anew when it is asked for
    return made


def _handed_down(name: str, plain: Any) -> dict[str, Any]:
    """What a submodule that no plugin brings has of the module above it, as the old names of SciPy's have
    (``scipy.sparse.linalg.dsolve.spsolve``): the same of ours."""
    above = name.rpartition(".")[0]
    if not above:
        return {}
    ours = library_namespace(above)
    original = vars(ours).get("_pullback_original", ours)
    with catch_warnings():
        simplefilter("ignore")  # old names say that they are old; whoever uses one is told
        return {
            known: given
            for known, given in vars(ours).items()
            if known[0] != "_" and type(given) is not ModuleType and given is not vars(original).get(known, given)
            and getattr(plain, known, None) is vars(original).get(known)
        }  # fmt: skip


def _names_of(brought: Any, plain: Any) -> dict[str, Any]:
    """What a plugin's module has instead of the names of the plain one, and besides; some of it its ``__getattr__``
    answers for."""
    known = [name for name in {*vars(plain), *vars(brought)} if name[0] != "_"]
    found = {name: getattr(brought, name, None) for name in known}
    return {name: given for name, given in found.items() if given is not None and type(given) is not ModuleType}


def _is_part(found: Any, name: str) -> bool:
    return isinstance(found, ModuleType) and found.__name__ == name


@cache
def libraries() -> frozenset[str]:
    """The libraries for which plugins stand."""
    return frozenset(point.name.partition(".")[0] for point in plugins.entry_points(plugins.NAMESPACES))


def brought_by_plugins(name: str) -> Any:
    """The module that a plugin brings for the one of that name; None where none has it."""
    try:
        return plugins.stand_in(name)
    except PluginError as error:
        cause = error.__cause__
        absent = str(cause.name).partition(".")[2] if isinstance(cause, ModuleNotFoundError) else ""
        if absent and f"{name.partition('.')[2]}.".startswith(f"{absent}."):
            return None
        raise


OF_NUMPY: Final = {
    "numpy": numpy_namespace,
    "numpy.random": random_namespace,
    "numpy.lib": lib_namespace,
    "numpy.lib.stride_tricks": stride_tricks_namespace,
}
"""NumPy, and modules of it, for adopted code."""


def answered(name: str) -> Any:
    """The module that adopted code gets for an absolute name; None where it gets the plain one."""
    root = name.partition(".")[0]
    if root == "numpy":
        return OF_NUMPY.get(name, lambda: None)()
    if name in ("math", "cmath"):
        return numbers_namespace(name)
    if name == "functools":
        return functools_namespace()
    if name in ("numba", "numba.experimental"):
        return _numba(name)
    if root in libraries():
        return library_namespace(name)
    return None


def handed_on(given: Any) -> Any:
    """What is ours for a function of NumPy's or of ``math`` that another module hands on, or for such a module; None
    for anything else."""
    if type(given) is ModuleType:
        return answered(given.__name__) if given.__name__ in (*OF_NUMPY, "math", "cmath") else None
    name = str(getattr(given, "__name__", ""))
    for plain in (np, math, cmath) if name and callable(given) else ():
        if getattr(plain, name, None) is given:
            found = getattr(answered(plain.__name__), name)
            return None if found is given else found
    return None


@cache
def _numba(name: str) -> Namespace:
    original = sys.modules.get(name) or import_module(name)
    if name != "numba":
        return Namespace(original, numba_class_names(original))
    made = Namespace(original, numba_names(original), lambda part: answered(f"numba.{part}"))
    made.__dict__.pop("experimental", None)  # found anew when it is asked for
    return made
