"""Drawn programs: random graphs of NumPy calls, judged by the naive reference, values bit for bit against plain
NumPy."""

import operator
import warnings
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs import naive

import pullback as pb

SHAPES = ((), (1,), (3,), (2, 3), (2, 1), (1, 3), (3, 2), (2, 1, 3), (0, 3), (4,))
UNARY = (
    "sin", "cos", "tanh", "exp", "log", "sqrt", "square", "negative", "absolute", "conjugate", "real", "imag", "sign",
    "cube",
)  # fmt: skip
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
OPERATORS = {"add": operator.add, "subtract": operator.sub, "multiply": operator.mul, "divide": operator.truediv}
LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "reversed": lambda a: a[::-1].copy()[::-1] if a.ndim else a,
}


def _chessboard(shape):
    return np.indices(shape).sum(axis=0) % 2 == 0


MOVES = {
    "ravel": np.ravel,
    "T": np.transpose,
    "flip": lambda a: np.flip(a, axis=-1),
    "roll": lambda a: np.roll(a, 1),
    "repeat": lambda a: np.repeat(a, 2, axis=0),
    "expand": lambda a: np.expand_dims(a, 0),
    "first": operator.itemgetter(0),
    "last": operator.itemgetter((Ellipsis, -1)),
    "tail": operator.itemgetter(slice(1, None)),
    "evens": operator.itemgetter((Ellipsis, slice(None, None, 2))),
    "backwards": operator.itemgetter(slice(None, None, -1)),
    "new axis": operator.itemgetter((None, Ellipsis)),
    "repeated": operator.itemgetter(([0, 0, -1],)),
    "swap": lambda a: np.swapaxes(a, 0, -1),
    "squeeze": np.squeeze,
    "wide": lambda a: np.broadcast_to(a, (2, *np.shape(a))),
    "concatenate": lambda a, b: np.concatenate([np.atleast_1d(a), np.atleast_1d(b)], axis=0),
    "stack": lambda a, b: np.stack([a, b], axis=-1),
    "where": lambda a, b: np.where(_chessboard(np.broadcast_shapes(np.shape(a), np.shape(b))), a, b),
}
MOVES_OF_TWO = ("concatenate", "stack")


@frozen
class Program:
    """Inputs, instructions ``(kind, name, operands, extra)`` and the values that are summed at the end."""

    inputs: tuple[Any, ...]
    constants: tuple[Any, ...]
    steps: tuple[tuple[Any, ...], ...]
    read: tuple[int, ...]

    def run(self, *inputs: Any, mark: Any = iter) -> Any:
        """The program as a user writes it; ``mark`` goes around the instructions."""
        env: list[Any] = [*inputs, *self.constants]
        for step in mark(self.steps):
            env.append(execute(step, env))
        loss = 0.0
        for k in self.read:
            loss = loss + np.sum(np.real(env[k]) * 0.5)
        return loss

    def judge(self) -> list[tuple[Any, Any]]:
        """The reference's gradients and their scales."""
        env = [naive.Node(a) for a in (*self.inputs, *self.constants)]
        for step in self.steps:
            env.append(reference(step, env))
        loss = naive.Node(np.float64(0.0))
        for k in self.read:
            half = naive.elementwise("multiply", naive.elementwise("real", env[k]), naive.Node(np.float64(0.5)))
            loss = naive.elementwise("add", loss, naive.total(np.sum, half, None))
        return naive.gradients(loss, env[: len(self.inputs)])


def execute(step: tuple[Any, ...], env: list[Any]) -> Any:
    """One instruction on arrays or tracers."""
    kind, name, operands, extra = step
    values = [env[k] for k in operands]
    if kind == "unary":
        return values[0] ** 3 if name == "cube" else getattr(np, name)(values[0])
    if kind == "binary":
        return getattr(np, name)(*values)
    if kind == "operator":
        return OPERATORS[name](*values)
    if kind == "move":
        return MOVES[name](*values)
    f = getattr(np, name)
    return f(values[0], axis=extra[0], keepdims=extra[1])


def reference(step: tuple[Any, ...], env: list[naive.Node]) -> naive.Node:
    """One instruction on nodes of the reference."""
    kind, name, operands, extra = step
    nodes = [env[k] for k in operands]
    if kind in ("unary", "binary", "operator"):
        return naive.elementwise(name, *nodes)
    if kind == "move":
        return naive.gather(MOVES[name], *nodes)
    shape = np.shape(nodes[0].array)
    axis, keepdims = extra
    axis = axis if shape else None  # NumPy takes axis 0 and -1 of a 0-d array to be its only element
    along = np.prod(shape if axis is None else shape[axis])
    f = getattr(np, name)
    if name == "max":
        at = _argmax(axis, keepdims)
        picked = at(nodes[0].array)
        return naive.gather(lambda a: np.ravel(a)[picked], nodes[0])
    return naive.total(
        lambda a: f(a, axis=axis, keepdims=keepdims), nodes[0], axis, float(along) if name == "mean" else 1.0
    )


def _argmax(axis, keepdims):
    def numbers(a):
        n = np.arange(np.size(a)).reshape(np.shape(a))
        if axis is None:
            flat = n.ravel()[np.argmax(a)]
            return flat.reshape((1,) * n.ndim) if keepdims else flat
        picked = np.take_along_axis(n, np.expand_dims(np.argmax(a, axis), axis), axis)
        return picked if keepdims else picked.squeeze(axis)

    return numbers


@st.composite
def programs(draw, max_steps=12):
    """A program whose values stay finite, moderate, and away from kinks and branch points; checked by running it
    while it is drawn."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inputs = [_draw_input(draw, rng) for _ in range(draw(st.integers(1, 3)))]
    constants = [_draw_input(draw, rng) for _ in range(draw(st.integers(0, 2)))]
    # NumPy hands z * tracer over as a ufunc where z is its own complex scalar, which it would have computed without:
    # other last bits.
    constants = [np.array(c) if isinstance(c, np.complexfloating) else c for c in constants]
    env: list[Any] = [*inputs, *constants]
    steps: list[tuple[Any, ...]] = []
    for _ in range(draw(st.integers(1, max_steps))):
        step = _draw_step(draw, env)
        value = _tame(step, env)
        if value is not None:
            steps.append(step)
            env.append(value)
    read = tuple(sorted({len(env) - 1, *draw(st.lists(st.integers(0, len(env) - 1), max_size=3))}))
    return Program(tuple(inputs), tuple(constants), tuple(steps), read)


def _draw_input(draw, rng):
    kind = draw(st.sampled_from(("f8", "f8", "f8", "f4", "c16", "python", "scalar")))
    if kind == "python":
        return float(rng.uniform(-2, 2))
    if kind == "scalar":
        return np.float32(rng.uniform(-2, 2)) if draw(st.booleans()) else np.float64(rng.uniform(-2, 2))
    shape = draw(st.sampled_from(SHAPES))
    array = rng.uniform(-2, 2, shape)
    array = (array + 1j * rng.uniform(-2, 2, shape)).astype(kind) if kind == "c16" else np.asarray(array).astype(kind)
    return LAYOUTS[draw(st.sampled_from(sorted(LAYOUTS)))](array)


def _draw_step(draw, env):
    place = st.integers(0, len(env) - 1)
    kind = draw(st.sampled_from(("unary", "binary", "operator", "move", "reduce")))
    if kind == "unary":
        return kind, draw(st.sampled_from(UNARY)), (draw(place),), None
    if kind == "binary":
        return kind, draw(st.sampled_from(BINARY)), (draw(place), draw(place)), None
    if kind == "operator":
        return kind, draw(st.sampled_from(sorted(OPERATORS))), (draw(place), draw(place)), None
    if kind == "move":
        name = draw(st.sampled_from(sorted(MOVES)))
        return kind, name, (draw(place), draw(place)) if name in (*MOVES_OF_TWO, "where") else (draw(place),), None
    return (
        kind,
        draw(st.sampled_from(("sum", "mean", "max"))),
        (draw(place),),
        (draw(st.sampled_from((None, 0, -1))), draw(st.booleans())),
    )


def _tame(step, env):
    """The value of a step, or None where NumPy refuses it or the reference would not know better than the library."""
    _kind, name, operands, _ = step
    values = [env[k] for k in operands]
    if name in ("log", "sqrt", "max", "maximum", "minimum", "sign") and any(np.iscomplexobj(v) for v in values):
        return None
    if name in ("log", "sqrt") and np.any(values[0] < 0.1):
        return None
    if name in ("absolute", "sign") and np.any(np.abs(values[0]) < 1e-3):
        return None
    if name == "divide" and np.any(np.abs(values[1]) < 0.1):
        return None
    if name == "mean" and np.size(values[0]) == 0:
        return None
    try:
        with np.errstate(all="raise"):
            value = execute(step, env)
    except (ValueError, IndexError, TypeError, FloatingPointError, np.exceptions.AxisError):
        return None
    if name == "max" and np.unique(values[0]).size != np.size(values[0]):
        return None
    if name in ("maximum", "minimum") and operands[0] != operands[1] and np.any(np.abs(values[0] - values[1]) < 1e-4):
        return None
    return value if np.size(value) <= 100 and np.all(np.abs(value) < 100) else None


def require_right(program: Program) -> None:
    """Value bits equal NumPy's; gradients have the input's type, shape and dtype, and lie within rounding of the
    reference."""
    argnums = tuple(range(len(program.inputs)))
    given_bits = [np.asarray(a).tobytes() for a in program.inputs]
    value, found = pb.value_and_grad(program.run, argnums)(*program.inputs)
    expected = program.run(*program.inputs)
    assert np.asarray(value).tobytes() == np.asarray(expected).tobytes()
    assert np.asarray(value).dtype == np.asarray(expected).dtype
    assert [np.asarray(a).tobytes() for a in program.inputs] == given_bits
    single = any(np.asarray(a).dtype == np.float32 for a in (*program.inputs, *program.constants))
    unit = 1e-5 if single else 1e-13
    for x, g, (right, scale) in zip(program.inputs, found, program.judge(), strict=True):
        assert np.shape(g) == np.shape(x)
        assert np.asarray(g).dtype == np.asarray(x).dtype
        assert np.all(np.abs(g - right) <= unit * (200 * scale + 1e-3)), f"{g} is not {right}"


@settings(max_examples=120)
@given(programs())
def test_value_and_gradient(program):
    require_right(program)


@pytest.mark.slow
@settings(max_examples=30_000)
@given(programs(max_steps=30))
def test_value_and_gradient_of_many(program):
    require_right(program)


POLICIES = (
    pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(4), pb.Periodic(2), pb.Mixed(2), pb.Budget(1),
    pb.Budget(1, exact=True), pb.Keep(np.multiply, np.sin), "auto",
)  # fmt: skip


@settings(max_examples=75)
@given(programs(), st.sampled_from(POLICIES))
def test_a_policy_changes_no_bit(program, policy):
    require_same_bits(program, policy)


@settings(max_examples=50)
@given(programs(), st.sampled_from((pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(4))))
def test_second_derivatives(program, policy):
    require_right_second_order(program, policy)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(programs(max_steps=30), st.sampled_from((pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(4))))
def test_second_derivatives_of_many(program, policy):
    require_right_second_order(program, policy)


@pytest.mark.slow
@settings(max_examples=10_000)
@given(programs(max_steps=40), st.sampled_from(POLICIES))
def test_a_policy_changes_no_bit_of_many(program, policy):
    require_same_bits(program, policy)


def gradient_within(f: Any, argnums: Any, policy: Any, inputs: Any) -> Any:
    """The value and the gradient; a budget that refuses is raised to what it says is enough."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)  # what small programs save does not matter here
        for _ in range(30):
            try:
                return pb.value_and_grad(f, argnums, policy=policy)(*inputs)
            except pb.BudgetError as error:
                policy = pb.Budget(error.minimum_bytes, exact=policy.exact)
    raise AssertionError(f"{policy} is refused")


def require_same_bits(program: Program, policy: Any) -> None:
    """The gradient under ``policy``, at the first and at a second input, has the bits of save-all."""
    argnums = tuple(range(len(program.inputs)))
    for scale in (1.0, 0.75):
        moved = [scale * x if scale != 1.0 else x for x in program.inputs]
        with np.errstate(all="ignore"):
            all_saved = pb.value_and_grad(program.run, argnums)(*moved)
            under = gradient_within(program.run, argnums, policy, moved)
            marked = gradient_within(lambda *xs: program.run(*xs, mark=pb.steps), argnums, policy, moved)
        for found in (under, marked):
            assert np.asarray(found[0]).tobytes() == np.asarray(all_saved[0]).tobytes()
            assert [np.asarray(g).tobytes() for g in found[1]] == [np.asarray(g).tobytes() for g in all_saved[1]]


def require_right_second_order(program: Program, policy: Any) -> None:
    """Forward over reverse has the bits of save-all under a policy, and reverse over reverse and over forward say
    the same to rounding."""
    xs, argnums = tuple(program.inputs), tuple(range(len(program.inputs)))
    rng = np.random.default_rng(0)
    along = tuple(np.asarray(rng.normal(size=np.shape(x))).astype(np.asarray(x).dtype)[()] for x in xs)
    marked = lambda *xs: program.run(*xs, mark=pb.steps)  # noqa: E731 - the program, marked

    def product(f: Any, policy: Any) -> Any:
        return pb.jvp(pb.grad(f, argnums, policy=policy), xs, along)[1]

    def slope(f: Any, policy: Any) -> Any:
        return lambda *xs: sum(
            np.sum(np.real(g * t)) for g, t in zip(pb.grad(f, argnums, policy=policy)(*xs), along, strict=True)
        )

    with np.errstate(all="ignore"):
        expected = product(program.run, None)
        for f in (program.run, marked):
            assert [np.asarray(g).tobytes() for g in product(f, policy)] == [np.asarray(g).tobytes() for g in expected]
        ways = [
            pb.grad(slope(f, p), argnums)(*xs)
            for f, p in ((program.run, None), (program.run, policy), (marked, policy))
        ]
        ways.append(pb.grad(lambda *xs: pb.jvp(program.run, xs, along)[1], argnums)(*xs))
    single = any(np.asarray(a).dtype.char in "fF" for a in (*xs, *program.constants))
    tolerance = 1e-3 if single else 1e-9
    for way in ways:
        for found, right in zip(way, expected, strict=True):
            np.testing.assert_allclose(
                found, right, rtol=tolerance, atol=tolerance * np.max(np.abs(right), initial=1.0)
            )


def test_the_reference_agrees_with_complex_step(rng):
    x = rng.uniform(0.5, 2, (2, 3))

    def f(a):
        return np.sum(np.sin(a) * np.sqrt(a[:, :1]) / np.exp(a.T).sum(axis=0)[:1])

    n = naive.Node(x)
    column = naive.elementwise("sqrt", naive.gather(lambda a: a[:, :1], n))
    below = naive.gather(
        operator.itemgetter(slice(1)),
        naive.total(lambda a: a.sum(axis=0), naive.elementwise("exp", naive.gather(np.transpose, n)), 0),
    )
    out = naive.total(
        np.sum,
        naive.elementwise("divide", naive.elementwise("multiply", naive.elementwise("sin", n), column), below),
        None,
    )
    ((gradient, scale),) = naive.gradients(out, [n])
    np.testing.assert_allclose(gradient, naive.complex_step(f, x), rtol=1e-12)
    assert np.all(np.abs(gradient) <= scale * (1 + 1e-12))
    np.testing.assert_allclose(pb.grad(f)(x), gradient, rtol=1e-12)


WEAK = {
    "x + x": lambda x: x + x,
    "-x": lambda x: -x,
    "+x": lambda x: +x,
    "2 * x": lambda x: 2 * x,
    "x - 1.5": lambda x: x - 1.5,
    "1 / x": lambda x: 1 / x,
    "x**2": lambda x: x**2,
    "2.0**x": lambda x: 2.0**x,
    "abs(x)": abs,
    "x % 0.3": lambda x: x % 0.3,
    "x + 1 * x": lambda x: x + 1 * x,
    "np.sin(x)": np.sin,
    "np.add(x, x)": lambda x: np.add(x, x),
    "np.float64(2) * x": lambda x: np.float64(2) * x,
    "np.float32(2) * x": lambda x: np.float32(2) * x,
    "x * 1j": lambda x: x * 1j,
}


@pytest.mark.parametrize("name", WEAK)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
def test_a_python_float_stays_weak(name, policy):
    """Python arithmetic on a Python float gives one, which takes the dtype of what it meets (NEP 50); NumPy's
    functions do not."""
    a = np.array([1.5, 2.5], np.float32)
    expected = a * WEAK[name](0.5)
    out, pull = pb.vjp(lambda x: a * WEAK[name](x), 0.5, policy=policy)
    assert out.dtype == expected.dtype
    assert out.tobytes() == expected.tobytes()
    (gradient,) = pull(np.ones(2))
    assert np.asarray(gradient).dtype == np.float64
    h = 1e-3
    slope = np.sum(a.astype(float) * np.real(WEAK[name](0.5 + h) - WEAK[name](0.5 - h))) / (2 * h)
    np.testing.assert_allclose(gradient, slope, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
@pytest.mark.parametrize("how", [lambda z: z * z, lambda z: z / (z + 1), lambda z: z**2, lambda z: np.multiply(z, z)])
def test_scalars_are_computed_as_numpy_computes_them(how, policy, rng):
    """NumPy's operators on its scalars round differently from its ufuncs; which one is called is the user's choice."""
    for _ in range(50):
        z = np.complex128(complex(*rng.normal(size=2)))
        value, _ = pb.value_and_grad(lambda z: np.real(how(z)), policy=policy)(z)
        assert value == np.real(how(z))
