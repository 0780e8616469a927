"""Bad input: one clear error each, naming operation, operand, expected and given, line and remedy; and nothing left
behind."""

import copy
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import (
    ConstantChangedError,
    ConversionError,
    NotDifferentiableError,
    PolicyError,
    PullbackError,
    StructureError,
    TracerError,
    UnknownFunctionError,
)

X = np.array([1.0, 2.0, 3.0])
HERE = rf"{Path(__file__).stem}\.py:\d+"


pytestmark = pytest.mark.usefixtures("state_restored")


@pytest.mark.parametrize(
    ("f", "given"),
    [
        (lambda x: x * 2, r"shape \(3,\)"),
        (lambda x: x[None, :1], r"shape \(1, 1\)"),
        (lambda x: [x[0]], "(a )?list"),
        (lambda x: {"a": x[0]}, "(a )?dict"),
        (lambda x: (x[0], x[1]), "(a )?tuple"),
        (lambda x: "text", "(a )?str"),
    ],
)
def test_non_scalar_output(f, given):
    with pytest.raises(
        NotDifferentiableError, match=rf"a gradient needs a scalar output, <lambda> returned {given}.*(sum it|vjp)"
    ):
        pb.grad(f)(X)


@pytest.mark.parametrize(
    "differentiate",
    [
        pb.grad,
        pb.value_and_grad,
        pb.jacobian,
        pb.hessian,
        pb.elementwise_grad,
        lambda f: lambda x: pb.vjp(f, x),
        lambda f: lambda x: pb.jvp(f, (x,), (x,)),
        lambda f: lambda x: pb.linearize(f, x),
        lambda f: lambda x: pb.hvp(f, (x,), (x,)),
        lambda f: pb.grad(f, has_aux=True),
        lambda f: lambda x: pb.fun_and_grad(f, x)(x),
    ],
)
def test_a_forgotten_return(differentiate):
    def loss(x):
        np.sum(x)

    with pytest.raises(NotDifferentiableError, match=r"loss returned None.*is its return missing"):
        differentiate(loss)(X)


def test_complex_output():
    with pytest.raises(
        NotDifferentiableError, match=r"returned a complex scalar; take its real part, or pass holomorphic=True"
    ):
        pb.grad(lambda z: z * z)(1 + 2j)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        (3, "int"),
        (np.array([1, 2]), "int64"),
        (True, "bool"),
        (np.int32(3), "int32"),
        (np.array([True]), "bool"),
        ([1, 2], "int"),
        ("text", "str"),
    ],
)
def test_integer_argument(argument, given):
    def loss(x):
        return 1.0

    with pytest.raises(
        NotDifferentiableError, match=rf"argument 0 of loss (has d?type|is of type) {given}.*(float|allow_int|argnums)"
    ):
        pb.grad(loss)(argument)


def test_integer_argument_allowed():
    assert pb.grad(lambda n, x: np.sum(x) * n, argnums=(0, 1), allow_int=True)(3, X)[0] is None
    found = pb.grad(lambda t: np.sum(t["x"]) * t["n"])({"x": X, "n": 3, "name": None})
    assert found["n"] is None
    assert found["name"] is None
    np.testing.assert_array_equal(found["x"], [3, 3, 3])


def test_integer_dtype_output():
    with pytest.raises(NotDifferentiableError, match=r"argument|dtype|carries no derivative"):
        pb.grad(lambda x: x.astype(int).sum())(np.array([1]))


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: np.packbits(x).sum(), r"no primitive for numpy\.packbits; (write it|declare|use).*pullback\.value"),
        (lambda x: np.gcd(x, 2), r"no primitive for numpy\.gcd"),
        (lambda x: x.byteswap().sum(), r"no attribute 'byteswap'.*pullback\.value\(x\)\.byteswap"),
    ],
)
def test_unknown_function(f, message):
    with pytest.raises((UnknownFunctionError, AttributeError, ConversionError), match=message):
        pb.grad(f)(X)


def test_unknown_function_names_the_users_line():
    with pytest.raises(UnknownFunctionError, match=HERE):
        pb.grad(lambda x: np.packbits(x).sum())(X)


def test_late_tracer():
    kept = []
    pb.grad(lambda x: kept.append(x) or np.sum(x))(X)
    for use in (lambda t: t + 1, np.sin, lambda t: t[0], np.sum, lambda t: t.__setitem__(0, 1.0), np.zeros_like):
        with pytest.raises(
            TracerError, match=rf"uses a tracer whose trace has ended \(at .*{HERE}\).*leaked.*pullback\.value"
        ):
            use(kept[0])


def test_late_tracer_in_the_next_trace():
    kept = []
    pb.grad(lambda x: kept.append(x * 2) or np.sum(x))(X)
    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(lambda x: np.sum(x * kept[0]))(X)
    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(lambda x: kept[0].sum())(X)


def test_late_tracer_of_a_generator():
    def slow(x):
        yield x * 2
        yield x * 3

    kept = []

    def f(x):
        kept.append(slow(x))
        return np.sum(next(kept[0]))

    np.testing.assert_array_equal(pb.grad(f)(X), [2, 2, 2])
    with pytest.raises(TracerError, match=rf"trace has ended \(at .*{HERE}\).*generator"):
        next(kept[0])


def test_leaked_tracer_of_an_inner_trace():
    kept = []

    def outer(x):
        pb.grad(lambda y: kept.append(y * x) or np.sum(y))(x)
        return np.sum(kept[0])

    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(outer)(X)


def test_leaked_tracer_of_a_loop_body():
    kept = []

    def f(x):
        u = pb.fori_loop(0, 3, lambda k, u: kept.append(u) or u * x, x)
        return np.sum(u) + np.sum(kept[0])

    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(f)(X)


def test_tracer_in_another_thread():
    caught = []

    def elsewhere(x):
        try:
            np.sum(x * 2)
        except TracerError as error:
            caught.append(error)

    def f(x):
        thread = threading.Thread(target=elsewhere, args=(x,))
        thread.start()
        thread.join()
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(f)(X), np.ones(3))
    with pytest.raises(
        TracerError, match=rf"uses a tracer in another thread than the one that traces \(at .*{HERE}\).*each thread"
    ):
        raise caught[0]


@pytest.mark.parametrize("swallow", [pickle.dumps, np.array, lambda x: np.asarray(x, float), float])
def test_a_swallowed_tracer(swallow):
    with pytest.raises((PullbackError, TypeError), match=r"derivative|tracer|pickle"):
        pb.grad(lambda x: swallow(x[0]) and np.sum(x))(X)


def test_copies_of_a_tracer_are_traced():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(copy.copy(x) * x.copy()))(X), 2 * X)


def test_a_deep_copy_of_a_tracer_is_refused_by_name():
    for deep in (copy.deepcopy, lambda x: copy.deepcopy({"state": [x]})):
        with pytest.raises(pb.ConversionError, match=r"copy\.deepcopy of a tracer of float64\[.*write x\.copy\(\)"):
            pb.grad(lambda x, deep=deep: np.sum(x) * len(deep(x)))(X)


def test_argument_changed_between_forward_and_reverse():
    x = X.copy()

    def f(a):
        b = np.sum(a * a)
        x[0] = 100.0
        return b

    with pytest.raises(ConstantChangedError, match=r"argument 0.*float64\[3\].*was changed between.*x\.copy\(\)"):
        pb.grad(f)(x)
    _, pull = pb.vjp(np.sin, x)
    x[1] = -5
    with pytest.raises(ConstantChangedError, match=r"argument 0.*was changed"):
        pull(np.ones(3))


# Policies, registries, plugins, files.
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.Binomial(0), r"snapshots must be.*at least 1.*got 0|snapshots.*0.*at least (1|one)"),
        (lambda: pb.Binomial(-3), r"snapshots.*-3"),
        (lambda: pb.Binomial(2.5), r"snapshots.*whole number.*2\.5"),
        (lambda: pb.Recompute(0), r"segments.*0.*at least 1"),
        (lambda: pb.Recompute("cube"), r"segments must be a whole number or 'sqrt', got 'cube'"),
        (
            lambda: pb.grad(np.sum, policy=pb.Binomial)(X),
            r'policy= takes a memory policy such as pullback\.Binomial\(20\), or "auto", got <class.*instance',
        ),
        (lambda: pb.grad(np.sum, policy="binomial")(X), r"policy= takes a memory policy.*got 'binomial'"),
        (lambda: pb.using(20).__enter__(), r"policy= takes a memory policy.*got 20"),
    ],
)
def test_a_bad_policy(make, message):
    with pytest.raises(PolicyError, match=message):
        make()


def test_has_aux_without_aux():
    with pytest.raises(StructureError, match=r"with has_aux=True the function returns \(output, aux\), got"):
        pb.grad(np.sum, has_aux=True)(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("make", [lambda: np.matrix([[1.0, 2.0]]), lambda: np.ma.array([1.0, 2.0], mask=[True, False])])
def test_array_subclasses_are_refused(make):
    """``*`` of a matrix is another operation, and a masked element does not count: neither is what an array
    computes."""
    with pytest.raises(PullbackError, match=r"argument 0.*(matrix|MaskedArray|masked)"):
        pb.grad(lambda a: np.sum(a * 2))(make())


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    "make", [lambda: np.matrix([[1.0, 2.0]]), lambda: np.ma.array([[1.0, 2.0]], mask=[[True, False]])]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda a: pb.jvp(np.sin, (np.ones((1, 2)),), (a,)),
        pb.linearize(np.sin, np.ones((1, 2)))[1],
        pb.vjp(np.sin, np.ones((1, 2)))[1],
        lambda a: pb.ravel({"a": a}),
        lambda a: pb.fun_and_grad(np.sum, a),
    ],
)
def test_array_subclasses_are_refused_as_tangents_and_in_vectors(make, use):
    with pytest.raises(PullbackError, match=r"(matrix|MaskedArray) has an arithmetic of its own.*pass np.asarray"):
        use(make())


def test_a_masked_operand_is_right_or_refused():
    masked = np.ma.array([1.0, 2.0, 4.0], mask=[True, False, False])
    with pytest.raises((PullbackError, TypeError), match=r"(?i)mask"):
        pb.grad(lambda x: np.sum(x * masked))(X)


def test_object_and_text_arrays_are_refused():
    for x in (np.array([1.0, None], dtype=object), np.array(["a"])):
        with pytest.raises(PullbackError, match=r"argument 0.*(object|str|<U1).*no derivative"):
            pb.grad(lambda a: np.sum(a * 2))(x)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_other_float_widths(dtype):
    x = np.array([1.0, 2.0], dtype)
    gradient = pb.grad(lambda a: np.sum(np.sin(a) * a))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.astype(float), np.sin([1.0, 2.0]) + np.cos([1.0, 2.0]) * [1.0, 2.0], rtol=1e-2)
