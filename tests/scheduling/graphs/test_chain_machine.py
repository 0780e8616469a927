import pytest

from pullback import ScheduleError
from pullback.scheduling.graphs.chain_machine import Chain, ChainMachine, Stage

CHAIN = Chain(a=[5, 4, 5], abar=[8, 10], uf=[5, 5], ub=[9, 8], of=[0, 0], ob=[1, 0])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("Fwd", 2)], r"Fwd\(2\) does not fit: x_1 is not resident"),
        ([("Fwd", 1), ("Fwd", 1)], "x is resident already"),
        ([("Tape", 1), ("Tape", 1)], "the tape is resident already"),
        ([("Loss", 2)], "x_2 comes first"),
        ([("Bwd", 1)], "the cotangent of its result is not there"),
        ([("Fwd", 1), ("Fwd", 2), ("Loss", 2), ("Bwd", 2)], "its tape is not resident"),
        ([("Drop", 0)], "no such x to drop"),
        ([("DropTape", 1)], "no such tape to drop"),
        ([("Run", 1)], "it is no step of this chain"),
        ([("Fwd", 1)], "the schedule ends with the cotangent of x_None"),
        ([("Tape", 1), ("Tape", 2)], "it takes 23 bytes and 22 are allowed"),
    ],
)
def test_what_does_not_fit_is_refused(steps, message):
    with pytest.raises(ScheduleError, match=message):
        ChainMachine(CHAIN, 22).carry_out([Stage(*step) for step in steps])


def test_measured_by_hand():
    steps = [("Tape", 1), ("Tape", 2), ("Loss", 2), ("Bwd", 2), ("Bwd", 1)]
    machine = ChainMachine(CHAIN).carry_out([Stage(*step) for step in steps])
    assert (machine.cost, machine.peak_bytes) == (27, 5 + 8 + 10 + 5)
