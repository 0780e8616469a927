"""Copies of plain arrays that records read: one for each distinct content, whatever arrays held it."""

import numpy as np
import pytest

from pullback.recording.tape import Tape
from pullback.tracing.tracer import KINDS

N = 200


def arrays(order):
    """Of four contents, three of which are alike in all elements but one."""
    for k in (0, 1, 2, 0, 3, 2, 1):
        made = np.zeros((2, N))
        made[1, 7] = k % 3
        made[0, 0] = k // 3
        yield k, made if order == "dense" else np.repeat(made, 2, axis=1)[:, ::2]


@pytest.mark.parametrize("order", ["dense", "gaps"])
def test_equal_contents_share_a_copy_and_others_do_not(order):
    tape, held = Tape(1, KINDS), {}
    for k, array in arrays(order):
        copy = tape.keep(array)
        assert copy.tobytes() == array.tobytes() and not np.shares_memory(copy, array)
        assert held.setdefault(k, copy) is copy
    assert len({id(copy) for copy in held.values()}) == 4


def test_what_was_kept_stays_when_the_array_is_changed():
    tape, array = Tape(1, KINDS), np.arange(float(N))
    first = tape.keep(array)
    array[7] = -1.0
    second = tape.keep(array)
    assert first[7] == 7.0 and second[7] == -1.0
    array[7] = 7.0
    assert tape.keep(array) is first
    assert tape.keep(array.view(np.int64)).dtype == np.int64
    assert tape.keep(-np.zeros(N)).tobytes() != tape.keep(np.zeros(N)).tobytes()
