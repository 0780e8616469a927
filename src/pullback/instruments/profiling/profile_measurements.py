"""The measurements that ``profile`` makes: a timed gradient with its report, a plain run, checks of the gradient, peak
RSS."""

import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import wraps
from importlib import import_module
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any

import numpy as np
from attrs import Factory, evolve, frozen
from numpy.typing import NDArray

from pullback.memory.ledger import Report
from pullback.policies.base import MemoryPolicy
from pullback.policies.wrapping import Wrapping
from pullback.scheduling.machine.actions import Delete, Save
from pullback.scheduling.machine.simulator import machine_for, play
from pullback.testing.comparing.differences import flatten as side_by_side
from pullback.testing.comparing.differences import inner, random_cotangents, random_like, richardson
from pullback.testing.comparing.inexact_leaves import inexact_leaves
from pullback.testing.gradients.taylor import taylor_test
from pullback.transforms.derivatives.argnums import function_of_chosen, name_of, positions
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.errors import PullbackError
from pullback.words.structures import flatten, unflatten

AGREEMENT = 0.05
"""How close, relatively, a central difference must come to a complex step for it to be believed."""
N_DIRECTIONS = 3
RSS_INTERVAL = 0.005
"""Seconds between two readings of the resident set."""


@frozen(eq=False)
class MeasuredProgram:
    """``f(*args, **kwargs)``, differentiated with respect to the arguments at ``argnums``; the others stay as they
    are."""

    f: Callable[..., Any]
    args: tuple[Any, ...]
    argnums: tuple[int, ...]
    kwargs: dict[str, Any] = Factory(dict)

    @property
    def active(self) -> tuple[Any, ...]:
        """The arguments that are differentiated."""
        return tuple(self.args[k] for k in self.argnums)

    def call(self, *active: Any) -> Any:
        """``f`` as a function of these arguments alone."""
        return function_of_chosen(self.f, self.args, self.kwargs, self.argnums)(*active)

    @property
    def as_far_as_it_goes(self) -> "MeasuredProgram":
        """The program, but where ``f`` fails it ends, and gives 0."""

        @wraps(self.f)
        def until(*args: Any, **kwargs: Any) -> Any:
            with suppress(Exception):
                return self.f(*args, **kwargs)
            return 0.0

        return evolve(self, f=until)

    @property
    def named(self) -> Callable[..., Any]:
        """The program with the names of its parameters, for tables."""

        def named(*active: Any) -> Any:
            return self.call(*active)

        with suppress(TypeError, ValueError):  # no signature
            parameters = [*signature(self.f).parameters.values()]
            chosen = [parameters[k].replace(default=Parameter.empty) for k in self.argnums if k < len(parameters)]
            named.__signature__ = Signature(chosen)  # type: ignore[attr-defined]  # inspect asks for it
        named.__name__ = name_of(self.f)
        return named


def make_program(
    f: Callable[..., Any], args: tuple[Any, ...], argnums: int | tuple[int, ...], kwargs: dict[str, Any] | None = None
) -> MeasuredProgram:
    """The program; negative ``argnums`` count from the end. Raises ``StructureError`` for an argument that is not
    there, and for one named twice."""
    numbers = positions((argnums,) if isinstance(argnums, int) else argnums, args, f)
    return MeasuredProgram(f, args, numbers, kwargs or {})


@frozen(eq=False)
class MeasuredRun:
    """One gradient under a policy, the report of its pull, and the seconds of forward and reverse: what the clock on
    the wall says, and what the processor has worked for this process."""

    gradient: tuple[Any, ...]
    report: Report
    elapsed_seconds: float
    cpu_seconds: float
    forward_seconds: float
    """The part of ``elapsed_seconds`` before the pull."""


def run_once(program: MeasuredProgram, policy: MemoryPolicy) -> MeasuredRun:
    """Forward and reverse under ``policy``. The seed is 1 for a scalar output, normal numbers of a fixed generator
    otherwise."""
    worked, began = time.process_time(), time.perf_counter()
    out, pull = vjp(program.call, *program.active, policy=policy)
    turned = time.perf_counter()
    try:
        gradient = pull(seed_of(out))
        elapsed, worked = time.perf_counter() - began, time.process_time() - worked
        return MeasuredRun(gradient, pull.report, elapsed, worked, turned - began)
    finally:
        pull.close()


def seed_of(out: Any) -> Any:
    """The cotangent that the program is pulled back with."""
    leaves, definition = flatten(out)
    if len(leaves) == 1 and np.ndim(leaves[0]) == 0:
        return unflatten(definition, [np.ones((), np.asarray(leaves[0]).dtype)[()]])
    return random_cotangents(np.random.default_rng(0), out)


def plain_seconds(program: MeasuredProgram) -> tuple[float, float]:
    """Seconds of one run on plain arrays, by the clock and by the processor."""
    worked, began = time.process_time(), time.perf_counter()
    program.f(*program.args, **program.kwargs)
    return time.perf_counter() - began, time.process_time() - worked


# ------------------------------------------------------------------------------------------------ what the schedule did


@frozen(repr=False)
class NotedPolicy(Wrapping):
    """The policy itself, with a note of every schedule that it was asked for, by length and sizes."""

    schedules: dict[Any, Any] = Factory(dict)

    def schedule(self, n: int | None, *, state_bytes: int | None = None, tape_bytes: int | None = None) -> Any:
        """The policy's schedule, noted."""
        schedule = self.policy.schedule(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        self.schedules[n, state_bytes, tape_bytes] = schedule
        return schedule


def chain_figures(policy: MemoryPolicy) -> tuple[int, int | None]:
    """``(most snapshots held at once, steps)`` of the longest loop that a watched policy governed; (0, None) without
    a loop."""
    snapshots, longest = 0, None
    if not isinstance(policy, NotedPolicy):
        return snapshots, longest
    for (n, state_bytes, tape_bytes), schedule in policy.schedules.items():
        # A loop of unknown length has told its schedule where it ended.
        length = schedule.n if schedule.n is not None else n or 0
        longest = max(length, longest or 0)
        again = schedule.policy.schedule(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        now = 0
        for action in play(again, length, machine_for(again, length)):
            if isinstance(action, Save | Delete) and action.kind == "state":
                now += 1 if isinstance(action, Save) else -1
                snapshots = max(snapshots, now)
    return snapshots, longest


# ----------------------------------------------------------------------------------------------- is the gradient right?


def taylor_rate(program: MeasuredProgram, gradient: tuple[Any, ...]) -> float:
    """The rate of the Taylor test along a random direction: 2 for a right gradient, 1 for a wrong one. For scalar
    outputs."""
    return taylor_test(lambda active: program.call(*active), program.active, gradient=gradient).rate


@frozen(eq=False)
class DotProduct:
    """Directions v of the active arguments (leaves), the seed w, J v for each v as flat arrays, and the method that
    computed them."""

    directions: list[list[Any]]
    w: NDArray[Any]
    jvs: list[NDArray[Any]]
    method: str

    def error(self, gradient: tuple[Any, ...]) -> float:
        """The largest ``|<w, J v> - <J' w, v>| / (|w| |J v|)`` for ``J' w = gradient``."""
        leaves, _ = inexact_leaves(gradient)
        errors = []
        for v, jv in zip(self.directions, self.jvs, strict=True):
            gap = abs(inner(self.w, jv) - sum(inner(g, part) for g, part in zip(leaves, v, strict=True)))
            size = float(np.linalg.norm(self.w) * np.linalg.norm(jv))
            errors.append(gap / size if size else gap)
        return max(errors)


def directional(program: MeasuredProgram) -> DotProduct:
    """J v for random v of the size of the arguments: by the complex step where the program takes complex numbers, else
    by differences.

    The complex step is exact to rounding; it is believed where a central difference bears it out (of ``abs`` it gives
    nonsense).
    """
    rng = np.random.default_rng(0)
    leaves, rebuild = inexact_leaves(program.active)
    sizes = [float(np.sqrt(np.mean(np.abs(leaf) ** 2))) or 1.0 for leaf in leaves]
    directions = [
        [scaled_like(rng, leaf, size) for leaf, size in zip(leaves, sizes, strict=True)] for _ in range(N_DIRECTIONS)
    ]

    def along(v: list[Any]) -> Callable[[Any], NDArray[Any]]:
        return lambda t: side_by_side(
            flatten(program.call(*rebuild([moved(x, t, part) for x, part in zip(leaves, v, strict=True)])))[0]
        )

    coarsest = max((np.finfo(part.dtype) for part in directions[0]), key=lambda info: float(info.eps))
    step, imaginary = float(coarsest.eps) ** (1 / 3), float(coarsest.tiny) ** 0.25  # step balances rounding, truncation
    first = along(directions[0])
    coarse = (first(step) - first(-step)) / (2 * step)
    exact = complex_derivative(first, imaginary, coarse.dtype)
    w = side_by_side(flatten(seed_of(program.call(*program.active)))[0])
    if exact is not None and np.linalg.norm(exact - coarse) <= AGREEMENT * np.linalg.norm(coarse):
        derivatives = [exact, *(complex_derivative(along(v), imaginary, coarse.dtype) for v in directions[1:])]
        jvs = [jv for jv in derivatives if jv is not None]
        return DotProduct(directions[: len(jvs)], w, jvs, "complex step")
    return DotProduct(directions, w, [richardson(along(v)).value for v in directions], "central differences")


def scaled_like(rng: np.random.Generator, leaf: Any, size: float) -> NDArray[Any]:
    """Normal numbers of standard deviation ``size`` in the shape and dtype of ``leaf``."""
    return np.asarray(random_like(rng, leaf) * size).astype(np.asarray(leaf).dtype)


def complex_derivative(phi: Callable[[Any], NDArray[Any]], step: float, dtype: Any) -> NDArray[Any] | None:
    """Im phi(i step) / step (Squire and Trapp, SIAM Review 40, 1998); None where ``phi`` does not take complex numbers.

    The fourth root of the smallest number: its square is far below rounding, and what is made from it does not
    underflow.
    """
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            # Where an imaginary part is dropped, the complex step tells nothing.
            warnings.simplefilter("error", np.exceptions.ComplexWarning)
            stepped = phi(1j * step)
    except Exception:  # noqa: BLE001  a function may refuse complex numbers in its own way
        return None
    if stepped.dtype.kind != "c" or dtype.kind == "c":
        return None
    return np.asarray(stepped.imag / step)


def moved(x: Any, t: Any, v: Any) -> Any:
    """``x + t v`` in the precision of ``x``; complex for an imaginary ``t``."""
    there = np.asarray(x + t * v)
    dtype = np.asarray(x).dtype
    return there.astype(np.result_type(dtype, np.complex64) if isinstance(t, complex) else dtype)[()]


# ------------------------------------------------------------------------------------------------------------------ RSS

IN_CHILD = (
    "import sys; from pullback.instruments.profiling.profile_measurements import measure_in_child; "
    "measure_in_child(sys.argv[1])"
)
PAYLOAD, ANSWER = "program.pickle", "peak"


def has_memory_profiler() -> bool:
    """Whether the RSS can be measured: memory-profiler is installed."""
    return find_spec("memory_profiler") is not None


def why_not_sent(program: MeasuredProgram, policies: Sequence[MemoryPolicy]) -> str:
    """Why a program cannot be measured in a process of its own, and the remedy; empty where it can."""
    if not has_memory_profiler():
        return "memory-profiler reads it, which is missing: install pullback[demo]"
    name = name_of(program.f)
    if getattr(program.f, "__module__", None) == "__main__":
        return f"{name} is defined in a script or notebook, where another process cannot find it: put it in a module"
    try:
        pickle.dumps((program, *policies))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        return f"{name} with its arguments cannot be pickled ({error}): define it at the top level of a module"
    return ""


def peak_rss(program: MeasuredProgram, policy: MemoryPolicy) -> int:
    """Most bytes resident while a process of its own computes the gradient once; interpreter, libraries and arguments
    included.

    A process of its own, because the peak of a process never falls. The program travels there by pickle, so ``f`` must
    be defined at the top level of a module. Raises ``PullbackError`` where it cannot, where memory-profiler is missing,
    or where the process fails.
    """
    if why := why_not_sent(program, (policy,)):
        raise PullbackError(f"the peak RSS is read in a process of its own, and {why}, or leave rss out")
    payload = pickle.dumps((program, policy))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, PAYLOAD).write_bytes(payload)
        search_path = os.pathsep.join(part for part in sys.path if part)
        done = subprocess.run(  # noqa: S603  our own interpreter with code written above
            [sys.executable, "-c", IN_CHILD, folder],
            env={**os.environ, "PYTHONPATH": search_path}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
        answer = Path(folder, ANSWER)
        if done.returncode or not answer.exists():
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise PullbackError(
                f"the process that reads the peak RSS of {name_of(program.f)} under {policy!r} ended with status "
                f"{done.returncode} ({last}). A function defined in a script or notebook cannot be found from there: "
                "put it in a module, or leave rss out"
            )
        return int(answer.read_text("ascii"))


def measure_in_child(folder: str) -> None:
    """Write the peak RSS in bytes of one gradient of the program pickled in ``folder``; the other end of
    :func:`peak_rss`."""
    program, policy = pickle.loads(Path(folder, PAYLOAD).read_bytes())  # noqa: S301  written by the parent process
    memory_usage = import_module("memory_profiler").memory_usage  # lazily: memory-profiler belongs to an optional extra
    peak = memory_usage((run_once, (program, policy)), interval=RSS_INTERVAL, max_usage=True)
    Path(folder, ANSWER).write_text(str(int(peak * 2**20)), "ascii")
