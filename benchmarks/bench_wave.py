"""The 2-D acoustic wave equation, 256 x 256: ``fori_loop`` under two policies against handwritten adjoints, in time and
in bytes.

    python benchmarks/bench_wave.py [--quick] [--json PATH]

Figures to hold, at 500 steps: everything saved at most 1.35 times a handwritten NumPy adjoint; ``Binomial(20)`` at most
1.25 times a handwritten adjoint that runs the same schedule; the ledger's peak equal to ``plan`` to the byte. At 4000
steps ``Binomial(20)`` under 26 MiB of arrays, by the ledger and by tracemalloc.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Row, arguments, compare, one_thread, peak_bytes, print_table, write_json
from references import wave_adjoint

import pullback as pb
from pullback.demos.wave_model import WaveProblem, absorbing_border, misfit_by_loop, ricker

MIB = 2**20


def problem_of(n: int, n_steps: int) -> tuple[np.ndarray[Any, Any], WaveProblem]:
    """A speed with a soft lens in it, in m/s, and a shot recorded by a row of receivers; the recordings to be met
    are noise."""
    dx, speed = 20.0, 2000.0
    dt = 0.5 * dx / 2400.0
    z, x = np.meshgrid(np.linspace(-1, 1, n), np.linspace(-1, 1, n), indexing="ij")
    c = speed + 300.0 * np.exp(-8.0 * (x * x + z * z))
    damp, gain = absorbing_border((n, n), 12, dx, dt, 3000.0)
    receivers = np.arange(16, n - 16, 4)
    data = 1e-3 * np.random.default_rng(0).normal(size=(n_steps, receivers.size))
    return c, WaveProblem(
        dx=dx, dt=dt, n_steps=n_steps, field_shape=(n, n), wavelet=ricker(n_steps, dt, 8.0, 0.15),
        source_index=(16, n // 2),
        receiver_index=(..., np.full(receivers.size, 18), receivers), damp=damp, gain=gain, data=data,
        scale=0.5 / float(np.sum(data * data)),
    )  # fmt: skip


def misfit_of(problem: WaveProblem, policy: pb.MemoryPolicy, **options: Any) -> Callable[[Any], Any]:
    """The misfit by ``fori_loop`` under a policy, with what else that function takes."""
    return lambda c: misfit_by_loop(
        c, problem, lambda lower, upper, body, state: pb.fori_loop(lower, upper, body, state, policy=policy, **options)
    )


def ours(c: Any, problem: WaveProblem, policy: pb.MemoryPolicy) -> Callable[[], tuple[Any, Any]]:
    gradient = pb.value_and_grad(misfit_of(problem, policy))
    return lambda: gradient(c)


def by_schedule(c: Any, problem: WaveProblem, policy: pb.MemoryPolicy) -> Callable[[], tuple[Any, Any]]:
    return lambda: wave_adjoint.value_and_gradient_by_schedule(c, problem, policy.schedule(problem.n_steps))


def time_rows(n: int, n_steps: int, rounds: int) -> list[Row]:
    """Save-all and Binomial(20) against the adjoint by hand that does the same work; the plain forward run stands
    beside them."""
    c, problem = problem_of(n, n_steps)
    save_all, binomial = pb.SaveAll(), pb.Binomial(20)
    pairs: dict[str, Any] = {
        "save-all": (lambda: wave_adjoint.value_and_gradient(c, problem), ours(c, problem, save_all)),
        "binomial(20)": (by_schedule(c, problem, binomial), ours(c, problem, binomial)),
    }
    rows: list[Row] = []
    for name, (hand, us) in pairs.items():
        (value, gradient), (our_value, our_gradient) = hand(), us()
        np.testing.assert_allclose(our_value, value, rtol=1e-9)
        np.testing.assert_allclose(our_gradient, gradient, rtol=1e-7, atol=1e-9 * float(np.abs(gradient).max()))
        labels = {"n": n, "steps": n_steps, "what": name}
        timed = compare(
            {"hand": hand, "pullback": us, "forward only": lambda: wave_adjoint.misfit_only(c, problem)},
            rounds=rounds,
            labels=labels,
        )
        rows += timed.rows(operations=n_steps)
    return rows


def byte_row(n: int, n_steps: int, policy: pb.MemoryPolicy, *, trace: bool) -> Row:
    """The plan, the ledger's peak and tracemalloc's of one gradient; bookkeeping is what tracemalloc sees beyond the
    ledger."""
    c, problem = problem_of(n, n_steps)
    misfit = misfit_of(problem, policy)
    planned = pb.plan(misfit, c)
    _, pull = pb.vjp(misfit, c)
    pull(1.0)
    report = pull.report
    pull.close()
    gradient = pb.grad(misfit)
    measured = peak_bytes(lambda: gradient(c)) / MIB if trace else None
    return {
        "n": n, "steps": n_steps, "what": repr(policy), "plan_bytes": planned.peak_bytes,
        "ledger_bytes": report.peak_bytes,
        "equal": str(planned.peak_bytes == report.peak_bytes), "ledger_MiB": report.peak_bytes / MIB,
        "tracemalloc_MiB": measured,
        "by_reason": ", ".join(f"{reason} {nbytes / MIB:.3g}" for reason, nbytes in report.bytes_by_reason.items()),
    }  # fmt: skip


def main() -> None:
    options = arguments("the wave equation by fori_loop against handwritten adjoints")
    one_thread()
    n, n_steps, long = (64, 100, 400) if options.quick else (256, 500, 4000)
    rows = time_rows(n, n_steps, 2 if options.quick else 5)
    print_table(rows)
    sys.stdout.flush()
    held = [
        byte_row(n, n_steps, pb.SaveAll(), trace=options.quick),  # a traced run of a gigabyte tells nothing new
        byte_row(n, n_steps, pb.Binomial(20), trace=True),
        byte_row(n, long, pb.Binomial(20), trace=True),
    ]
    print_table(held)
    write_json(options.json, [*rows, *held])


if __name__ == "__main__":
    main()
