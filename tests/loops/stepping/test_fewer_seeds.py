"""Steps of which some leaves have no cotangent: clocks, counters, and what is only looked at."""

import gc
from itertools import product

import numpy as np
import pytest

import pullback as pb
from pullback.loops.stepping.reverse_pass import Pass
from pullback.staging.generated import shelf
from pullback.testing.comparing.bits import same_bits

pytestmark = pytest.mark.usefixtures("nothing_is_known")
X = np.linspace(0.1, 1.0, 5)
N = 40
POLICIES = [pb.SaveAll(), pb.Binomial(4), pb.Recompute(), pb.Periodic(7), pb.Budget(20_000)]


def clock(x):
    """The time is counted in the state, and asked for by nobody after the loop."""
    _, u = pb.fori_loop(0, N, lambda k, s: (s[0] + 0.1, np.sin(s[1]) * 1.01 + 0.1 * x), (0.0, x))
    return np.sum(u**2)


def clock_in_the_force(x):
    _, u = pb.fori_loop(0, N, lambda k, s: (s[0] + 0.1, s[1] * 0.9 + np.cos(s[0]) * x), (0.0, x))
    return np.sum(u**2)


def until(x):
    _, u = pb.while_loop(lambda s: s[0] < 4.0, lambda s: (s[0] + 0.1, np.sin(s[1]) + x), (0.0, x))
    return np.sum(u**2)


def counted(x):
    _, u = pb.while_loop(lambda s: s[0] < N, lambda s: (s[0] + 1, np.sin(s[1]) + x), (0, x))
    return np.sum(u**2)


def looked_at(x):
    """The last change is in the state, as iterations to a fixed point have it."""
    u, _ = pb.fori_loop(0, N, lambda k, s: (np.cos(s[0]) * x, np.abs(np.cos(s[0]) * x - s[0])), (x, x))
    return np.sum(u**3)


def comes_and_goes(x):
    """Which leaves have a cotangent is another thing from step to step."""
    a, _, _ = pb.fori_loop(0, N, lambda k, s: (s[1] * 1.1, s[2] + x, s[0] * 0.9), (x, 2 * x, 3 * x))
    return np.sum(a**2)


def with_outputs(x):
    (_, u), ys = pb.scan(lambda s, _: ((s[0] + 0.1, np.sin(s[1]) + x), s[1] * s[0]), (0.0, x), length=N)
    return np.sum(u) + np.sum(ys[3])


def of_rows(x):
    rows = np.outer(np.arange(1.0, N + 1), x)
    _, u = pb.scan(lambda s, row: ((s[0] + 1.0, np.sin(s[1]) * row), None), (0.0, x), rows)[0]
    return np.sum(u)


PROGRAMS = [clock, clock_in_the_force, until, counted, looked_at, comes_and_goes, with_outputs, of_rows]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("f", PROGRAMS)
def test_the_bits_are_those_of_recorded_steps(f, policy):
    with pb.using(staging="off"):
        wanted = [pb.value_and_grad(f)(c * X) for c in (1.0, 0.7)]
    for c, both in ((1.0, wanted[0]), (0.7, wanted[1])):
        for _ in range(3):
            for given, expected in zip(pb.value_and_grad(f, policy=policy)(c * X), both, strict=True):
                assert same_bits(given, expected)


def test_pulls_by_other_seeds_of_one_record():
    """Each seed goes back by the function for the leaves that it names."""

    def f(x):
        return pb.fori_loop(0, N, lambda k, s: (s[0] * 0.9 + x, np.sin(s[1]) * 1.01 + 0.1 * x), (x, 2 * x))

    def pulled(which):
        _, pull = pb.vjp(lambda x: f(x)[which], X)
        return [pull(X) for _ in range(3)]

    with pb.using(staging="off"):
        wanted = [pulled(0)[0], pulled(1)[0]]
    for _, which in product(range(3), (0, 1)):
        assert all(same_bits(given, wanted[which]) for given in pulled(which))


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(4)])
@pytest.mark.parametrize("f", [clock, looked_at, comes_and_goes])
def test_few_steps_are_reversed_by_their_records(monkeypatch, f, policy):
    gradient = pb.grad(f, policy=policy)
    for _ in range(2):
        gradient(X)
    swept, enter = [], Pass.enter

    def counted(self, work, step, *args, **kwargs):
        swept.append(step)
        return enter(self, work, step, *args, **kwargs)

    monkeypatch.setattr(Pass, "enter", counted)
    gradient(X)
    assert len(swept) <= 4


@pytest.mark.parametrize("f", [clock, looked_at, of_rows])
def test_a_step_is_recorded_and_reversed_by_one_function(f):
    """As where each leaf has a cotangent."""
    gradient = pb.grad(f, policy=pb.Binomial(4))
    for _ in range(2):
        gradient(X)
    [stage] = [stage for shelf in shelf_values() for each in shelf.variants for stage in each.stages if stage.others]
    [other] = stage.others.values()
    assert None not in (other.both, other.leaf)
    assert not other.lacks_both


def shelf_values():
    return list(shelf._SHELVES.values())


def test_nothing_is_left_in_cycles():
    gradient = pb.grad(clock, policy=pb.Binomial(4))
    for _ in range(3):
        gradient(X)
    gc.collect()
    gc.disable()
    try:
        gradient(X)
        assert gc.collect() == 0
    finally:
        gc.enable()
