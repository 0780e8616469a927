"""Whole runs: the resident memory of a long wave in a process of its own, and the demo's gradient."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve
from harness import Row, compare
from rss_of_wave import STATUS

import pullback as pb
from pullback.demos import wave_data
from pullback.demos.wave import WaveMisfit
from staged.ways import US, agreement, by_default, row, rows_of

CHILD = Path(__file__).resolve().parents[1] / "rss_of_wave.py"
LONG = {"fori_loop": US, "pb.steps": f"{US}, pb.steps"}


def memory_rows(*, quick: bool) -> list[Row]:
    """RSS above import of a long wave under Binomial(20); ``x`` is in MB."""
    n_steps, n = (60, 48) if quick else (4000, 256)
    work = f"wave {n}^2, {n_steps} steps, Binomial(20), RSS above import"
    if not STATUS.exists():
        return [row(work, name, over="MB", note="this system does not tell the resident memory") for name in LONG]
    rows: list[Row] = []
    for form, name in LONG.items():
        command = [sys.executable, str(CHILD), form, str(n_steps), str(n)]
        # Our own interpreter and arguments.
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)  # noqa: S603
        rows.append(row(work, name, x=int(done.stdout) / 1e6, over="MB"))
    return rows


def demo_rows(*, quick: bool) -> list[Row]:
    """The gradient of the wave demo with everything saved, over its plain forward run."""
    settings = wave_data.DEFAULT
    if quick:
        settings = evolve(settings, shape=(44, 56), n_steps=40, border=6)
    work = "wave demo, save-all gradient"
    try:
        survey = wave_data.make_survey(settings)
    except pb.PullbackError as missing:
        return [row(work, US, over="forward", note=str(missing).splitlines()[0])]
    misfit, c = WaveMisfit(survey.problem), survey.initial_velocity
    made: dict[str, Any] = {"forward": partial(misfit, c)}
    for name, options in by_default().items():
        made[name] = partial(demo_gradient, misfit, c, options)
        agreement(name, made[name](), made[US](), 0.0)
    return rows_of(work, compare(made, rounds=2 if quick else 7), operations=settings.n_steps)


def demo_gradient(misfit: Any, c: Any, options: Any) -> Any:
    with pb.using(**options):
        return pb.grad(misfit, policy=pb.SaveAll())(c)
