"""check_policy: the policies of the library pass, and broken ones are found by name."""

import itertools
import random

import numpy as np
import pytest
from attrs import Factory, frozen
from tests.programs.policies import every_state

import pullback.testing.policies.policy_check as module
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.programs.marks.step_marks import steps
from pullback.scheduling.machine.actions import Record, Save
from pullback.testing import check_policy
from pullback.words.errors import CheckError, PolicyError

X = np.array([0.3, 0.8])


@frozen
class EveryState(MemoryPolicy):
    """Right: a snapshot of each state, each step run twice."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        return every_state(n)


@frozen
class Forgetful(EveryState):
    """Wrong: reverses a step that was never recorded."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for action in super().actions(n, state_bytes=state_bytes, tape_bytes=tape_bytes):
            if not isinstance(action, Record):
                yield action


@frozen
class Refusing(MemoryPolicy):
    """Wrong: refuses whatever it is asked for."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        raise PolicyError(f"not {n} steps")
        yield


@frozen
class Crashing(MemoryPolicy):
    """Wrong: a mistake in the generator."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        yield Save("state", 0 if n else {}["n"])


@frozen
class Moody(MemoryPolicy):
    """Wrong: another valid schedule each time it is asked."""

    mood: random.Random = Factory(lambda: random.Random(1))  # noqa: S311 - no secret

    def begin(self, n, *, state_bytes, tape_bytes):
        chosen = SaveAll() if self.mood.random() < 0.5 else Recompute(1 if n is None else max(1, n))
        return chosen.begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)


def relax(x):
    for k in steps(5):
        x = x + 0.1 * np.sin(x) / (k + 1)
    return x


@pytest.mark.parametrize(
    "policy", [SaveAll(), Recompute(), Recompute(3), Binomial(1), Binomial(3), EveryState()], ids=repr
)
def test_right_policies_pass(policy):
    check_policy(policy)


@pytest.mark.parametrize("policy", [SaveAll(), Recompute(), Binomial(2)], ids=repr)
def test_right_policies_pass_on_a_given_program(policy):
    check_policy(policy, lambda t, y: {"out": relax(t["x"]) * y}, {"x": X, "n": 3}, 2.0)


def test_invalid_action():
    with pytest.raises(
        CheckError, match=r"invalid action: the schedule of Forgetful\(\) for 1 steps with state_bytes=0.*Reverse"
    ):
        check_policy(Forgetful())


def test_every_length_refused():
    with pytest.raises(
        CheckError, match=r"every length refused: Refusing\(\) refused lengths 0 to 100: .*; plan at least one"
    ):
        check_policy(Refusing())


def test_a_schedule_that_raises():
    with pytest.raises(
        CheckError, match=r"schedule raised: the schedule of Crashing\(\) for 0 steps .* raised KeyError: 'n'"
    ):
        check_policy(Crashing())


def test_a_schedule_that_is_not_repeatable():
    with pytest.raises(CheckError, match=r"schedule not repeatable: two schedules of .* differ"):
        check_policy(Moody())


def test_every_fault_is_listed():
    with pytest.raises(CheckError, match="schedule not repeatable") as caught:
        check_policy(Moody(), relax, X)
    assert "wrong forecast: relax " in str(caught.value)
    assert "forward steps, the simulator predicts" in str(caught.value)


def test_other_bits():
    counter = itertools.count(1)

    def drifting(x):
        return np.sin(x) * (1 + 1e-12 * next(counter))

    with pytest.raises(
        CheckError,
        match=r"other bits: the cotangent of leaf 0 of drifting under Binomial\(2\) differs from SaveAll\(\)'s by",
    ) as caught:
        check_policy(Binomial(2), drifting, X)
    assert "other value: drifting under" in str(caught.value)
    assert "drifting at a second input" in str(caught.value)


def test_bytes_left(monkeypatch):
    class Leaking:
        """A pull whose ledger does not come down to zero."""

        def __init__(self, pull):
            self.pull = pull

        def __call__(self, ct):
            return self.pull(ct)

        def close(self):
            """Keeps everything."""

        @property
        def report(self):
            return self.pull.report

    def vjp(f, *args, policy):
        out, pull = module_vjp(f, *args, policy=policy)
        return out, Leaking(pull)

    module_vjp = module.vjp
    monkeypatch.setattr(module, "vjp", vjp)
    with pytest.raises(
        CheckError, match=r"bytes left: relax under SaveAll\(\) holds \d+ bytes after pull.close\(\), expected 0"
    ):
        check_policy(SaveAll(), relax, X)


def test_a_program_that_raises():
    def refuses(x):
        return float(x[0])

    with pytest.raises(CheckError, match=r"run raised: refuses under SaveAll.* raised ConversionError"):
        check_policy(SaveAll(), refuses, X)


@frozen
class Known(EveryState):
    """Refuses every length that a program has."""

    def begin(self, n, *, state_bytes, tape_bytes):
        if n != 100:
            raise PolicyError(f"not {n} steps")
        return super().begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)


def test_every_program_refused():
    with pytest.raises(CheckError, match="program refused: vibrating_string: not"):
        check_policy(Known())


def test_no_policy():
    with pytest.raises(TypeError, match=r"check_policy takes a memory policy, got .*Binomial.*; pass an instance"):
        check_policy(Binomial)


def test_nothing_to_differentiate():
    with pytest.raises(ValueError, match="no argument of relax is floating or complex"):
        check_policy(SaveAll(), relax, 3)
