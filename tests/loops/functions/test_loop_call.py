"""Loop functions within the steps of others, and what a step does to leaves that carry no derivative."""

from typing import Any

import numpy as np
import pytest

import pullback as pb

POLICIES = [pb.SaveAll(), pb.Binomial(1), pb.Binomial(2), pb.Recompute(), pb.Periodic(2)]


def decays(k: int, u: Any) -> Any:
    return np.sin(u) * 0.9 + 0.1 * u


def two_loops(k: int, s: tuple[Any, Any]) -> tuple[Any, Any]:
    u, v = s
    first = pb.fori_loop(0, 3, decays, u)
    second = pb.fori_loop(0, 2, decays, first)
    return first, v + second


def two_checkpoints(k: int, s: tuple[Any, Any]) -> tuple[Any, Any]:
    u, v = s
    once = pb.checkpoint(lambda u: decays(0, decays(0, u)))
    first = once(u)
    return first, v + once(first)


def two_gradients(k: int, s: tuple[Any, Any]) -> tuple[Any, Any]:
    u, v = s
    slope = pb.grad(lambda u: np.sum(decays(0, u) ** 3))
    first = slope(u)
    return first * 0.5, v + slope(first) * 0.1


@pytest.mark.share(6, of=lambda **_: "")
@pytest.mark.parametrize("body", [two_loops, two_checkpoints, two_gradients])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_what_follows_an_operation_that_no_stage_follows_is_recorded_as_in_any_step(body: Any, policy: Any) -> None:
    """The trace of such a step was entered in the context of the call that was not followed, which was over: the second
    loop of a step met none, so that its operations stood one by one in the step."""
    x, y = np.random.default_rng(0).uniform(-1, 1, (2, 6))
    cts = tuple(np.random.default_rng(1).uniform(-1, 1, (2, 6)))
    found = []
    for staging in ("off", "numpy", "auto"):
        with pb.using(staging=staging):
            values, pull = pb.vjp(lambda x, y: pb.fori_loop(0, 30, body, (x, y)), x, y, policy=policy)
            found.append([a.tobytes() for a in (*values, *pull(cts))])
    assert found[0] == found[1] == found[2]


def test_the_second_loop_of_a_step_obeys_its_policy() -> None:
    def run(staging: str) -> int:
        def body(k: int, u: Any) -> Any:
            u = pb.fori_loop(0, 2, decays, u)
            return pb.fori_loop(0, 200, decays, u, policy=pb.Binomial(2))

        with pb.using(staging=staging):
            _, pull = pb.vjp(lambda x: pb.fori_loop(0, 4, body, x), np.ones(50))
            pull(np.ones(50))
            return int(pull.report.peak_bytes)

    assert run("numpy") < 2 * run("off")


def counts(k: Any, s: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
    """Writes to integers, of which it returns one twice."""
    n, m, u = s
    n[0] += 1
    m[1] += 2
    return n, n, u * n * 0.1 + m


LOOPS = {
    "fori_loop": lambda s: pb.fori_loop(0, 7, counts, s),
    "scan": lambda s: pb.scan(lambda s, t: (counts(t, s), None), s, np.arange(7))[0],
    "while_loop": lambda s: pb.while_loop(lambda q: q[1] < 7, lambda q: (counts(0, q[0]), q[1] + 1), (s, 0))[0],
}


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_step_writes_to_integers_of_its_own(name: str, staging: str, policy: Any) -> None:
    """They were those of the caller in the first step, and of the state that a re-run begins from; what was returned
    twice was one array."""
    loop = LOOPS[name]
    start = np.arange(3), np.arange(3) * 2, np.linspace(0, 1, 3)
    wanted = loop(tuple(leaf.copy() for leaf in start))
    with pb.using(staging=staging):
        values, pull = pb.vjp(loop, start, policy=policy)
        cts = [pull((None, None, np.ones(3)))[0][2].tobytes() for _ in range(3)]
        cts.append(pb.grad(lambda s: np.sum(loop(s)[2]), policy=policy)(start)[2].tobytes())
        forward, _ = pb.jvp(loop, (start,), ((None, None, np.ones(3)),))
    for found in (values, forward):
        assert [a.tobytes() for a in found] == [a.tobytes() for a in wanted]
    assert len(set(cts)) == 1
    assert start[0].tolist() == [0, 1, 2] and start[1].tolist() == [0, 2, 4]


def _reads(a: Any) -> Any:
    return lambda _, q: np.sin(q) * 0.9 + 0.1 * a


BUFFERS: dict[str, Any] = {
    "never written": lambda a, u, k: None,
    "written with plain values": lambda a, u, k: a.__setitem__(k % 3, 0.1 * k),
    "added to in place": lambda a, u, k: a.__iadd__(0.5),
    "written with what is traced": lambda a, u, k: a.__setitem__(k % 3, u[0]),
    "a view of it is written": lambda a, u, k: a[1:].__setitem__(0, 0.3),
}


@pytest.mark.share(10, of=lambda **_: "")
@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("policy", [*POLICIES, pb.Periodic(2, tier="disk"), pb.Binomial(5)], ids=repr)
@pytest.mark.parametrize("inside", [False, True])
def test_a_loop_in_a_step_reads_a_buffer(name: str, policy: Any, inside: bool) -> None:
    """That depends on no input, at first: it has its value whenever the loop is run again."""

    def f(x: Any) -> Any:
        a, u = np.array([0.1, 0.2, 0.3], like=x), x
        for k in pb.steps(6):
            a = np.full_like(x, 0.1 * k) if inside else a
            u = pb.fori_loop(0, 3, _reads(a), u)
            BUFFERS[name](a, u, k)
        return np.sum(u) + np.sum(a)

    x = np.array([0.3, -0.7, 0.9])
    for at in (x, 2 * x):
        expected = pb.grad(f)(at).tobytes()
        value, pull = pb.vjp(f, at, policy=policy)
        assert value == f(at)
        assert [pull(1.0)[0].tobytes() for _ in range(2)] == [expected] * 2
        assert pb.plan(f, at, policy=policy).peak_bytes == pull.report.peak_bytes
        pull.close()
