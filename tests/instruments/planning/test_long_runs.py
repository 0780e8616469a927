"""The forecast of a long run equals what is counted, wherever that can be walked."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pullback as pb
from pullback.schedules import forecast, simulate

COUNTED = ("n", "n_forward", "n_writes", "n_reads", "peak_slots", "peak_bytes")
PER_STEP = {10: 28.84, 100: 6.90, 1000: 4.83, 10**4: 3.95, 10**5: 3.00}
"""Forward steps a step of 10**9 steps, as measured elsewhere: ../shared/scale.md, section 3."""


@given(st.integers(0, 400), st.integers(1, 40), st.integers(0, 1000), st.integers(0, 1000))
@example(0, 1, 8, 3)
@example(1, 1, 8, 3)
@example(2, 1, 8, 3)
@example(400, 1, 8, 3)
@example(400, 399, 8, 3)
@example(400, 400, 8, 3)
def test_it_is_what_the_simulator_counts(n, snapshots, state_bytes, tape_bytes):
    counted = simulate(
        pb.Binomial(snapshots).schedule(n), n, state_bytes=state_bytes, tape_bytes=tape_bytes, forward_cost=0.5,
        reverse_cost=0.25, write_cost=2.0, read_cost=4.0,
    )  # fmt: skip
    told = forecast(
        n, snapshots, state_bytes, 0.5, 2.0, tape_bytes=tape_bytes, reverse_seconds=0.25, read_seconds=4.0
    )  # fmt: skip
    assert [getattr(told, name) for name in COUNTED] == [getattr(counted, name) for name in COUNTED]
    assert told.seconds == counted.cost  # powers of two: exact


@pytest.mark.parametrize(("n", "snapshots"), [(10_000, 100), (30_000, 7), (20_000, 3000)])
def test_it_is_so_for_long_runs(n, snapshots):
    counted = simulate(pb.Binomial(snapshots).schedule(n), n, state_bytes=16)
    told = forecast(n, snapshots, 16)
    assert [getattr(told, name) for name in COUNTED] == [getattr(counted, name) for name in COUNTED]


@pytest.mark.parametrize("snapshots", PER_STEP)
def test_a_run_of_a_billion_steps(snapshots):
    """To walk it would take hours."""
    told = forecast(10**9, snapshots, "16 MB", 1e-3, workers=10**4)
    assert round(told.n_forward / told.n, 2) == PER_STEP[snapshots]
    assert told.peak_bytes == snapshots * 16 * 10**6
    assert told.total_bytes == 10**4 * told.peak_bytes
    assert told.seconds == pytest.approx(told.n_forward * 1e-3)
    assert f"({PER_STEP[snapshots]:.2f} per step" in str(told)


def test_the_figures_of_the_page_are_forecast():
    page = (Path(__file__).resolve().parents[3] / "docs" / "scale.md").read_text("utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| 10^")]
    assert len(rows) == 8
    for row in rows:
        n, snapshots = (10 ** int(text[3:]) if "^" in text else int(text) for text in row[:2])
        told = forecast(n, snapshots, "16 MB", 1e-3, workers=10**4)
        assert row[2] == f"{told.n_forward / n:.2f}"
        assert f"peak_bytes     {row[3]}, {row[4]} on 10,000 workers" in str(told)
        number, unit = row[5].split()
        seconds = float(number) * {"minutes": 60, "hours": 3600, "days": 86400}[unit]
        assert seconds == pytest.approx(told.seconds, rel=0.03)  # as far as the digits go


def test_it_prints_what_a_person_reads():
    assert str(forecast(5, 2, 300, 0.1, tape_bytes=99)).splitlines() == [
        "forecast of 5 steps with 2 snapshots",
        "  n_forward      11  (2.20 per step, none advanced more than 2 times)",
        "  n_writes       2",
        "  n_reads        4",
        "  peak_slots     2",
        "  peak_bytes     699 bytes",
        "  seconds        1.1",
    ]
    assert "  seconds        7200  (2.0 hours)" in str(forecast(1, 1, 0, 7200))
    assert "  seconds        90  (1.5 minutes)" in str(forecast(np.int64(1), 1, step_seconds=np.float32(90)))


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"n": -1}, "n must be at least 0, got -1"),
        ({"n": 2.5}, "n must be a whole number, got 2.5"),
        ({"snapshots": 0}, "snapshots must be at least 1, got 0.*x_0 takes one"),
        ({"workers": 0}, "workers must be at least 1"),
        ({"state_bytes": "much"}, "state_bytes='much' is no number of bytes"),
        ({"step_seconds": -1.0}, "step_seconds=-1.0 is no number of seconds"),
        ({"read_seconds": float("nan")}, "read_seconds=nan is no number of seconds"),
        ({"write_seconds": "1 s"}, "write_seconds='1 s' is no number of seconds"),
    ],
)
def test_what_is_no_number_is_refused(given, text):
    with pytest.raises(pb.PolicyError, match=text):
        forecast(**{"n": 10, "snapshots": 3, **given})
