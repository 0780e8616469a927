"""Operands and arguments that are no plain arrays: whatever is computed with is a plain array of the call's own, or is
refused by name with what to write."""

import re
import warnings
from array import array
from collections import UserList, deque
from ctypes import c_double
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array, csr_matrix, dok_array, dok_matrix
from scipy.sparse.linalg import aslinearoperator

import pullback as pb
from pullback.words.foreign_operands import kind_of

POLICIES = (pb.SaveAll(), pb.Recompute(2), pb.Binomial(2))
X = np.array([1.5, 2.5, 3.5])
C = np.array([1.0, 2.0, 3.0])


# ------------------------------------------------------------------------------------------------- stand-ins
class Stored(np.ndarray):
    """Stores differently, computes as any array."""

    def __array_finalize__(self, parent):
        self.note = getattr(parent, "note", "")


class WithUnit(np.ndarray):
    """As a quantity: its ufuncs do more than compute with the numbers."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return 10 * getattr(ufunc, method)(
            *(np.asarray(x) if isinstance(x, WithUnit) else x for x in inputs), **options
        )


class OwnProduct(np.ndarray):
    """As ``np.matrix``: one operator is another one."""

    def __rmul__(self, other):
        return np.dot(other, np.asarray(self))


class Converts:
    """Only gives its numbers, and not a copy of them."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __array__(self, dtype=None, copy=None):
        return self.numbers.copy() if copy else self.numbers


class ByInterface:
    """The same by the older protocol."""

    def __init__(self, numbers):
        self.numbers = numbers

    __array_interface__ = property(lambda self: self.numbers.__array_interface__)


class OnItself:
    """The same by an attribute of its own, which its class does not show."""

    def __init__(self, numbers):
        self.numbers = numbers
        self.__array_interface__ = numbers.__array_interface__


class Proxy:
    """The same by whatever it stands before."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __getattr__(self, name):
        return getattr(self.numbers, name)


class OwnWrap(np.ndarray):
    """What NumPy computes with it is changed on its way out."""

    def __array_wrap__(self, array, context=None, return_scalar=False):
        return np.asarray(array) * 10


class Table(Converts):
    """As a Series: it aligns by its index, and takes ufuncs."""

    dtype = property(lambda self: self.numbers.dtype)
    shape = property(lambda self: self.numbers.shape)
    ndim = property(lambda self: self.numbers.ndim)
    __array_priority__ = 1000

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return Table(getattr(ufunc, method)(*(np.asarray(x) for x in inputs), **options))

    def __rmul__(self, other):
        return Table(np.asarray(other) * self.numbers)

    __mul__ = __rmul__


class Preferred(Converts):
    """As a tensor of another library: it wants the operator, and gives its numbers."""

    __array_priority__ = 1000

    def __rmul__(self, other):
        return "another library's"


class Operator:
    """As a linear operator: it takes the operator itself and is no array. Affine, so that whoever calls it with a
    cotangent finds another derivative."""

    __array_ufunc__ = None

    def __init__(self, numbers):
        self.numbers = numbers

    def __rmul__(self, other):
        return other * self.numbers + 7.0

    __radd__ = __rsub__ = __rtruediv__ = __rpow__ = __rmatmul__ = __mul__ = __rmul__


class PriorityOperator:
    """The same by the older protocol."""

    __array_priority__ = 20.0
    __init__, __rmul__ = Operator.__init__, Operator.__rmul__
    __radd__ = __rsub__ = __rtruediv__ = __rpow__ = __rmatmul__ = __mul__ = __rmul__


class Elsewhere:
    """As an array of another machine: NumPy's functions are its own."""

    __array_ufunc__ = None

    def __init__(self, numbers):
        self.numbers = numbers

    def __array_function__(self, function, types, args, options):
        return function(X, self.numbers)


class Items:
    """A list by ``len`` and ``[]`` alone."""

    def __init__(self, numbers):
        self.numbers = numbers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, k):
        return self.numbers[k]


class NumberLike:
    """Operators, and no word about arrays."""

    def __rmul__(self, other):
        return other * 3.0 + 7.0


PLAIN = {
    "ndarray": C.copy,
    "read-only": lambda: np.broadcast_to(C.copy(), (3,)),
    "subclass": lambda: C.copy().view(Stored),
    "recarray": lambda: C.copy().view(np.recarray),
    "__array__": lambda: Converts(C.copy()),
    "__array_interface__": lambda: ByInterface(C.copy()),
    "__array_interface__ on itself": lambda: OnItself(C.copy()),
    "__array__ of what it stands before": lambda: Proxy(C.copy()),
    "ctypes": lambda: (c_double * 3)(*C),
    "memoryview": lambda: memoryview(C.copy()),
    "array.array": lambda: array("d", C),
    "list": C.tolist,
    "tuple": lambda: tuple(C.tolist()),
    "deque": lambda: deque(C.tolist()),
    "UserList": lambda: UserList(C.tolist()),
    "items": lambda: Items(C.tolist()),
}
"""Kinds that stand for their numbers."""
REFUSED = {
    "masked": lambda: np.ma.array(C.copy(), mask=[0, 1, 0]),
    "nothing masked": lambda: np.ma.array(C.copy()),
    "unit": lambda: C.copy().view(WithUnit),
    "own wrap": lambda: C.copy().view(OwnWrap),
    "own product": lambda: C.copy().view(OwnProduct),
    "table": lambda: Table(C.copy()),
    "preferred": lambda: Preferred(C.copy()),
}
"""Kinds with an arithmetic of their own."""


def pandas_kinds():
    pandas = pytest.importorskip("pandas", reason="its tables are the operands; stand-ins are tested without it")
    return (pandas.Series(C.copy()), pandas.Series(C.copy(), index=[2, 0, 1]), pandas.Index(C.copy()), pandas.array(C))


def change(operand):
    """Every number of an operand becomes 100, where it can be changed."""
    target = getattr(operand, "numbers", operand)
    if isinstance(target, tuple) or (isinstance(target, np.ndarray) and not target.flags.writeable):
        return
    for k in range(len(target)):
        target[k] = 100.0


def written(x, c, write):
    y = x * 1.0
    other = y[:2]
    write(y, c)
    return np.sum(other) * y * x


def augmented(operator):
    def write(y, c):
        getattr(y, operator)(c)

    return write


PROGRAMS = {
    "x * c": lambda x, c: x * c,
    "x + c": lambda x, c: (x + c) * x,
    "x - c": lambda x, c: (x - c) * x,
    "x / c": lambda x, c: x / c,
    "x ** c": lambda x, c: x**c,
    "x @ c": lambda x, c: x @ c,
    "np.multiply": np.multiply,
    "np.multiply, right": lambda x, c: np.multiply(c, x),
    "np.maximum": lambda x, c: np.maximum(x, c) * x,
    "np.add, dtype=": lambda x, c: np.add(x, c, dtype=float) * x,
    "np.dot": np.dot,
    "np.where": lambda x, c: np.where(X > 2, x, c) * x,
    "np.clip": lambda x, c: np.clip(x, c, 9.0) * x,
    "np.concatenate": lambda x, c: np.concatenate([x, c]) ** 2,
    "np.stack": lambda x, c: np.stack([x, c]) * x,
    "np.block": lambda x, c: np.block([[x, c], [c, x]]) ** 2,
    "np.outer": np.outer,
    "np.interp": lambda x, c: np.interp(x, [0.0, 2.0, 4.0], c),
    "np.average": lambda x, c: np.average(x * x, weights=c),
    "np.convolve": np.convolve,
    "np.einsum": lambda x, c: np.einsum("i,j->ij", x, c),
    "np.linalg.solve": lambda x, c: np.linalg.solve(np.eye(3) * 9 + np.outer(x, x), c),
    "np.asarray, like=": lambda x, c: np.asarray(c, like=x) * x,
    "y += c": lambda x, c: written(x, c, augmented("__iadd__")),
    "y *= c": lambda x, c: written(x, c, augmented("__imul__")),
    "y[...] = c": lambda x, c: written(x, c, lambda y, c: y.__setitem__(..., c)),
    "np.copyto": lambda x, c: written(x, c, np.copyto),
    "np.put": lambda x, c: written(x, c, lambda y, c: np.put(y, [0, 1, 2], c)),
    "np.place": lambda x, c: written(x, c, lambda y, c: np.place(y, [True, False, True], c)),
    "np.putmask": lambda x, c: written(x, c, lambda y, c: np.putmask(y, [True, False, True], c)),
    "np.add.at": lambda x, c: written(x, c, lambda y, c: np.add.at(y, [0, 0, 2], c)),
    "np.subtract.at": lambda x, c: written(x, c, lambda y, c: np.subtract.at(y, [0, 1, 2], c)),
    "np.multiply.at": lambda x, c: written(x, c, lambda y, c: np.multiply.at(y, [0, 0, 2], c)),
    "np.add, out=": lambda x, c: written(x, c, lambda y, c: np.add(y, c, out=y)),
    "steps": lambda x, c: [x := np.sin(x) * c for _ in pb.steps(3)][-1],
    "steps over": lambda x, c: [x := np.sin(x) * w for w in pb.steps(c)][-1],
    "fori_loop": lambda x, c: pb.fori_loop(0, 3, lambda _, u: (np.sin(u[0]) * u[1], u[1] * 1.0), (x, c))[0],
    "checkpoint": lambda x, c: pb.checkpoint(lambda u: np.sin(u * c) * u)(x),
}
NO_SEQUENCE = {"fori_loop", "np.block", "steps over", "np.asarray, like="}
"""Programs that take a list for a structure, or in which numbers are read one by one."""


@settings(max_examples=150)
@given(
    name=st.sampled_from(sorted(PROGRAMS)),
    kind=st.sampled_from(sorted(PLAIN)),
    policy=st.sampled_from(POLICIES),
)
def test_what_stands_for_its_numbers_is_a_copy_of_them(name, kind, policy):
    """Value and gradient are those of the plain array, even where the operand is changed before the pull."""
    program = PROGRAMS[name]
    operand = PLAIN[kind]()
    if kind in ("list", "tuple", "deque", "UserList", "array.array", "items") and name in NO_SEQUENCE:
        return
    if kind.startswith("__array") and name == "steps over":  # no iterable
        return
    expected, pull = pb.vjp(lambda x: program(x, C.copy()), X)
    gradient = pull(np.ones(np.shape(expected)))[0]
    value, pull = pb.vjp(lambda x: program(x, operand), X, policy=policy)
    change(operand)
    assert type(value) in (np.ndarray, np.float64)
    np.testing.assert_array_equal(value, expected)
    found = pull(np.ones(np.shape(value)))[0]
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, gradient)


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_arithmetic_of_its_own_is_refused_by_name(name, kind):
    if name in ("np.asarray, like=", "steps over", "np.multiply, right"):
        return  # where the numbers are asked for, or it comes first and its own code is run
    for policy in POLICIES:
        with pytest.raises(pb.NotDifferentiableError, match=rf"{type(REFUSED[kind]()).__name__} has an arithmetic"):
            pb.vjp(lambda x: PROGRAMS[name](x, REFUSED[kind]()), X, policy=policy)
    np.testing.assert_array_equal(  # the remedy
        pb.vjp(lambda x: PROGRAMS[name](x, np.asarray(REFUSED[kind]())), X)[0],
        pb.vjp(lambda x: PROGRAMS[name](x, C), X)[0],
    )


@pytest.mark.parametrize("program", ["x * c", "c * x", "np.multiply", "np.dot", "y += c", "np.add.at"])
def test_pandas_is_refused_by_name(program):
    pandas_kinds()
    run = PROGRAMS.get(program, lambda x, c: c * x)
    for k in range(4):
        with pytest.raises(pb.PullbackError, match=r"to_numpy\(\)") as caught:
            pb.vjp(lambda x, k=k: run(x, pandas_kinds()[k]), X)
        assert "site-packages" not in str(caught.value)
        plain = pandas_kinds()[k].to_numpy()
        np.testing.assert_array_equal(pb.vjp(lambda x, c=plain: run(x, c), X)[0], pb.vjp(lambda x: run(x, C), X)[0])


# ------------------------------------------------------------------------------------------------- arguments
TRANSFORMS = {
    "grad": lambda f, x: pb.grad(f)(x),
    "vjp": pb.vjp,
    "jvp": lambda f, x: pb.jvp(f, (x,), (C,)),
    "jacobian": lambda f, x: pb.jacobian(f)(x),
    "hessian": lambda f, x: pb.hessian(f)(x),
    "hvp": lambda f, x: pb.hvp(f, (x,), (C,)),
    "in a dict": lambda f, x: pb.grad(lambda given: f(given["x"]))({"x": x, "y": C}),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize(
    "kind", [*REFUSED, "__array__", "__array_interface__", "memoryview", "array.array", "sparse", "operator", "pandas"]
)
def test_an_argument_is_a_plain_array_or_refused_by_name(name, kind):
    def f(x):
        return np.sum(x * x)

    if kind == "pandas":
        kinds = pandas_kinds()
    elif kind in ("sparse", "operator"):
        kinds = [csr_array(np.diag(C)) if kind == "sparse" else aslinearoperator(np.diag(C))]
    else:
        kinds = [(REFUSED | PLAIN)[kind]()]
    for operand in kinds:
        with pytest.raises(
            pb.NotDifferentiableError, match=rf"argument .*{type(operand).__name__}|{type(operand).__name__} has"
        ):
            TRANSFORMS[name](f, operand)


@given(kind=st.sampled_from(["subclass", "recarray", "memmap"]), where=st.integers(0, 2))
def test_a_subclass_that_stores_differently_is_an_argument_and_guarded(kind, where, tmp_path_factory):
    if kind == "memmap":
        x = np.memmap(tmp_path_factory.mktemp("foreign") / "x", float, "w+", shape=(3,))
        x[:] = C
    else:
        x = PLAIN[kind]()
    out, pull = pb.vjp(lambda x: x * x, x)
    (gradient,) = pull(np.ones(3))
    assert type(out) is type(gradient) is np.ndarray
    np.testing.assert_array_equal(gradient, 2 * C)
    x[where] = 100.0
    with pytest.raises(pb.ConstantChangedError):
        pull(np.ones(3))


@pytest.mark.parametrize("kind", REFUSED)
def test_seeds_tangents_states_and_recordings(kind):
    """What enters elsewhere: a cotangent, a tangent, the state of a loop, what a loop reads or returns."""
    make = REFUSED[kind]
    for enter in (
        lambda: pb.vjp(lambda x: x * x, X)[1](make()),
        lambda: pb.jvp(lambda x: x * x, (X,), (make(),)),
        lambda: pb.fori_loop(0, 2, lambda _, u: u * X, make()),
        lambda: pb.grad(lambda x: np.sum(pb.fori_loop(0, 2, lambda _, u: u * x, make())))(X),
        lambda: pb.grad(lambda x: np.sum(pb.scan(lambda u, w: (u * w, None), x, make())[0]))(X),
        lambda: pb.grad(lambda x: np.sum(pb.fori_loop(0, 2, lambda _, u: make(), x)))(X),
        lambda: pb.fun_and_grad(np.sum, make()),
    ):
        with pytest.raises(pb.PullbackError, match=type(make()).__name__):
            enter()


def test_an_array_made_by_like_is_no_subclass():
    for kind in ("masked", "unit", "own product"):
        with pytest.raises(pb.NotDifferentiableError, match="has an arithmetic of its own"):
            pb.grad(lambda x, kind=kind: np.sum(np.asanyarray(REFUSED[kind](), like=x) * x))(X)


# ------------------------------------------------------------------------------------------------- operators
@settings(max_examples=60)
@given(
    cls=st.sampled_from([Operator, PriorityOperator]),
    shape=st.sampled_from([(3,), (2, 3), ()]),
    operator=st.sampled_from(["__mul__", "__add__", "__sub__", "__truediv__", "__pow__", "__matmul__"]),
    policy=st.sampled_from(POLICIES),
)
def test_what_takes_the_operator_itself_gets_the_tracer(cls, shape, operator, policy):
    """As NumPy's arrays leave it to the operand: its own operations are recorded, none is called with a cotangent."""
    numbers = C.copy() if shape else np.float64(2.0)
    a = cls(numbers)

    def f(x):
        left = getattr(type(x), operator)(x, a)
        return np.sum((left if left is not NotImplemented else type(a).__rmul__(a, x)) ** 2)

    x = np.cos(np.arange(np.prod(shape))).reshape(shape)
    gradient = pb.grad(f, policy=policy)(x)
    np.testing.assert_allclose(gradient, 2 * (x * numbers + 7.0) * numbers)


def test_operators_by_either_hand_and_in_place():
    a = Operator(C.copy())
    for f in (lambda x: x * a, lambda x: a * x, lambda x: x + a, lambda x: x @ a):
        np.testing.assert_allclose(pb.grad(lambda x, f=f: np.sum(f(x)))(X), C)
        np.testing.assert_array_equal(pb.vjp(f, X)[0], f(X))

    def in_place(x):
        x *= a
        return x

    with pytest.raises(TypeError):
        in_place(X.copy())  # NumPy's words
    for f in (in_place, lambda x: x // a, lambda x: x < a):
        with pytest.raises(pb.NotDifferentiableError, match="Operator has operators of its own"):
            pb.grad(lambda x, f=f: np.sum(f(x)))(X)


def test_numbers_of_the_users_own():
    """A scalar leaves the operator to them, as NumPy's scalars do; with an array NumPy makes an array of objects."""
    np.testing.assert_array_equal(pb.grad(lambda x: (x * NumberLike()) ** 2)(2.0), 2 * 13.0 * 3.0)
    with pytest.raises(pb.NotDifferentiableError, match="NumberLike has operators of its own"):
        pb.grad(lambda x: np.sum(x * NumberLike()))(X)
    assert pb.grad(lambda x: x * Fraction(1, 4))(3.0) == 0.25


def test_linear_operators_and_sparse_matrices():
    dense = np.diag(C)
    for sparse in (csr_array(dense), csr_matrix(dense), dok_array(dense), dok_matrix(dense)):
        np.testing.assert_array_equal(pb.grad(lambda x, a=sparse: np.sum(a @ x))(X), C)
        for f in (lambda x, a: x * a, lambda x, a: a * x):  # by the plugin for SciPy
            np.testing.assert_array_equal(pb.grad(lambda x, f=f, a=sparse: np.sum(f(x, a)))(X), C)
        for f, slope in ((lambda x, a: x + a, 3.0), (lambda x, a: a + x, 3.0), (lambda x, a: a - x, -3.0)):
            np.testing.assert_array_equal(pb.grad(lambda x, f=f, a=sparse: np.sum(f(x, a)))(X), slope)
        for f in (lambda x, a: x % a, np.multiply):
            with pytest.raises(pb.PullbackError, match=r"A @ x"):
                pb.grad(lambda x, f=f, a=sparse: np.sum(f(x, a)))(X)
    for f in (lambda x, a: x * a, lambda x, a: a @ x, lambda x, a: x @ a, lambda x, a: a * x):
        with pytest.raises(pb.PullbackError, match=r"A @ x|declare it with pullback\.primitive"):
            pb.grad(lambda x, f=f: np.sum(f(x, aslinearoperator(dense))))(X)


def test_masked_arrays_in_writes_and_masks():
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    flags = np.ma.array([True, False, True], mask=[True, False, False])
    for f in (
        lambda x: np.add.at(x, [0, 1], masked),
        lambda x: np.maximum.at(x, [0, 1], masked),
        lambda x: np.put(x, [0, 1], masked),
        lambda x: np.fill_diagonal(np.outer(x, x), masked),
        lambda x: np.put_along_axis(x, np.array([0, 1]), masked, 0),
        lambda x: np.copyto(x, 2.0, where=flags),
        lambda x: np.add(x, 1.0, out=x, where=flags),
        lambda x: np.sum(x, where=flags),
        lambda x: x.flat.__setitem__(slice(0, 2), masked),
    ):
        with pytest.raises(pb.NotDifferentiableError, match="MaskedArray has an arithmetic of its own"):
            pb.grad(lambda x, f=f: (f(x * 1.0), np.sum(x))[1])(X)
    with pytest.raises(pb.ConversionError, match=re.escape("np.where(mask, other, x)")):
        pb.grad(lambda x: np.sum(np.ma.array(C, mask=[0, 1, 0]) * x))(X)


@given(
    kind=st.sampled_from(["O", "m8[s]"]),
    name=st.sampled_from(["np.put", "np.add.at", "y[...] = c", "y += c", "np.copyto"]),
)
def test_objects_and_times_are_numpys_or_an_error(kind, name):
    given_array = C.astype(kind) if kind == "O" else C.astype(int).astype(kind)
    try:
        expected = PROGRAMS[name](X.copy(), given_array)
    except (TypeError, ValueError):
        expected = None
    for policy in POLICIES:
        try:
            value, pull = pb.vjp(lambda x: PROGRAMS[name](x, given_array), X, policy=policy)
        except (TypeError, ValueError):  # NumPy's own, or a named one
            continue
        np.testing.assert_array_equal(value, expected)
        np.testing.assert_array_equal(pull(np.ones(3))[0], pb.vjp(lambda x: PROGRAMS[name](x, C), X)[1](np.ones(3))[0])


@given(function=st.sampled_from([np.asarray, np.asanyarray, np.ascontiguousarray, np.array]), write=st.booleans())
def test_what_like_borrows_is_copied_when_it_is_kept(function, write):
    """``np.asarray(a, like=x)`` may be the user's own memory."""
    for policy in POLICIES:
        mine = C.copy()

        def f(x, mine=mine):
            b = function(mine, like=x)
            view = b[:2]
            if write:
                b[0] = 5.0
            held = pb.fori_loop(0, 2, lambda _, u: u * b, x)
            return np.sum(b * x) + np.sum(view * x[1:]) + np.sum(held) + np.sum(pb.stop_gradient(b) * x)

        out, pull = pb.vjp(f, X, policy=policy)
        np.testing.assert_array_equal(mine, C)
        mine[:] = 100.0
        b = np.array([5.0 if write else 1.0, 2.0, 3.0])
        np.testing.assert_allclose(pull(1.0)[0], b + np.r_[0, b[:2]] + b**2 + b)
        np.testing.assert_allclose(out, np.sum(2 * b * X + b**2 * X) + np.sum(b[:2] * X[1:]))


def test_outputs_of_a_users_primitive():
    def declared(forward):
        return pb.primitive(forward, name="made", operands=("x",), vjps={"x": lambda ct: 2 * ct})

    for make in (lambda: (2 * C).view(Stored), REFUSED["masked"], REFUSED["table"], REFUSED["unit"]):
        made = declared(lambda x, make=make: make())
        with pytest.raises(pb.PullbackError, match=r"arithmetic of its own|np\.asarray|return an array or a number"):
            pb.grad(lambda x, made=made: np.sum(made(x) * x))(X)


@pytest.mark.parametrize("name", ["x * c", "np.dot", "np.where", "np.concatenate", "y += c", "y[...] = c", "np.put"])
def test_whoever_takes_numpys_functions_is_refused(name):
    """Its function would get the plain values, and what it returned would be taken for the result."""
    with pytest.raises(pb.NotDifferentiableError, match=r"Elsewhere has an arithmetic of its own.*as a plain array"):
        pb.vjp(lambda x: PROGRAMS[name](x, Elsewhere(C.copy())), X)


def test_kinds():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        own = [np.matrix(C), csr_array(np.diag(C)), *(make() for make in REFUSED.values())]
    assert {kind_of(x) for x in own} == {"own"}
    assert {kind_of(x) for x in (Operator(C), PriorityOperator(C), aslinearoperator(np.diag(C)))} == {"operator"}
    assert {kind_of(x) for x in (1.0, Fraction(1), "x", b"x", None, {}, object(), np.float32(1), len)} == {"unknown"}
    assert {kind_of(x) for x in (Converts(C), memoryview(C), np.poly1d(C), C.view(Stored), C.flat)} == {"array-like"}
    assert {kind_of(x) for x in ([1.0], (1.0,), range(3), deque(), array("d"))} == {"sequence"}


class Loud(float):
    """A number whose operators are others: NumPy computes with what it is."""

    def __mul__(self, other):
        return 100.0

    __rmul__ = __add__ = __radd__ = __sub__ = __rsub__ = __pow__ = __rpow__ = __truediv__ = __rtruediv__ = __mul__


class LoudScalar(np.float64):
    __mul__ = __rmul__ = __add__ = __radd__ = Loud.__mul__


@pytest.mark.parametrize("number", [Loud(-0.0), Loud(1.5), LoudScalar(1.5), c_double(1.5)])
@pytest.mark.parametrize(
    "function", [np.arctan2, np.hypot, np.multiply, np.true_divide, np.power, np.logaddexp, np.maximum, np.dot]
)
def test_a_number_of_a_class_of_the_users_is_the_number(function, number):
    plain = np.float64(getattr(number, "value", number))
    for swapped in (False, True):

        def f(x, c, swapped=swapped):
            return np.sum(function(c, x) if swapped else function(x, c))

        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(pb.grad(f)(X, number), pb.grad(f)(X, plain))
            np.testing.assert_array_equal(pb.value_and_grad(f)(X, number)[0], f(X, plain))


def test_an_object_whose_attributes_raise_is_no_array():
    class Strict:
        def __getattr__(self, name):
            raise KeyError(name)

    assert kind_of(Strict()) == "unknown"
