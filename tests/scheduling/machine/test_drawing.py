"""Schedules drawn as text and as pictures."""

from xml.etree import ElementTree as ET

import pytest

from pullback.policies.binomial import Binomial
from pullback.policies.mixed import Mixed
from pullback.policies.periodic import Periodic
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.policies.tiered import Tiered
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, draw, simulate
from pullback.scheduling.machine.picture import WIDTH
from pullback.words.errors import InputFileError, PolicyError

LEGEND = "S state saved  L loaded  X loaded for the last time  : held  . advanced  r recorded  < recorded and reversed"


def test_binomial_drawn():
    assert str(draw(Binomial(2).schedule(6), 6)).splitlines() == [
        "0         5",
        "S. . .S. . <",
        ":     L. <",
        ":     X<",
        "L.S. <",
        ": X<",
        "X<",
        LEGEND,
    ]


def test_segments_drawn():
    assert str(draw(Recompute(3).schedule(10), 10)).splitlines() == [
        "0         5",
        "S. . .S. . . < < < <",
        ":     X< < <",
        "X< < <",
        LEGEND,
    ]


def test_tapes_reversed_in_a_later_row_are_drawn_as_recorded():
    actions = [Record(0), Save("tape", 0), Save("state", 1), Advance(1, 2), Record(2), EndForward(), Reverse(2)]
    actions += [
        Load("state", 1),
        Delete("state", 1),
        Record(1),
        Reverse(1),
        Load("tape", 0),
        Delete("tape", 0),
        Reverse(0),
        EndReverse(),
    ]
    assert str(draw(actions, 3)).splitlines() == ["0", " rS. <", " <X<", LEGEND]


def test_no_step_drawn():
    assert str(draw(SaveAll().schedule(0), 0)) == f"no steps\n{LEGEND}"


def test_long_schedules_are_drawn_as_a_picture_alone():
    drawing = draw(Binomial(2).schedule(201), 201)
    assert str(drawing).startswith("Binomial(2): 201 steps, ")
    assert ".save('schedule.svg') writes the picture" in str(drawing)
    assert drawing.svg.startswith("<svg")


@pytest.mark.parametrize("n", [0, 1, 7, 300])
@pytest.mark.parametrize(
    "policy", [SaveAll(), Recompute(), Binomial(3), Mixed(4), Tiered(1, 3, write_cost=0.5, read_cost=0.5), Periodic(4)]
)
def test_the_picture_has_every_step(policy, n):
    drawing = policy.schedule(n, state_bytes=8, tape_bytes=8).draw()
    found = simulate(policy.schedule(n, state_bytes=8, tape_bytes=8), n, state_bytes=8, tape_bytes=8)
    root = ET.fromstring(drawing.svg)  # noqa: S314  our own text
    paths = {path.get("class"): path.get("d") for path in root.iter("{http://www.w3.org/2000/svg}path")}
    assert f"{n} steps, {found.n_forward + n} executed forward and back" in drawing.svg
    reversed_steps = [line.split("L") for line in (paths.get("reversed") or "").split("M")[1:]]
    across = sum(float(a.split()[0]) - float(b.split()[0]) for a, b in reversed_steps)
    assert across == pytest.approx(WIDTH if n else 0, abs=0.1 * (len(reversed_steps) + 1))
    assert ("held" in paths) == bool(found.peak_slots)


def test_where_it_is_written(tmp_path):
    drawing = Binomial(2).schedule(6).draw()
    assert drawing.save(tmp_path / "schedule.svg").read_text("utf-8") == drawing._repr_svg_() == drawing.svg
    with pytest.raises(InputFileError, match=r"cannot be written to .*; name a file in a folder that exists"):
        drawing.save(tmp_path / "none" / "schedule.svg")
    with pytest.raises(PolicyError, match=r"got None .*Take schedules.draw\(schedule, n\)"):
        Binomial(2).schedule(None).draw()
