"""Loops under save-all and Binomial(20) against adjoints by hand: a wave, logistic growth, an LSTM."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import bench_wave
import numpy as np
from harness import Row
from references import logistic_adjoint, lstm_adjoint, schedules, wave_adjoint

import pullback as pb
from pullback.demos import wave_model
from staged.ways import NOT_BUILT, US, Call, Ways, accepts, backend_missing, by_default, compared, installed, row

STEPS = ", pb.steps"
POLICIES: dict[str, pb.MemoryPolicy] = {"save-all": pb.SaveAll(), "Binomial(20)": pb.Binomial(20)}


def ways() -> Ways:
    """The default, the recorded way beside it, and numba where it is there."""
    return {**by_default(), **({} if backend_missing("numba") else {f"{US}, numba": {"staging": "numba"}})}


def by_marked_steps(
    run: Callable[[Any], Callable[..., Any]], n: int, policy: pb.MemoryPolicy, argnums: Any, args: Any
) -> dict[str, Call]:
    """The gradient of a program over ``pb.steps(n)``; ``run(mark)`` is the program, ``mark()`` its steps."""
    made: dict[str, Call] = {}
    for name, options in ways().items():
        # plain code is marked alike by every way; only the switch of pb.steps differs
        if options and not accepts(pb.steps, "staging"):
            continue
        gradient = pb.value_and_grad(run(partial(pb.steps, n, **options)), argnums, policy=policy)
        made[name + STEPS] = partial(gradient, *args)
    return made


def wave_candidates(c: Any, problem: Any, policy: pb.MemoryPolicy) -> dict[str, Call]:
    """The adjoint by hand that does the same work, then ours by both forms."""
    if isinstance(policy, pb.SaveAll):
        made: dict[str, Call] = {"hand": partial(wave_adjoint.value_and_gradient, c, problem)}
    else:
        made = {"hand": bench_wave.by_schedule(c, problem, policy)}
    for name, options in ways().items():
        gradient = pb.value_and_grad(bench_wave.misfit_of(problem, policy, **options))
        made[name] = partial(gradient, c)
    marked = lambda mark: lambda c: wave_model.misfit(c, problem, mark())  # noqa: E731
    return made | by_marked_steps(marked, problem.n_steps, policy, 0, (c,))


def wave_rows(*, quick: bool) -> list[Row]:
    """256 x 256 under both policies, 1024 x 1024 with everything saved."""
    runs = (
        [(48, 40, "save-all"), (48, 40, "Binomial(20)")]
        if quick
        else [(256, 500, "save-all"), (1024, 60, "save-all"), (256, 500, "Binomial(20)")]
    )
    rows: list[Row] = []
    for n, n_steps, policy in runs:
        c, problem = bench_wave.problem_of(n, n_steps)
        made = wave_candidates(c, problem, POLICIES[policy])
        work = f"wave {n}^2, {n_steps} steps, {policy}"
        rows += compared(work, made, 2 if quick else 5, operations=n_steps)
        if why := backend_missing("numba"):
            rows.append(row(work, f"{US}, numba", over="hand", note=why))
    return [*rows, *thread_rows(*((48, 40) if quick else (1024, 60)), 2 if quick else 5)]


def thread_rows(n: int, n_steps: int, rounds: int) -> list[Row]:
    """Two threads over one, with numba and everything saved, by the clock on the wall; two free processors must be
    had."""
    work, two = f"wave {n}^2, {n_steps} steps, numba, wall time", "two threads"
    why = backend_missing("numba") or ("" if accepts(pb.fori_loop, "threads") else NOT_BUILT)
    if why:
        return [row(work, two, over="one thread", note=why)]
    c, problem = bench_wave.problem_of(n, n_steps)
    made: dict[str, Call] = {}
    for name, threads in (("one thread", 1), (two, 2)):
        misfit = bench_wave.misfit_of(problem, pb.SaveAll(), staging="numba", threads=threads)
        made[name] = partial(pb.value_and_grad(misfit), c)
    return compared(work, made, rounds, operations=n_steps, clock=time.perf_counter)


def peer_rows(*, quick: bool) -> list[Row]:
    """Numba over jax, in the same run: ``scan`` with everything saved, and equinox's checkpointed loop."""
    n, n_steps = (48, 40) if quick else (256, 500)
    c, problem = bench_wave.problem_of(n, n_steps)
    rows: list[Row] = []
    for policy, peer in (("save-all", "jax scan"), ("Binomial(20)", "equinox checkpointed(20)")):
        work = f"wave {n}^2, {n_steps} steps, {policy}, beside {peer}"
        missing = installed("jax") or (policy != "save-all" and installed("equinox"))
        if missing:
            rows.append(row(work, f"{US}, numba", over=peer, note=missing))
            continue
        from references import wave_jax  # noqa: PLC0415  it needs jax

        gradient = wave_jax.save_all(problem) if policy == "save-all" else wave_jax.checkpointed(problem, 20)
        # jax adds in another order: its gradient agrees to rounding alone
        made: dict[str, Call] = {peer: partial(gradient, c), **wave_candidates(c, problem, POLICIES[policy])}
        rows += compared(work, made, 2 if quick else 5, operations=n_steps)
        if why := backend_missing("numba"):
            rows.append(row(work, f"{US}, numba", over=peer, note=why))
    return rows


def logistic_candidates(u: Any, c: Any, n_steps: int, policy: pb.MemoryPolicy) -> dict[str, Call]:
    """The adjoint by hand, everything saved or on the policy's schedule, then ours by both forms."""
    if isinstance(policy, pb.SaveAll):
        made: dict[str, Call] = {"hand": partial(logistic_adjoint.value_and_gradient, u, c, n_steps)}
    else:
        table = schedules.prepared(policy.schedule(n_steps))
        made = {"hand": partial(logistic_adjoint.value_and_gradient_by, schedules.follow, table, u, c, n_steps)}

    def looped(u: Any, c: Any, **options: Any) -> Any:
        body = lambda _, u: logistic_adjoint.step(u, c)  # noqa: E731
        last = pb.fori_loop(0, n_steps, body, u, policy=policy, **options)
        return np.sum(last * last)

    def marked(mark: Callable[[], Any]) -> Callable[[Any, Any], Any]:
        def run(u: Any, c: Any) -> Any:
            for _ in mark():
                u = logistic_adjoint.step(u, c)
            return np.sum(u * u)

        return run

    for name, options in ways().items():
        made[name] = partial(pb.value_and_grad(partial(looped, **options), (0, 1)), u, c)
    made |= other_forms(u, c, n_steps, policy)
    return made | by_marked_steps(marked, n_steps, policy, (0, 1), (u, c))


def other_forms(u: Any, c: Any, n_steps: int, policy: pb.MemoryPolicy) -> dict[str, Call]:
    """The same steps with a clock or a counter in the state, in a loop of unknown length, and with rows that are given
    and taken."""
    step = logistic_adjoint.step

    def counted(u: Any, c: Any, *, start: Any, by: Any) -> Any:
        body = lambda _, state: (state[0] + by, step(state[1], c))  # noqa: E731
        last = pb.fori_loop(0, n_steps, body, (start, u), policy=policy)[1]
        return np.sum(last * last)

    def until(u: Any, c: Any, *, by: Any) -> Any:
        body = lambda state: (state[0] + by, step(state[1], c))  # noqa: E731
        last = pb.while_loop(lambda state: state[0] < n_steps, body, (0 * by, u), policy=policy)[1]
        return np.sum(last * last)

    def giving(u: Any, c: Any) -> Any:
        def body(u: Any, _: Any) -> Any:
            after = step(u, c)
            return after, after[:4]

        last, firsts = pb.scan(body, u, length=n_steps, policy=policy)
        return np.sum(last * last) + 0.0 * np.sum(firsts)

    def taking(u: Any, c: Any) -> Any:
        rows = c * np.ones((n_steps, 1))
        last = pb.scan(lambda u, row: (step(u, row), None), u, rows, policy=policy)[0]
        return np.sum(last * last)

    forms: dict[str, Callable[..., Any]] = {
        "a clock in the state": partial(counted, start=0.0, by=0.1),
        "a counter in the state": partial(counted, start=0, by=1),
        "while_loop with a clock": partial(until, by=1.0),
        "while_loop with a counter": partial(until, by=1),
        "scan with outputs": giving,
        "scan by its rows": taking,
    }
    return {f"{US}, {name}": partial(pb.value_and_grad(f, (0, 1)), u, c) for name, f in forms.items()}


def small_rows(*, quick: bool) -> list[Row]:
    """Many steps on few elements: what a step costs besides its arithmetic."""
    n_steps = 40 if quick else 1000
    rng = np.random.default_rng(0)
    rows: list[Row] = []
    for n in (1000, 10):
        u, c = rng.uniform(0.1, 0.9, n), rng.uniform(0.5, 1.5, n)
        for name, policy in POLICIES.items():
            made = logistic_candidates(u, c, n_steps, policy)
            work = f"{n_steps} steps of {n} elements, {name}"
            rows += compared(work, made, 2 if quick else 7, operations=n_steps)
    return rows


def differing_rows(*, quick: bool) -> list[Row]:
    """Steps of ten kinds, more than a loop is staged for: the default over steps that are recorded."""
    n_steps, u = (40 if quick else 1000), np.linspace(0.1, 0.9, 10)
    work, recorded = f"{n_steps} steps of ten kinds, 10 elements", f"{US}, staging off"
    if not accepts(pb.fori_loop, "staging"):
        return [row(work, US, over=recorded, note=NOT_BUILT)]

    def body(k: int, u: Any) -> Any:
        for _ in range(1 + k % 10):
            u = u * 0.99
        return u

    def looped(u: Any, **options: Any) -> Any:
        return np.sum(pb.fori_loop(0, n_steps, body, u, **options))

    made = {name: partial(pb.value_and_grad(partial(looped, **options)), u) for name, options in by_default().items()}
    return compared(work, {recorded: made[recorded], US: made[US]}, 2 if quick else 7, operations=n_steps)


def lstm_rows(*, quick: bool) -> list[Row]:
    """An LSTM with a batch of 16 and 64 hidden units, everything saved, by ``scan`` and by both other forms."""
    n_steps, batch, hidden = (10 if quick else 200), 16, 64
    rng = np.random.default_rng(0)
    params = tuple(
        rng.normal(size=shape) / 8.0 for shape in ((hidden, 4 * hidden), (hidden, 4 * hidden), (4 * hidden,))
    )
    xs, start = rng.normal(size=(n_steps, batch, hidden)), np.zeros((batch, hidden))

    def looped(params: Any, **options: Any) -> Any:
        body = lambda k, state: lstm_adjoint.step(params, xs[k], state)  # noqa: E731
        return pb.fori_loop(0, n_steps, body, (start, start, 0.0), **options)[2]

    def scanned(params: Any, **options: Any) -> Any:
        body = lambda state, x: (lstm_adjoint.step(params, x, state), None)  # noqa: E731
        return pb.scan(body, (start, start, 0.0), xs, **options)[0][2]

    def marked(mark: Callable[[], Any]) -> Callable[[Any], Any]:
        def run(params: Any) -> Any:
            state = (start, start, 0.0)
            for k in mark():
                state = lstm_adjoint.step(params, xs[k], state)
            return state[2]

        return run

    made: dict[str, Call] = {"hand": partial(lstm_adjoint.value_and_gradient, params, xs, start, start)}
    for name, options in by_default().items():
        made[name] = partial(pb.value_and_grad(partial(looped, **options)), params)
        made[f"{name}, scan"] = partial(pb.value_and_grad(partial(scanned, **options)), params)
    made |= by_marked_steps(marked, n_steps, pb.SaveAll(), 0, (params,))
    return compared(f"LSTM {batch} x {hidden}, {n_steps} steps", made, 2 if quick else 7, operations=n_steps)
