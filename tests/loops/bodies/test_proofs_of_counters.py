"""Bodies that count in the state may rest where nothing is decided by the number; in others they run in each step. The
bits are those of recorded steps."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing.comparing.bits import same_bits
from pullback.words.structures import flatten

pytestmark = pytest.mark.usefixtures("nothing_is_known")
N = 90
X, C, TABLE = np.linspace(0.1, 0.9, 4), np.linspace(-0.5, 0.5, 4), np.linspace(0.5, 1.5, 60).reshape(15, 4)
POLICIES = (pb.SaveAll(), pb.Binomial(4), pb.Recompute(9), pb.Periodic(30), pb.Budget("1 MB"))


def counted(n, u, c):
    return n + 1, u * 0.99 + 0.01 * c


def as_a_factor(n, u, c):
    return n + 1, u * 0.99 + 0.001 * n * c


def of_a_table(n, u, c):
    return (n + 1) % 15, u * 0.9 + 0.01 * TABLE[n] * c


def in_a_function(n, u, c):
    return n * 3 % 101, u * np.cos(0.01 * n) + 0.01 * c


def goes_out_of_range(n, u, c):
    return (n * 7 + 1) % 2**61, u * 0.9 + 1e-9 * np.tanh(0.1 * (n % 11)) * c


def in_a_branch(n, u, c):
    return n + 1, u * 0.99 if n % 7 else u * c


def as_a_bound(n, u, c):
    return n + 1, u * 0.99 + 0.01 * np.sum(u[n % 3 :]) * c


def as_a_place(n, u, c):
    return n + 1, u * 0.99 + 0.01 * u[n % 4] * c


def written_by(n, u, c):
    u = u * 0.99
    u[n % 3 : n % 3 + 2] += 0.01 * c[:2]
    return n + 1, u


RESTING = (counted, as_a_factor, of_a_table, in_a_function)
RUNNING = (goes_out_of_range, in_a_branch, as_a_bound, as_a_place, written_by)
CARRIES = {
    "in front": (lambda n, x: (n, x), lambda f, c: lambda s: f(s[0], s[1], c)),
    "unpacked": (lambda n, x: (n, x), lambda f, c: lambda s: f(*s, c)),
    "behind": (lambda n, x: (x, n), lambda f, c: lambda s: f(s[1], s[0], c)[::-1]),
    "within": (lambda n, x: ((n, 2.0), x), lambda f, c: lambda s: _within(s, f(s[0][0], s[1], c))),
}


def _within(s, after):
    return (after[0], s[0][1] * 0.99), after[1]


def measured(body, carry, policy, staging, form="fori_loop", start=0):
    begin, made = CARRIES[carry]

    def f(x, c):
        step, init = made(body, c), begin(start, x)
        if form == "fori_loop":
            last = pb.fori_loop(0, N, lambda _, s: step(s), init)
        elif form == "while_loop":
            last = pb.while_loop(lambda t: t[0] < N, lambda t: (t[0] + 1.0, step(t[1])), (0.0, init))[1]
        else:
            last, ys = pb.scan(lambda s, _: (step(s), s), init, length=N)
            return sum(np.sum(np.sin(leaf)) for leaf in flatten((last, ys))[0])
        return sum(np.sum(np.sin(leaf)) for leaf in flatten(last)[0])

    with pb.using(policy, staging=staging):
        return [pb.value_and_grad(f, (0, 1))(X, C) for _ in range(3)][-1]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("body", [*RESTING, *RUNNING], ids=lambda body: body.__name__)
def test_the_bits_are_those_of_recorded_steps(body, policy, rested):
    assert same_bits(measured(body, "in front", policy, "numpy"), measured(body, "in front", policy, "off"))
    if body in RESTING:
        assert sum(rested) >= 2 * (N // 2)
    elif body is not goes_out_of_range:
        assert not rested


@pytest.mark.parametrize("form", ["fori_loop", "while_loop", "scan"])
@pytest.mark.parametrize("carry", [carry for carry in CARRIES if carry != "unpacked"])
@pytest.mark.parametrize("start", [0, np.int64(3)], ids=["Python's", "NumPy's"])
def test_the_body_rests_in_each_form(form, carry, start, rested):
    for policy in POLICIES[:2]:
        rested.clear()
        found = measured(of_a_table, carry, policy, "numpy", form, start)
        assert same_bits(found, measured(of_a_table, carry, policy, "off", form, start))
        assert sum(rested) >= N // 2 or (form == "while_loop" and policy is not POLICIES[0])


def test_an_array_that_counts_is_the_steps_own(rested):
    """A body may write to it; one that does runs in each step."""

    def written(s):
        n, u = s
        n += 1
        return n, u * 0.99 + 0.001 * n[0]

    def fresh(s):
        n, u = s
        return n + 1, u * 0.99 + 0.001 * n[0]

    for body in (written, fresh):
        for policy in POLICIES:
            start, found = np.arange(3), []

            def f(x, body=body, start=start):
                n, u = pb.fori_loop(0, N, lambda _, s: body(s), (start, x))
                return np.sum(u**2) + np.sum(n)

            for staging in ("off", "numpy", "numpy"):
                with pb.using(policy, staging=staging):
                    found.append(pb.value_and_grad(f)(X))
            assert same_bits(found[0], found[1])
            assert same_bits(found[0], found[2])
            assert start.tolist() == [0, 1, 2]
        assert bool(rested) == (body is fresh)
        rested.clear()


def test_a_number_that_becomes_another_type_is_looked_at_again():
    """Python's number is NumPy's after the first step, and the step is another one."""
    one = np.int64(1)

    def f(x):
        n, u = pb.fori_loop(0, N, lambda _, s: (s[0] + one, s[1] * 0.99 + s[0]), (0, x))
        return np.sum(u) + n

    with pb.using(staging="off"):
        wanted = pb.value_and_grad(f)(X)
    for policy in POLICIES:
        with pb.using(policy, staging="numpy"):
            for _ in range(2):
                assert same_bits(pb.value_and_grad(f)(X), wanted)
