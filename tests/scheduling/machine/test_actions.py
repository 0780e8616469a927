import numpy as np
import pytest
from attrs.exceptions import FrozenInstanceError

from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, Transfer
from pullback.words.errors import PolicyError

PRINTED = {
    "Advance(0, 3)": Advance(0, 3),
    "Record(2)": Record(2),
    "Reverse(2)": Reverse(2),
    "Save('state', 3)": Save("state", 3),
    "Save('tape', 3, 'disk')": Save("tape", 3, "disk"),
    "Load('state', 3)": Load("state", 3, tier="memory"),
    "Delete('tape', 0)": Delete("tape", 0),
    "Transfer('state', 1, 'memory', 'disk')": Transfer("state", 1, "memory", "disk"),
    "EndForward()": EndForward(),
    "EndReverse()": EndReverse(),
}


@pytest.mark.parametrize("text", PRINTED)
def test_an_action_prints_as_its_constructor(text):
    action = PRINTED[text]
    assert repr(action) == text
    assert eval(text) == action  # noqa: S307  the text is the one above
    assert hash(eval(text)) == hash(action)  # noqa: S307


def test_actions_of_different_kinds_are_different():
    assert len(set(PRINTED.values())) == len(PRINTED)
    assert Record(2) != Reverse(2)
    assert Save("state", 3) != Load("state", 3)


def test_an_action_cannot_be_changed():
    with pytest.raises(
        FrozenInstanceError, match=r"can't set attribute|^$"
    ):  # the oldest attrs served leave the text out
        Advance(0, 3).stop = 4


@pytest.mark.parametrize("step", [2.0, np.float64(2), "2", None, True, [2]])
@pytest.mark.parametrize("make", [
    lambda k: Advance(0, k), lambda k: Advance(k, 3), Record, Reverse, lambda k: Save("state", k),
    lambda k: Load("tape", k), lambda k: Delete("state", k), lambda k: Transfer("state", k, "memory", "disk"),
])  # fmt: skip
def test_steps_are_whole_numbers(make, step):
    with pytest.raises(PolicyError, match=r"whole numbers, got .* of type .*pass int\("):
        make(step)
    assert make(np.int32(2)) == make(2)
    assert "2" in repr(make(np.int64(2)))
    assert "int64" not in repr(make(np.int64(2)))
