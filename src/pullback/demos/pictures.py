"""The pictures of the demos, drawn with matplotlib and written as PNG files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pullback.demos.wave_data import WaveSurvey
from pullback.demos.wave_inversion import Inversion
from pullback.instruments.profiling.profile_table import Profile
from pullback.words.optional_libraries import optional_library

DPI = 130
MIB = 2.0**20
COLOURS = ("#1b6ca8", "#d1495b", "#2e933c", "#8f5db7", "#c77d0a", "#4a4e52")
"""Colours that are told apart in print and by most colour-blind readers; each point is labelled besides."""


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches, outside pyplot: no window, and no state of the process changes."""
    figure = optional_library("matplotlib.figure", "pictures are drawn with matplotlib")
    return figure.Figure(figsize=(width, height), layout="constrained")


def draw_trade_off(measured: Profile, path: Path) -> None:
    """Peak bytes held against seconds, one labelled point for each policy; circles are measured, crosses predicted."""
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    rows = measured.rows
    peaks = [row.peak_bytes / MIB for row in rows]
    seconds = [row.seconds for row in rows]
    for k, row in enumerate(rows):
        colour, here = COLOURS[k % len(COLOURS)], (peaks[k], seconds[k])
        axes.scatter(*here, s=90, color=colour, zorder=3)
        axes.scatter(row.predicted_bytes / MIB, seconds[k], s=26, marker="x", color="white", linewidth=1.4, zorder=4)
        left = peaks[k] > 1.5 * np.sqrt(min(peaks) * max(peaks))
        # Below the point where a near one stands above it, so that labels keep apart.
        below = any(
            0.5 < peaks[k] / peak < 2.0 and second > seconds[k] for peak, second in zip(peaks, seconds, strict=True)
        )
        axes.annotate(
            f"{row.policy}\n{row.n_forward or '-'} forward steps", here,
            xytext=(-10 if left else 10, -8 if below else 8),
            textcoords="offset points", ha="right" if left else "left", va="top" if below else "bottom", fontsize=9,
            color=colour, zorder=5,
        )  # fmt: skip
    axes.axhline(measured.forward_seconds, color="0.5", linestyle="--", linewidth=1)
    axes.annotate("one plain forward run", (1, measured.forward_seconds), xycoords=("axes fraction", "data"),
        xytext=(-4, 4),
                  textcoords="offset points", ha="right", fontsize=8.5, color="0.4")  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlim(min(peaks) / 1.6, max(peaks) * 1.6)
    axes.set_ylim(0, max(seconds) * 1.22)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(lambda _value, _: "")
    axes.set_xlabel("peak bytes held for the reverse (MiB, logarithmic; circle measured, cross predicted)", fontsize=9)
    axes.set_ylabel("seconds for one gradient")
    bits = ", the same bits under every policy" if all(row.same_bits for row in rows) else ""
    axes.set_title(f"Memory against time: one gradient{bits}", fontsize=10.5)
    axes.grid(alpha=0.25, which="both")
    figure.savefig(path, dpi=DPI)


def draw_models(survey: WaveSurvey, inversion: Inversion, path: Path) -> None:
    """True, initial and recovered velocity on one colour scale, and how misfit and model error fell."""
    nz, nx = survey.true_velocity.shape
    figure = new_figure(2.6 + 4.9 * float(np.clip(nx / nz, 1.0, 2.0)), 6.2)  # the panels keep their aspect
    (true, initial), (recovered, course) = figure.subplots(2, 2)
    low, high = float(np.min(survey.true_velocity)), float(np.max(survey.true_velocity))
    errors = inversion.model_errors
    panels = (
        (true, survey.true_velocity, "true velocity, sources and receivers"),
        (initial, survey.initial_velocity, f"initial model: error {errors[0]:.0f} m/s"),
        (recovered, inversion.velocity, f"recovered after {len(errors) - 1} iterations: error {errors[-1]:.0f} m/s"),
    )
    image = None
    for axes, velocity, title in panels:
        image = draw_section(axes, velocity, survey, (low, high))
        axes.set_title(title, fontsize=10.5)
    draw_acquisition(true, survey)
    bar = figure.colorbar(image, ax=[true, recovered], location="left", shrink=0.94, aspect=34, pad=0.02)
    bar.set_label("velocity (km/s)", fontsize=9)
    initial.set_xlabel("distance (km); dotted: edge of the absorbing border", fontsize=9)
    draw_course(course, inversion)
    figure.suptitle("Full-waveform inversion with gradients of ordinary NumPy", fontsize=12)
    figure.savefig(path, dpi=DPI)


def draw_section(axes: Any, velocity: NDArray[Any], survey: WaveSurvey, limits: tuple[float, float]) -> Any:
    """A velocity section in km and km/s, with the absorbing border marked."""
    nz, nx = velocity.shape
    km, border = survey.problem.dx / 1000.0, survey.settings.border
    extent = (0.0, nx * km, nz * km, 0.0)
    image = axes.imshow(
        velocity / 1000.0,
        extent=extent,
        vmin=limits[0] / 1000.0,
        vmax=limits[1] / 1000.0,
        cmap="viridis",
        aspect="equal",
    )
    left, right, top, bottom = border * km, (nx - border) * km, border * km, (nz - border) * km
    axes.plot(
        [left, left, right, right, left], [top, bottom, bottom, top, top], color="white", linewidth=0.7, linestyle=":"
    )
    axes.set_xlabel("distance (km)", fontsize=9)
    axes.set_ylabel("depth (km)", fontsize=9)
    axes.tick_params(labelsize=8)
    return image


def draw_acquisition(axes: Any, survey: WaveSurvey) -> None:
    """Sources as stars, receivers as dots."""
    problem = survey.problem
    km = problem.dx / 1000.0
    *_, sz, sx = problem.source_index
    *_, rz, rx = problem.receiver_index
    axes.plot(np.atleast_1d(rx) * km, np.atleast_1d(rz) * km, ".", color="white", markersize=2, label="receivers")
    axes.plot(np.atleast_1d(sx) * km, np.atleast_1d(sz) * km, "*", color="#ff4d4d", markersize=9, label="sources")


def draw_course(axes: Any, inversion: Inversion) -> None:
    """Misfit and model error relative to the initial model, by iteration."""
    iterations = np.arange(len(inversion.misfits))
    for values, label, colour in (
        (inversion.misfits, "misfit", COLOURS[0]),
        (inversion.model_errors, "model error", COLOURS[1]),
    ):
        relative = np.asarray(values) / values[0]
        axes.plot(iterations, relative, "o-", color=colour, markersize=4)
        axes.annotate(f"{label}\n{relative[-1]:.0%}", (iterations[-1], relative[-1]), xytext=(7, 0),
            textcoords="offset points",
                      va="center", fontsize=9, color=colour)  # fmt: skip
    axes.set_xlim(-0.03 * iterations[-1] - 0.1, 1.34 * iterations[-1] + 0.1)
    axes.set_ylim(-0.06, 1.08)
    axes.set_title("what the iterations gained", fontsize=10.5)
    axes.set_xlabel("L-BFGS iteration", fontsize=9)
    axes.set_ylabel("relative to the initial model", fontsize=9)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.25)


def draw_digits(images: NDArray[Any], true: NDArray[Any], readings: NDArray[Any], path: Path) -> None:
    """Up to twelve 8 x 8 digits, each under what it is and what it was taken for."""
    count = min(12, len(images))
    figure = new_figure(6.4, 1.5 + 1.35 * max(0, (count - 1) // 6))
    for k in range(count):
        axes = figure.add_subplot(max(1, -(-count // 6)), 6, k + 1)
        axes.imshow(images[k].reshape(8, 8), cmap="gray_r", vmin=0)
        axes.set_title(f"{true[k]}, taken for {readings[k]}", fontsize=8)
        axes.set_axis_off()
    figure.suptitle("Held-out digits that the network misread", fontsize=10)
    figure.savefig(path, dpi=DPI)


def draw_assimilation(runs: Sequence[Any], free_rmse: NDArray[Any], path: Path) -> None:
    """Errors at the observation times of each window: of the background, of the analysis, and of a run without
    observations."""
    figure = new_figure(7.6, 2.7 * len(runs))
    panels = figure.subplots(len(runs), 1, sharex=True, squeeze=False)[:, 0]
    windows = np.arange(1, len(free_rmse) + 1)
    for axes, run in zip(panels, runs, strict=True):
        axes.plot(windows, free_rmse, color="0.6", linewidth=1, label="without observations")
        for values, label, colour in (
            (run.background_rmse, "background", COLOURS[1]),
            (run.analysis_rmse, "analysis", COLOURS[0]),
        ):
            axes.plot(windows, values, color=colour, linewidth=1.4, label=f"{label}: mean {np.mean(values):.2f}")
        axes.set_yscale("log")
        low, high = float(np.min(run.analysis_rmse)), float(np.max([free_rmse, run.background_rmse]))
        axes.set_ylim(0.8 * low, 3.0 * high)  # room for the legend
        axes.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], minor=False)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda _value, _: "")
        axes.set_title(f"4D-Var on Lorenz-96: {run.method}", fontsize=10.5)
        axes.set_ylabel("root mean square error", fontsize=9)
        axes.grid(alpha=0.25, which="both")
        axes.legend(fontsize=8.5, loc="upper right", ncols=3)
    panels[-1].set_xlabel("assimilation window", fontsize=9)
    figure.savefig(path, dpi=DPI)
