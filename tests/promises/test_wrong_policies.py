"""Drawn policies that are wrong: schedules of which actions are left out, exchanged, given twice or no actions at all.

What they give is the gradient of save-all, or an error of ours; and nothing of them stays.
"""

import random
import threading
from typing import Any

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, simulate

N = 7
X = np.linspace(0.2, 0.9, 4)
STRAYS = ("stray", None, ("Advance", 0, 1), EndForward(), EndReverse(), Save("state", 0), Load("tape", 3), Reverse(5))


@frozen
class Changed(pb.MemoryPolicy):
    """The actions of a policy that is right, some of them changed."""

    seed: int

    def actions(self, n: int, **_: Any) -> Any:
        draw = random.Random(self.seed)  # noqa: S311 - no secret is drawn
        actions: list[Any] = list(draw.choice((pb.Binomial(2), pb.Recompute(3), pb.Mixed(2))).schedule(n))
        for _ in range(draw.choice((0, 1, 1, 2))):
            k, j = draw.randrange(len(actions)), draw.randrange(len(actions))
            change = draw.randrange(6)
            if change == 0:
                del actions[k]
            elif change == 1:
                actions.insert(k, actions[j])
            elif change == 2:
                actions[k], actions[j] = actions[j], actions[k]
            elif change == 3:
                actions.insert(k, draw.choice(STRAYS))
            elif change == 4:
                del actions[k:]
            elif type(actions[k]) in (Record, Reverse, Save, Load, Delete):
                actions[k] = actions[k].__class__(*_moved(actions[k]))
            else:
                actions[k] = Advance(k % n, k % n + 1)
            actions = actions or [Advance(0, n)]
        yield from actions


def _moved(action: Any) -> tuple[Any, ...]:
    """The arguments of an action for the step after its own."""
    return (action.step + 1,) if type(action) in (Record, Reverse) else (action.kind, action.step + 1)


def by_function(x: Any) -> Any:
    return np.sum(pb.fori_loop(0, N, lambda k, u: u + 0.1 * np.sin(u) * k, x))


def by_marks(x: Any) -> Any:
    for k in pb.steps(N):
        x = x + 0.1 * np.sin(x) * k
    return np.sum(x)


def nested(x: Any) -> Any:
    def outer(k: Any, u: Any) -> Any:
        return pb.fori_loop(0, N, lambda j, v: v + 0.01 * np.sin(v) * (j + k), u)

    return np.sum(pb.fori_loop(0, 3, outer, x))


@pytest.mark.parametrize("f", [by_function, by_marks, nested])
def test_wrong_policies_give_errors_and_no_wrong_gradients(f):
    wanted, n_threads, refused = pb.grad(f)(X).tobytes(), threading.active_count(), 0
    for seed in range(60):
        for call in (
            lambda policy: pb.grad(f, policy=policy)(X),
            lambda policy: pb.vjp(f, X, policy=policy)[1](1.0)[0],
        ):
            try:
                assert call(Changed(seed)).tobytes() == wanted, seed
            except pb.PullbackError:
                refused += 1
    assert 20 < refused < 110
    assert pb.grad(f)(X).tobytes() == wanted
    assert threading.active_count() == n_threads


def test_what_the_simulator_accepts_is_carried_out():
    for seed in range(60):
        try:
            simulated = simulate(Changed(seed).schedule(N), N).n_forward
        except pb.PullbackError:
            continue
        _, pull = pb.vjp(by_function, X, policy=Changed(seed))
        pull(1.0)
        assert pull.report.n_forward == simulated, seed
