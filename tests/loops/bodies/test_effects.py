"""Effects are called once for each time that the program comes to them, under every policy and staging."""

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, -0.7, 1.1])
POLICIES = (
    None, pb.SaveAll(), pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(3), pb.Periodic(4, snapshots=1),
    pb.Periodic(3, tier="disk"),
)  # fmt: skip
STAGINGS = ("off", "auto", "numpy")


def fori(x, tell):
    def body(k, u):
        if k % 3 != 1:
            tell(k, u)
        v = np.sin(u) * x
        tell(k, v[0])
        return v

    return pb.fori_loop(2, 33, body, x)


def scanned(x, tell):
    def step(u, row):
        tell(row)
        return np.sin(u) * x + row, u

    u, us = pb.scan(step, x, np.linspace(0.0, 1.0, 29))
    return u + np.sum(us)


def waiting(x, tell):
    def body(c):
        tell(c)
        return c[0] * np.cos(x), c[1] + 1

    return pb.while_loop(lambda c: c[1] < 31, body, (x, 0))[0]


def asked(x, tell):
    """In the conditions, too, which are asked again with the steps."""

    def inner(u):
        return pb.while_loop(lambda c: (tell("in", c[1]), c[1] < 3)[1], lambda c: (np.sin(c[0]), c[1] + 1), (u, 0))[0]

    def condition(c):
        tell("before", c)
        return c[1] < 9

    return pb.while_loop(condition, lambda c: (inner(c[0]) * x, c[1] + 1), (x, 0))[0]


def nested(x, tell):
    def inner(k):
        def body(j, u):
            tell(k, j, u)
            return np.sin(u) * x

        return body

    def outer(k, u):
        tell("outer", k)
        v = pb.fori_loop(0, 1 + k % 4, inner(k), u)
        tell("after", v)
        return pb.fori_loop(0, 2, inner(-k), v)

    return pb.fori_loop(0, 11, outer, x)


def marked(x, tell):
    u = x
    for k in pb.steps(30):
        tell(k, u)
        u = np.sin(u) * x
    return u


def loop_in_marked(x, tell):
    u = x
    for k in pb.steps(9):
        body = lambda j, v: (tell(k, j, v), np.sin(v) * x)[1]  # noqa: B023, E731 - frozen when it is called
        u = pb.fori_loop(0, 3, body, u)
    return u


def checkpointed(x, tell):
    def part(u):
        tell(u)
        return np.sin(u) * x

    return pb.checkpoint(part)(pb.checkpoint(part)(x))


def unmarked(x, tell):
    u = x
    for k in range(60):
        tell(k, u)
        u = np.sin(u) * x
    return u


def in_staged(x, tell):
    @pb.staged
    def f(u):
        tell(u)
        return np.sin(u) * x

    u = x
    for _ in range(8):
        u = f(u)
    return u


def effects_in_effects(x, tell):
    @pb.effect
    def both(k):
        tell(k, "first")
        pb.grad(lambda w: pb.fori_loop(0, 2, lambda j, v: (tell(k, j), v * w)[1], w), policy=pb.Recompute())(2.0)

    def body(k, u):
        if k % 4 != 1:
            both(k)
        tell(k, u)
        return np.sin(u) * x

    return pb.fori_loop(0, 21, body, x)


def errors_that_are_caught(x, tell):
    @pb.effect
    def write(k):
        tell(k)
        if k % 3 == 0:
            raise OSError(28, "full")

    def body(k, u):
        try:
            write(k)
        except OSError as error:
            u = u * (0.5 if error.errno == 28 else 0.0)
        tell(k, u)
        return np.sin(u) * x

    return pb.fori_loop(0, 21, body, x)


PROGRAMS = (
    fori, scanned, waiting, asked, nested, marked, loop_in_marked, checkpointed, unmarked, in_staged,
    effects_in_effects, errors_that_are_caught,
)  # fmt: skip


def told_by(program, run):
    """What the effects of a run were told, and its result."""
    seen = []
    tell = pb.effect(lambda *args: seen.append(tuple(map(text, args))))
    return [np.asarray(part).tobytes() for part in run(lambda x: np.sum(program(x, tell)))], seen


def text(given):
    parts = given if isinstance(given, tuple) else (given,)
    for part in parts:
        assert not isinstance(part, pb.Tracer)
    return tuple(np.asarray(part).tobytes() if not isinstance(part, str) else part for part in parts)


@pytest.mark.share(8, of=lambda program, staging, policy: program)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("staging", STAGINGS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_an_effect_is_called_as_often_as_without_a_gradient(program, policy, staging):
    expected = told_by(program, lambda f: (f(X),))[1]
    assert expected

    def twice(f):
        out, pull = pb.vjp(f, X, policy=policy)
        found = pull(1.0)[0], pull(1.0)[0]
        pull.close()
        return out, *found

    with pb.using(staging=staging):
        found, seen = told_by(program, twice)
    assert seen == expected
    assert found == told_by(lambda x, _: program(x, lambda *args: None), twice)[0]


@pytest.mark.parametrize("policy", POLICIES[2:7], ids=repr)
def test_results_come_back(policy):
    count = iter(range(1000))
    ask = pb.effect(lambda: next(count))

    def f(x):
        def body(k, u):
            a = ask() if k % 2 else 0
            return np.sin(u) * x + 0.01 * a * ask()

        return np.sum(pb.fori_loop(0, 20, body, x))

    found = pb.grad(f, policy=policy)(X)
    assert next(count) == 30
    count = iter(range(1000))
    assert found.tobytes() == pb.grad(f)(X).tobytes()


def test_what_is_remembered_does_not_grow_with_the_steps():
    from pullback.loops.bodies.effects import Effects  # noqa: PLC0415

    effects, calls = Effects(), []
    for k in range(10_000):
        effects.runs += 1
        for _ in range(2 + (k == 5000)):
            effects.asked(k, lambda k=k: calls.append(k))
    assert len(calls) == 20_001
    assert (list(effects.firsts), list(effects.lasts)) == ([0, 5000, 5001], [4999, 5000, 9999])
    for k in (0, 4999, 5000, 5001, 9999):
        effects.runs += 1
        for _ in range(2 + (k == 5000)):
            effects.asked(k, lambda: calls.append("again"))
    assert len(calls) == 20_001


def test_an_array_is_refused():
    give = pb.effect(lambda u: u + 1)
    with pytest.raises(pb.PullbackError, match="the effect <lambda> returned ndarray; it may return None, a number or"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u * give(u), x)))(X)


def test_it_keeps_its_name():
    @pb.effect
    def tell(u: float) -> None:
        """Say it."""

    assert (tell.__name__, tell.__doc__) == ("tell", "Say it.")


def test_what_an_effect_binds_stays_as_the_program_left_it():
    lines = []
    tell = pb.effect(lines.append)

    def f(x):
        def body(k, u):
            tell(k)
            return np.sin(u) * x * (1 + 0 * len(lines))

        return np.sum(pb.fori_loop(0, 9, body, x))

    pb.grad(f, policy=pb.Binomial(2))(X)
    assert lines == list(range(9))


@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_what_an_effect_changes_is_its_own(policy):
    """Steps that are run again do not read it: it may be emptied meanwhile."""
    lines, rng = [], np.random.default_rng(1)
    tell = pb.effect(lambda k: lines.append((k, rng.random())))
    f = lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: (tell(k), np.sin(u) * x)[1], x))  # noqa: E731
    _, pull = pb.vjp(f, X, policy=policy)
    drawn = np.random.default_rng(1).random(10)
    assert lines == list(enumerate(drawn[:9]))
    lines.clear()
    assert pull(1.0)[0].tobytes() == pb.grad(lambda x: np.sum(fori_alone(x)))(X).tobytes()
    assert lines == []
    assert rng.random() == drawn[9]


def fori_alone(x):
    return pb.fori_loop(0, 9, lambda k, u: np.sin(u) * x, x)
