"""Bodies that do not always do the same: a shadow run sees it, and the bits stay those of recorded steps."""

import gc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from tests.programs.stages import BODIES as PROGRAMS
from tests.programs.stages import Program, Stage
from tests.staging.generated.both_ways import POLICIES, N, loop_over, measured, reasons, require_same, stages

import pullback as pb
from pullback.testing.comparing.bits import same_bits

X = np.array([0.3, -0.7, 1.1, 0.2])
C = np.array([1.5, 0.5, -0.25, 2.0])
TABLE = np.linspace(-1, 1, N)
SCRATCH = np.empty(4)


def branched(k, u, x):
    return np.sin(u) * x if k % 3 != 2 else u + np.cos(u) * 0.5


def sliced(k, u, x):
    v = u * x
    v[k % 3 :] += np.sin(u[: 4 - k % 3])
    return v


def counted(k, u, x):
    for _ in range(1 + k % 3):
        u = np.sin(u) * x
    return u * 0.9


def from_a_table(k, u, x):
    return np.tanh(u) * TABLE[k] + x


def with_a_new_array(k, u, x):
    return np.sin(u) * np.full(4, 0.1 * k) + x


def with_a_refilled_buffer(k, u, x):
    SCRATCH[:] = k * 0.1
    v = u * SCRATCH
    SCRATCH[:] = C
    return np.sin(v) * SCRATCH + x


def by_value(k, u, x):
    return u * x if pb.value(u)[0] > 0 else np.sin(u) + 0.2


def by_comparison(k, u, x):
    return np.where(u > 0.1, np.sin(u) * x, u * 0.5 + C)


def by_the_spec(k, u, x):
    parts = [u[j] * 0.5 for j in range(len(u))] if u.shape == (4,) and u.ndim == 1 and u.size == 4 else []
    return np.stack(parts) + np.sin(u) * x.dtype.itemsize * 0.1


def by_iteration(k, u, x):
    return np.stack([np.sin(one) for one in u]) * x


def in_place(k, u, x):
    u[1:] *= u[:-1]
    u += np.sin(u) * x
    u *= 0.5
    return u


def by_views(k, u, x):
    square = u.reshape(2, 2)
    row = square[0]
    square[1] += np.sin(row) * 0.3
    return square.T.reshape(4) * x + row.sum()


def with_an_array_of_zeros(k, u, x):
    new = np.zeros_like(u)
    new[:2] = np.sin(u[2:])
    new[2:] = u[:2] * x[:2]
    return new


def by_fancy_keys(k, u, x):
    v = u[np.array([0, 0, 2, 1])] * x
    v[[1, 3]] += np.sin(u[[0, 2]])
    return v


def by_products(k, u, x):
    m = u.reshape(2, 2)
    return np.tanh(m @ m.T + x[:2]).reshape(4)


def returning_what_entered(k, u, x):
    return u if k % 4 == 3 else u * 0.9 + x


BODIES = (
    branched, sliced, counted, from_a_table, with_a_new_array, with_a_refilled_buffer, by_value, by_comparison,
    by_the_spec, by_iteration, in_place, by_views, with_an_array_of_zeros, by_fancy_keys, by_products,
    returning_what_entered,
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_bits_are_those_of_recorded_steps(body):
    require_same(loop_over(body), X, X[::-1] * 1.5 + 0.1)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_they_are_staged(body):
    require_same(loop_over(body, 4 * N) if body is not from_a_table else loop_over(body), X, policies=(pb.SaveAll(),))
    assert stages()
    assert not reasons()


def test_a_branch_has_a_stage_for_each_side():
    require_same(loop_over(branched), X)
    assert len(stages()) == 2


def test_a_branch_on_a_value_that_comes_late_is_seen():
    def body(k, u, x):
        v = np.sin(u) * x
        if k == 9 and pb.value(v)[0] < 5:
            v = v * 2.0
        return v + 0.1

    require_same(loop_over(body), X)


def test_a_plain_operand_has_its_content_of_the_moment_of_its_operation():
    buffer = np.zeros(4)

    def body(k, u, x):
        buffer[:] = C
        v = u * buffer
        buffer[:] = x_plain
        return v * buffer + np.sin(v) * x

    x_plain = X * 0.5
    require_same(loop_over(body), X)
    assert stages()


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_body_is_called_once_a_step_whether_it_is_as_expected_or_not(policy):
    calls = {}

    def f(x, staging):
        ran = calls[staging] = []

        def body(k, u):
            ran.append(k)
            return np.sin(u) * x if k % 5 != 4 else u[::-1] * x

        return np.sum(pb.fori_loop(0, 20, body, x, staging=staging))

    for staging in ("off", "numpy"):
        pb.grad(lambda x, staging=staging: f(x, staging), policy=policy)(X)
    assert calls["off"] == calls["numpy"]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_generator_is_drawn_from_once_a_step(policy):
    def f(x):
        rng = np.random.default_rng(3)

        def body(k, u):
            u = np.sin(u) * rng.standard_normal(4)
            return u + rng.standard_normal() if k % 7 == 6 else u + x  # a mismatch after the first draw

        return np.sum(pb.fori_loop(0, 20, body, x)), rng.random()

    def of(staging):
        with pb.using(staging=staging):
            (value, drawn), pull = pb.vjp(f, X, policy=policy)
            return value, drawn, pull((1.0, 0.0))[0]

    assert same_bits(of("numpy"), of("off"))
    assert stages()


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_counter_counts_steps(policy):
    def of(staging):
        counter = [0]

        def body(k, u):
            counter[0] += 1
            return np.sin(u) * 0.9

        pb.grad(lambda x: np.sum(pb.fori_loop(0, N, body, x, staging=staging)), policy=policy)(X)
        return counter[0]

    assert of("numpy") == of("off")


def test_a_counter_that_is_read_is_an_operand_of_its_moment():
    def of(staging):
        counter = [0]

        def body(k, u):
            counter[0] += 1
            return np.sin(u) * counter[0] * 0.3

        return pb.grad(lambda x: np.sum(pb.fori_loop(0, N, body, x, staging=staging)))(X)

    assert same_bits(of("numpy"), of("off"))


def late(k, u, x):
    return np.sin(u) * x if k == 8 else np.sin(u) * 0.5


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_what_is_read_late(policy):
    require_same(loop_over(late), X, C, policies=[policy])


def test_what_an_object_has_and_is_read_late_raises_as_in_recorded_steps():
    def loss(x):
        model = SimpleNamespace(x=x)
        return np.sum(pb.fori_loop(0, N, lambda k, u: late(k, u, model.x if k == 8 else 0.5), x))

    said = []
    for staging in ("off", "numpy"):
        with pb.using(staging=staging), pytest.raises(pb.PullbackError) as raised:
            pb.grad(loss)(X)
        said.append((type(raised.value), str(raised.value)))
    assert said[0] == said[1]


@pytest.mark.share(2)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.parametrize("n_calls", [2, 4, 7, 14, 22])
def test_an_exception_at_any_operation_of_a_staged_step_leaves_nothing(policy, at, n_calls):
    left = [-1]

    def stop(place):
        if place == at:
            left[0] -= 1
        if left[0] == 0:
            raise ZeroDivisionError

    def attempt(budget):
        left[0] = budget

        def body(k, u):
            stop(1)
            v = np.sin(u)
            stop(2)
            v[1:] += u[:-1]
            stop(3)
            v = v * C if k % 6 else v[::-1] * C
            stop(4)
            return v

        pull = None
        try:
            _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, N, body, x, staging="numpy")), X.copy(), policy=policy)
            pull(1.0)
        except ZeroDivisionError:
            pass
        if pull is None:
            return 0
        pull.close()
        return pull.report.live_bytes

    attempt(-1)  # what is made once and kept is made here
    gc.collect()
    gc.disable()
    try:
        assert attempt(n_calls) == 0
        assert gc.collect() == 0
    finally:
        gc.enable()
    left[0] = -1
    require_same(loop_over(branched), X, policies=(policy,))


def test_a_warning_comes_as_often_as_in_recorded_steps():
    def body(k, u, x):
        return np.log(u - 0.5 * (k == 6)) * x

    def of(staging):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            measured(loop_over(body, 8), np.full(4, 1.4), pb.SaveAll(), staging)
        return {w.category for w in found}

    assert of("numpy") == of("off") == {RuntimeWarning}


@pytest.mark.share(8, of=lambda name, kind, dtype: name)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["fori_loop", "scan"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_the_bodies_of_drawn_programs(name, kind, dtype):
    program = Program((Stage(kind, name, 12), Stage(kind, name, 5)), 6, dtype)
    require_same(program, np.linspace(0.1, 0.9, 6).astype(dtype))
