import pytest

from pullback import ScheduleError
from pullback.scheduling.graphs.graph_machine import GraphMachine, Operations, Step

GRAPH = Operations(isz=[4], sz=[4, 6], fc=[9, 7], bc=[2, 3], pi=[[0], []], po=[[], [0]], si=[[], []], so=[[], [0]])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([("Compute", 1)], r"Compute\(1\) does not fit: it reads \(0,\), of which one is missing"),
        ([("Compute", 0), ("Compute", 0)], "it is resident already"),
        ([("Drop", 0)], "it is not resident"),
        ([("Seed", 1)], "the result comes first"),
        ([("Pull", 1)], "its cotangent is not complete"),
        ([("Compute", 0), ("Compute", 1), ("Seed", 1), ("Drop", 0), ("Pull", 1)], "it reads"),
        ([("Run", 0)], "it is no step of a graph"),
        ([("Compute", 0), ("Compute", 1), ("Seed", 1)], "ends before every operation is pulled back"),
        ([("Compute", 0), ("Compute", 1), ("Seed", 1), ("Pull", 1)], "it takes 24 bytes and 23 are allowed"),
    ],
)
def test_what_does_not_fit_is_refused(steps, message):
    with pytest.raises(ScheduleError, match=message):
        GraphMachine(GRAPH, 23).carry_out([Step(*step) for step in steps])


def test_measured_by_hand():
    steps = [("Compute", 0), ("Compute", 1), ("Seed", 1), ("Drop", 1), ("Pull", 1), ("Drop", 0), ("Pull", 0)]
    machine = GraphMachine(GRAPH).carry_out([Step(*step) for step in steps])
    # the input and both values, then the cotangent of the result
    assert (machine.cost, machine.peak_bytes) == (9 + 7 + 2 + 3, 4 + 4 + 6 + 6)
