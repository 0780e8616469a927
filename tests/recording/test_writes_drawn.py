"""Views and writes, drawn step by step: a world of tracers must be NumPy's world bit for bit, and its gradient the
complex step of it."""

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from tests.programs import naive

import pullback as pb

LIKE = {
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "full": lambda a: np.full_like(a, 0.7),
    "empty, filled": lambda a: _filled(np.empty_like(a)),
    "zeros like=": lambda a: np.zeros((3, 2), like=a) if not isinstance(a, np.ndarray) else np.zeros((3, 2), a.dtype),
    "copy": lambda a: a.copy(),
    "np.copy": np.copy,
}
UNARY = {
    "sin": np.sin,
    "tanh": np.tanh,
    "negative": np.negative,
    "square": np.square,
    "times two": lambda a: 2 * a,
    "exp of tanh": lambda a: np.exp(np.tanh(a)),
}
BINARY = {"add": operator.add, "multiply": operator.mul, "subtract": operator.sub}
IN_PLACE = {"+=": operator.iadd, "*=": operator.imul, "-=": operator.isub}
VIEWS = {
    "[1:]": lambda a: a[1:],
    "[:-1]": lambda a: a[:-1],
    "[::2]": lambda a: a[::2],
    "[::-1]": lambda a: a[::-1],
    "[..., 0]": lambda a: a[..., 0],
    "[..., 1:]": lambda a: a[..., 1:],
    "[0]": lambda a: a[0],
    "[0, ...]": lambda a: a[0, ...],
    "[None]": lambda a: a[None],
    "[...]": lambda a: a[...],
    "T": lambda a: a.T,
    "transpose": np.transpose,
    "swapaxes": lambda a: a.swapaxes(0, -1),
    "ravel": lambda a: a.ravel(),
    "reshape": lambda a: a.reshape(-1),
    "reshape F": lambda a: a.reshape(-1, order="F"),
    "reshape (1, -1)": lambda a: np.reshape(a, (1, -1)),
    "squeeze": np.squeeze,
    "flip": np.flip,
    "broadcast_to": lambda a: np.broadcast_to(a, (2, *a.shape)),
}
KEYS = {
    "...": lambda shape: Ellipsis,
    "0": lambda shape: 0,
    "-1": lambda shape: -1,
    "[1:]": lambda shape: slice(1, None),
    "[:-1]": lambda shape: slice(None, -1),
    "[::2]": lambda shape: slice(None, None, 2),
    "[..., -1]": lambda shape: (Ellipsis, -1),
    "[..., ::-1]": lambda shape: (Ellipsis, slice(None, None, -1)),
    "duplicates": lambda shape: [0, 0, -1],
    "array": lambda shape: np.array([-1, 0]),
    "column array": lambda shape: (Ellipsis, np.array([0, -1])),
    "mask": lambda shape: np.indices(shape).sum(axis=0) % 2 == 0,
    "row mask": lambda shape: np.arange(shape[0]) % 2 == 0,
}


def _filled(a):
    a.fill(-0.4)
    return a


class World:
    """Arrays by number: plain, complex, or tracers. ``perform`` is one line of a user's program."""

    def __init__(self, x: Any) -> None:
        self.env: list[Any] = [x]
        self.constants = [np.array([0.5, -1.5]), np.linspace(-1, 1, 6).reshape(3, 2), np.array(0.25)]

    def source(self, source: Any) -> Any:
        """What is written: an array of the world, a plain array, or a number."""
        kind, value = source
        return self.env[value] if kind == "array" else self.constants[value] if kind == "constant" else value

    def perform(self, what: str, k: int, *details: Any) -> None:
        """Carry out one operation on array ``k``."""
        getattr(self, f"do_{what}")(k, *details)

    def do_create(self, k, how):
        self.env.append(LIKE[how](self.env[k]))

    def do_unary(self, k, name):
        self.env.append(UNARY[name](self.env[k]))

    def do_binary(self, k, name, source):
        self.env.append(BINARY[name](self.env[k], self.source(source)))

    def do_view(self, k, name):
        self.env.append(VIEWS[name](self.env[k]))

    def do_set(self, k, key, source):
        self.env[k][KEYS[key](self.env[k].shape)] = self.source(source)

    def do_in_place(self, k, name, source):
        self.env[k] = IN_PLACE[name](self.env[k], self.source(source))

    def do_item_in_place(self, k, key, name, source):
        a, place = self.env[k], KEYS[key](self.env[k].shape)
        a[place] = IN_PLACE[name](a[place], self.source(source))

    def do_add_at(self, k, key, source, subtract):
        a, place, value = self.env[k], KEYS[key](self.env[k].shape), self.source(source)
        if isinstance(a, np.ndarray) and np.ndim(value) > np.ndim(a[place]):
            # NumPy 2.4 should refuse it; with a key such as (Ellipsis, -1) it reads beyond its iterator's dimensions,
            # and may die of it.
            raise ValueError("more dimensions than are written to")
        (np.subtract if subtract else np.add).at(a, place, value)

    def do_fill(self, k, value):
        self.env[k].fill(value)

    def do_out(self, k, name, j, source):
        ufunc = {"add": np.add, "multiply": np.multiply, "subtract": np.subtract}[name]
        result = ufunc(self.env[j], self.source(source), out=self.env[k])
        assert result is self.env[k]

    def do_copyto(self, k, source):
        np.copyto(self.env[k], self.source(source))

    def do_swap(self, k, how):
        a = self.env[k]
        if how == "views":  # the trap: NumPy writes the first before it reads the second
            a[0], a[-1] = a[-1], a[0]
        elif how == "copies":
            a[0], a[-1] = a[-1].copy(), a[0].copy()
        else:
            a[[0, -1]] = a[[-1, 0]]

    def do_spoil(self, k, value):
        """A plain array that may have been read is changed afterwards: earlier reads must keep what they read."""
        self.constants[k][...] = value

    def loss(self) -> Any:
        """A scalar that depends on every array."""
        total = 0.0
        for k, a in enumerate(self.env):
            total = total + np.sum(a * (0.3 + 0.1 * k))
        return total


class ViewsAndWrites(RuleBasedStateMachine):
    """Draws a program while NumPy runs it; at the end tracers and complex step run the same program."""

    policies: tuple[Any, ...] = ()

    @initialize(
        shape=st.sampled_from(((3, 2), (4,), (2, 3), (3, 1), (2, 2, 2), (1,))),
        order=st.sampled_from("CF"),
        seed=st.integers(0, 99),
    )
    def begin(self, shape, order, seed):
        self.x = np.asarray(np.random.default_rng(seed).uniform(-1, 1, shape), order=order)
        self.world = World(self.x.copy(order="K"))
        self.log: list[tuple[Any, ...]] = []
        self.states: list[list[Any]] = []

    def arrays(self):
        """Numbers of the arrays that may be written to."""
        return [k for k, a in enumerate(self.world.env) if isinstance(a, np.ndarray) and a.flags.writeable]

    def try_it(self, *step):
        """Perform a step unless NumPy refuses it; it is rehearsed on complex copies first, since a refused write may
        be half done."""
        rehearsal = replayed(self.log, self.x.astype(complex, order="K"))
        try:
            rehearsal.perform(*step)
        except (ValueError, IndexError, TypeError, DeprecationWarning):  # NumPy warns today of what it will refuse
            return
        if any(np.size(a) > 60 or np.any(np.abs(a) > 1e3) for a in rehearsal.env):
            return
        self.world.perform(*step)
        self.log.append(step)
        self.states.append([np.array(a, order="K") for a in self.world.env])

    def pick(self, data, *, writable=False):
        """An array's number."""
        return data.draw(st.sampled_from(self.arrays() if writable else range(len(self.world.env))))

    def source(self, data):
        """Something to write or combine with."""
        return data.draw(
            st.one_of(
                st.tuples(st.just("array"), st.integers(0, len(self.world.env) - 1)),
                st.tuples(st.just("constant"), st.integers(0, 2)),
                st.tuples(st.just("number"), st.sampled_from((0.0, 2.0, -0.5, 3))),
            )
        )

    @precondition(lambda self: len(self.world.env) < 12)
    @rule(data=st.data(), how=st.sampled_from(sorted(LIKE)))
    def create(self, data, how):
        self.try_it("create", self.pick(data, writable=True), how)

    @precondition(lambda self: len(self.world.env) < 12)
    @rule(data=st.data(), name=st.sampled_from(sorted(UNARY)))
    def unary(self, data, name):
        self.try_it("unary", self.pick(data), name)

    @precondition(lambda self: len(self.world.env) < 12)
    @rule(data=st.data(), name=st.sampled_from(sorted(BINARY)))
    def binary(self, data, name):
        self.try_it("binary", self.pick(data), name, self.source(data))

    @precondition(lambda self: len(self.world.env) < 12)
    @rule(data=st.data(), name=st.sampled_from(sorted(VIEWS)))
    def view(self, data, name):
        self.try_it("view", self.pick(data, writable=True), name)

    @rule(data=st.data(), key=st.sampled_from(sorted(KEYS)))
    def set(self, data, key):
        self.try_it("set", self.pick(data, writable=True), key, self.source(data))

    @rule(data=st.data(), name=st.sampled_from(sorted(IN_PLACE)))
    def in_place(self, data, name):
        self.try_it("in_place", self.pick(data), name, self.source(data)) if self.arrays() else None

    @rule(data=st.data(), key=st.sampled_from(sorted(KEYS)), name=st.sampled_from(sorted(IN_PLACE)))
    def item_in_place(self, data, key, name):
        self.try_it("item_in_place", self.pick(data, writable=True), key, name, self.source(data))

    @rule(data=st.data(), key=st.sampled_from(sorted(KEYS)), subtract=st.booleans())
    def add_at(self, data, key, subtract):
        self.try_it("add_at", self.pick(data, writable=True), key, self.source(data), subtract)

    @rule(data=st.data(), value=st.sampled_from((0.0, 1.5)))
    def fill(self, data, value):
        self.try_it("fill", self.pick(data, writable=True), value)

    @rule(data=st.data(), name=st.sampled_from(sorted(BINARY)))
    def out(self, data, name):
        self.try_it("out", self.pick(data, writable=True), name, self.pick(data), self.source(data))

    @rule(data=st.data())
    def copyto(self, data):
        self.try_it("copyto", self.pick(data, writable=True), self.source(data))

    @rule(data=st.data(), how=st.sampled_from(("views", "copies", "fancy")))
    def swap(self, data, how):
        self.try_it("swap", self.pick(data, writable=True), how)

    @rule(k=st.integers(0, 2), value=st.sampled_from((9.0, -3.0)))
    def spoil(self, k, value):
        self.try_it("spoil", k, value)

    def teardown(self):
        if not hasattr(self, "log"):
            return
        before = self.x.copy(order="K")
        gradient = pb.grad(self.traced)(self.x)
        assert self.x.tobytes() == before.tobytes(), "the argument was changed"
        right = naive.complex_step(lambda x: replayed(self.log, x).loss(), self.x)
        np.testing.assert_allclose(gradient, right, rtol=1e-9, atol=1e-9 * (1 + np.abs(right).max(initial=0)))
        for policy in self.policies:
            assert pb.grad(self.traced, policy=policy)(self.x).tobytes() == gradient.tobytes(), policy
            assert (
                pb.grad(lambda x: self.traced(x, pb.steps(self.log)), policy=policy)(self.x).tobytes()
                == gradient.tobytes()
            ), (
                policy,
                "marked",
            )

    def traced(self, x, log=None):
        """The program on tracers, compared with NumPy's world after every line."""
        world = World(x)
        for step, state in zip(self.log if log is None else log, self.states, strict=True):
            world.perform(*step)
            for k, (ours, numpys) in enumerate(zip(world.env, state, strict=True)):
                assert pb.value(ours).tobytes() == numpys.tobytes(), (
                    f"after {step} array {k} is {pb.value(ours)!r}, NumPy has {numpys!r}"
                )
                assert ours.shape == numpys.shape
        return world.loss()


class ViewsAndWritesUnderPolicies(ViewsAndWrites):
    """The same programs, and the same bits under every policy, without marks and with every line marked as a step."""

    policies = (pb.Recompute(), pb.Recompute(2), pb.Binomial(1), pb.Binomial(3))


def replayed(log: list[tuple[Any, ...]], x: Any) -> World:
    """The world after the program, on plain arrays of any dtype; starts from a copy of ``x``."""
    world = World(x.copy(order="K"))
    for step in log:
        world.perform(*step)
    return world


def test_views_and_writes():
    run_state_machine_as_test(ViewsAndWrites, settings=settings(max_examples=40, stateful_step_count=15))


def test_views_and_writes_under_policies():
    run_state_machine_as_test(ViewsAndWritesUnderPolicies, settings=settings(max_examples=40, stateful_step_count=15))


@pytest.mark.slow
@pytest.mark.parametrize("machine", [ViewsAndWrites, ViewsAndWritesUnderPolicies])
def test_many_views_and_writes(machine):
    run_state_machine_as_test(machine, settings=settings(max_examples=10_000, stateful_step_count=25))


def _reads_before_and_after(u):
    t = np.sin(u)
    b = t[:]
    b[1:] += 0.1 * b[:-1]
    w, v = t * 0.3, t * 0.7
    return w + v * v + b * 1.1  # three contributions to the cotangent of t: their order decides bits


def _writes_by_a_function(u):
    t = np.sin(u)
    b = t[:]
    np.cumsum(b, out=b)  # returns a stale view
    w, v = np.tanh(t), t * 0.7
    return w + v * v + b * 1.1


@pytest.mark.parametrize(
    "policy", [pb.Budget("1 MB"), pb.Budget("60 kB"), pb.Binomial(2), pb.Mixed(2), pb.Keep(np.sin)], ids=str
)
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("step", [_reads_before_and_after, _writes_by_a_function])
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_a_view_is_derived_again_at_one_place_under_every_policy(policy, staging, step):
    def loop(x):
        return np.sum(pb.fori_loop(0, 5, lambda _, u: step(u), x))

    def steps(x):
        for _ in pb.steps(5):
            x = step(x)
        return np.sum(x)

    x = np.random.default_rng(0).standard_normal(50)
    for f in (loop, steps):
        with pb.using(staging="off"):
            expected = pb.grad(f)(x)
        with pb.using(staging=staging):
            assert pb.grad(f, policy=policy)(x).tobytes() == expected.tobytes()
