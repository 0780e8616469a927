import pytest

from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Machine, Record, Reverse, Save, Transfer
from pullback.words.errors import ScheduleError

RECORDED = [Save("state", 0), Advance(0, 1), Record(1)]
SWEPT = [*RECORDED, EndForward()]
REVERSED = [*SWEPT, Reverse(1), Load("state", 0), Delete("state", 0), Record(0), Reverse(0)]

# name: (steps, accepted actions, refused action, what the message says)
REFUSED = {
    "load unsaved": (
        2,
        [],
        Load("state", 0),
        r"Load\('state', 0\) does not fit: no state 0 is stored in 'memory' \(x_0 live.*Save\('state', 0",
    ),
    "load other tier": (
        2,
        [Save("state", 0)],
        Load("state", 0, "disk"),
        "no state 0 is stored in 'disk'.*stored: state 0 in 'memory'",
    ),
    "load deleted": (2, [Save("state", 0), Delete("state", 0)], Load("state", 0), "no state 0 is stored"),
    "load tape on tape": (3, [Record(0), Save("tape", 0), Record(1)], Load("tape", 0), "WORK holds the tape of step 1"),
    "double save": (2, [Save("state", 0)], Save("state", 0), "saved already.*Delete it in between"),
    "save not live": (2, [Advance(0, 1)], Save("state", 0), r"x_0 is not live \(x_1 live"),
    "save no tape": (2, [], Save("tape", 0), r"the tape of step 0 is not in WORK.*Record\(0\) first"),
    "save saved tape": (
        2,
        [Record(0), Save("tape", 0), Delete("tape", 0)],
        Save("tape", 0),
        "the tape of step 0 is not in WORK",
    ),
    "unknown kind": (2, [], Save("snapshot", 0), "there is no kind 'snapshot'.*'state' and 'tape'"),
    "unknown kind loaded": (2, [], Load("snapshot", 0), "there is no kind 'snapshot'"),
    "advance not live": (
        4,
        [Advance(0, 2)],
        Advance(1, 3),
        r"Advance\(1, 3\) does not fit: x_1 is not live.*Load\('state', 1\)",
    ),
    "advance nothing": (4, [], Advance(0, 0), "it runs no step"),
    "advance back": (4, [Advance(0, 2)], Advance(2, 1), "it runs no step"),
    "advance past the end": (4, [], Advance(0, 5), r"the steps left end at x_4.*Advance to x_4 at most"),
    "advance reversed steps": (2, [*SWEPT, Reverse(1), Load("state", 0)], Advance(0, 2), "the steps left end at x_1"),
    "record not live": (4, [], Record(1), "x_1 is not live"),
    "record on a tape": (
        4,
        [Record(0)],
        Record(1),
        r"WORK holds the tape of step 0.*Reverse\(0\) or Save\('tape', 0\) first",
    ),
    "record past the end": (1, [Record(0), Save("tape", 0)], Record(1), "the steps left end at x_1"),
    "no lookback where n is known": (4, [Advance(0, 1)], Record(0), "x_0 is not live"),
    "reverse in the sweep": (2, RECORDED, Reverse(1), "the forward sweep has not ended"),
    "reverse out of order": (2, SWEPT, Reverse(0), "not the next step to reverse.*2 of 2 steps to reverse"),
    "reverse without tape": (2, [*SWEPT, Reverse(1)], Reverse(0), "the tape of step 0 is not in WORK"),
    "delete absent": (2, [], Delete("state", 0), "no state 0 is stored"),
    "transfer absent": (2, [], Transfer("state", 0, "memory", "disk"), "no state 0 is stored in 'memory'"),
    "transfer twice": (
        2,
        [Save("state", 0), Transfer("state", 0, "memory", "disk")],
        Transfer("state", 0, "memory", "disk"),
        "in 'disk' already",
    ),
    "end of sweep too early": (2, [Advance(0, 1)], EndForward(), "x_2 is not reached"),
    "end of sweep twice": (2, SWEPT, EndForward(), "ended already"),
    "end of sweep, length unknown": (
        None,
        [Advance(0, 1)],
        EndForward(),
        r"the length is unknown.*follows finalize\(n\)",
    ),
    "end with steps left": (2, SWEPT, EndReverse(), "steps are left to reverse"),
    "end without sweep": (0, [], EndReverse(), "steps are left to reverse"),
    "action after the end": (2, [*REVERSED, EndReverse()], Load("state", 0), "the schedule has ended.*fresh schedule"),
    "no action": (2, [], "Advance(0, 1)", "it is no action"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_action_that_does_not_fit_is_refused(name):
    n, accepted, refused, message = REFUSED[name]
    machine = Machine(n)
    for action in accepted:
        machine.apply(action)
    with pytest.raises(ScheduleError, match=message):
        machine.apply(refused)


def test_entries_left_at_the_end_are_refused():
    machine = Machine(10)
    for k in range(9):
        machine.apply(Save("state", k))
        machine.apply(Advance(k, k + 1))
    machine.apply(Record(9))
    machine.apply(EndForward())
    machine.apply(Reverse(9))
    for k in range(8, -1, -1):
        machine.apply(Load("state", k))
        machine.apply(Record(k))
        machine.apply(Reverse(k))
    with pytest.raises(
        ScheduleError, match=r"entries are still stored.*state 5 in 'memory', and 3 more.*Delete every entry"
    ):
        machine.apply(EndReverse())


def test_a_sweep_moves_as_written():
    machine = Machine(2)
    for action in REVERSED:
        machine.apply(action)
    assert (machine.cursor, machine.tape, machine.r, machine.swept, machine.done) == (1, None, 0, True, False)
    machine.apply(EndReverse())
    assert machine.done
    assert machine.n_lookback == 0


def test_a_tape_moves_out_of_work_and_a_loaded_one_stays_stored():
    machine = Machine(1)
    machine.apply(Record(0))
    assert machine.tape == 0
    machine.apply(Save("tape", 0))
    assert machine.tape is None
    machine.apply(Load("tape", 0))
    assert machine.tape == 0
    assert machine.stored == {"memory": {("tape", 0)}}


def test_a_transfer_copies():
    machine = Machine(2)
    machine.apply(Save("state", 0))
    machine.apply(Transfer("state", 0, "memory", "disk"))
    assert machine.stored == {"memory": {("state", 0)}, "disk": {("state", 0)}}


@pytest.mark.parametrize(
    ("actions", "lookback"),
    [
        ([Advance(0, 1)], 0),
        ([Advance(0, 1), Save("state", 0)], 0),
        ([Advance(0, 1), Advance(1, 2)], 1),
        ([Advance(0, 2)], None),
        ([Record(0)], None),
        ([Save("state", 0), Advance(0, 1), Load("state", 0)], None),
    ],
)
def test_lookback_is_the_state_before_the_newest_single_step(actions, lookback):
    machine = Machine(None)
    for action in actions:
        machine.apply(action)
    assert machine.lookback == lookback


def test_the_last_step_is_recorded_from_the_lookback_state():
    machine = Machine(None)
    for action in (Advance(0, 1), Advance(1, 2)):
        machine.apply(action)
    machine.finalize(2)
    assert (machine.n, machine.r) == (2, 2)
    machine.apply(Record(1))
    assert (machine.cursor, machine.tape, machine.lookback, machine.n_lookback) == (2, 1, None, 1)
    machine.apply(EndForward())


def test_finalize_refuses_another_position():
    with pytest.raises(
        ScheduleError, match=r"finalize\(3\): the loop stands at x_0, not x_3.*Apply the steps run first"
    ):
        Machine(None).finalize(3)


def test_finalize_refuses_a_longer_loop():
    machine = Machine(None)
    machine.apply(Advance(0, 2))
    machine.finalize(2)
    machine.cursor = 3
    with pytest.raises(ScheduleError, match=r"finalize\(3\): the schedule was made for 2 steps"):
        machine.finalize(3)


def test_finalize_refuses_after_the_sweep():
    machine = Machine(2)
    for action in SWEPT:
        machine.apply(action)
    with pytest.raises(ScheduleError, match=r"finalize\(2\) came after EndForward"):
        machine.finalize(2)
