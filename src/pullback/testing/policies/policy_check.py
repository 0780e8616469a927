"""check_policy: a memory policy is right if its actions are valid, its gradients have save-all's bits, and its
forecast comes true."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import Factory, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.policies.wrapping import Wrapping
from pullback.scheduling.machine.simulator import Simulation, simulate
from pullback.testing.comparing.bits import same_bits
from pullback.testing.comparing.differences import random_cotangents
from pullback.testing.comparing.faults import Fault, raise_faults
from pullback.testing.comparing.inexact_leaves import inexact_leaves
from pullback.testing.policies.programs import PROGRAMS
from pullback.transforms.derivatives.reverse import vjp
from pullback.words.call_sites import public
from pullback.words.errors import PolicyError, PolicyWarning, ScheduleError
from pullback.words.structures import flatten

REFUSED: Final = "program refused"
LENGTHS: Final = (0, 1, 2, 3, 5, 8, 13, 34, 100)
"""Loop lengths for which the schedule is simulated."""
PROGRAM_LENGTHS: Final = (1, 2, 7, 20)
"""Loop lengths for which the built-in programs are run."""
SIZES: Final = ((0, 0), (1, 1), (8, 100), (100, 8))
"""(state_bytes, tape_bytes) for which the schedule is simulated: unknown, equal, and either much the larger."""


@public
def check_policy(policy: MemoryPolicy, f: Callable[..., Any] | None = None, *args: Any, seed: int = 0) -> None:
    """Nothing, if ``policy`` keeps its promises.

    The schedules for several lengths (unknown ones too) and sizes are valid for the state machine and come out the same
    when asked for twice. For the programs, each also at a second input: the cotangents have the bits of save-all, also
    when ``pull`` is called again; the forward steps executed are those that the simulator predicts for the schedules
    that were asked for; and after ``pull.close()`` nothing is held.

    Parameters
    ----------
    policy
        A :class:`MemoryPolicy`. A ``PolicyError`` for some length, size or built-in program is a refusal, not a fault;
        for all of them it is one.
    f
        A function; without one built-in programs are taken (marked steps with writes, a loop function, an unmarked
        loop) of 1 to 20 steps.
    *args
        Its arguments.
    seed
        Of the random numbers.

    Returns
    -------
    None.

    Raises
    ------
    CheckError
        Listing every fault found.
    TypeError
        For what is no policy.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u), x))
    >>> pb.testing.check_policy(pb.Binomial(2), f, np.ones(3))
    """
    if not isinstance(policy, MemoryPolicy):
        raise TypeError(
            f"check_policy takes a memory policy, got {policy!r}; pass an instance of a subclass of "
            "pullback.MemoryPolicy"
        )
    faults = list(_schedule_faults(policy))
    if f is not None:
        faults += _program_faults(policy, f, args, seed)
    elif not faults:  # an invalid schedule fails again in every program
        runs = [
            _program_faults(policy, program(length), arguments, seed)
            for length in PROGRAM_LENGTHS
            for program, arguments in PROGRAMS
        ]
        refused = [all(fault.kind == REFUSED for fault in run) and bool(run) for run in runs]
        # A policy may need a known length, which the unmarked loop has not; one that runs nothing at all is another
        # matter.
        faults += [fault for run in runs for fault in run if all(refused) or fault.kind != REFUSED]
    raise_faults(f"check_policy({policy!r})", faults)


def _schedule_faults(policy: MemoryPolicy) -> Iterator[Fault]:
    """Invalid actions, and schedules that come out otherwise the second time. Every length refused is a fault, too."""
    accepted, refusal = 0, None
    for state_bytes, tape_bytes in SIZES:
        for n in LENGTHS:
            for known in (n, None):
                try:
                    first = simulate(policy.schedule(known, state_bytes=state_bytes, tape_bytes=tape_bytes), n)
                    again = simulate(policy.schedule(known, state_bytes=state_bytes, tape_bytes=tape_bytes), n)
                except PolicyError as error:
                    refusal = error
                    continue
                except Exception as error:  # noqa: BLE001 - a user's generator may raise anything
                    yield _invalid(policy, known, n, (state_bytes, tape_bytes), error)
                    return
                accepted += 1
                if first != again:
                    yield Fault(
                        "schedule not repeatable",
                        f"two schedules of {policy!r} for {n} steps differ ({_steps(first)}, then {_steps(again)}); "
                        "keep no state in the policy",
                    )
                    return
    if not accepted:
        yield Fault(
            "every length refused",
            f"{policy!r} refused lengths {LENGTHS[0]} to {LENGTHS[-1]}: {refusal}; plan at least one of them",
        )


def _invalid(policy: MemoryPolicy, known: int | None, n: int, sizes: tuple[int, int], error: Exception) -> Fault:
    length = f"{n} steps" if known is not None else f"{n} steps that are known only at the end"
    where = f"for {length} with state_bytes={sizes[0]}, tape_bytes={sizes[1]}"
    if isinstance(error, ScheduleError):
        return Fault("invalid action", f"the schedule of {policy!r} {where}: {error}")
    return Fault(
        "schedule raised",
        f"the schedule of {policy!r} {where} raised {type(error).__name__}: {error}; yield actions for every length",
    )


def _steps(simulation: Simulation) -> str:
    return f"{simulation.n_forward} forward steps in {simulation.n_actions} actions"


Request: TypeAlias = tuple[int | None, int | None, int | None, Any]
"""n, state_bytes, tape_bytes and the schedule that answered."""


@frozen(repr=False)
class WatchedPolicy(Wrapping):
    """The policy itself, with a list of the schedules that were requested."""

    requests: list[Request] = Factory(list)

    @property
    def looks(self) -> bool:
        """No: every schedule is noted, with the sizes that it was asked for."""
        return False

    def schedule(self, n: int | None, *, state_bytes: int | None = None, tape_bytes: int | None = None) -> Any:
        """The policy's schedule, noted."""
        schedule = self.policy.schedule(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
        schedule.repeats = False  # every action is asked for, whatever is known of the policy
        self.requests.append((n, state_bytes, tape_bytes, schedule))
        return schedule


def _program_faults(policy: MemoryPolicy, f: Callable[..., Any], args: tuple[Any, ...], seed: int) -> list[Fault]:
    """The faults of a program at its arguments and at others."""
    name = str(getattr(f, "__name__", type(f).__name__))
    leaves, rebuild = inexact_leaves(args)
    if not leaves:
        raise ValueError(
            f"no argument of {name} is floating or complex, so there is no gradient to compare; pass float64 arrays"
        )
    other = rebuild([
        leaf * (1 + 2.0**-7) if isinstance(leaf, float | complex) else (leaf * (1 + 2.0**-7)).astype(leaf.dtype)
        for leaf in leaves
    ])
    faults: list[Fault] = []
    for words, arguments in (("", args), (" at a second input", other)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", PolicyWarning)  # a policy that holds everything has refused the program
                faults += _run_faults(policy, f, arguments, f"{name}{words}", seed)
        except (PolicyError, PolicyWarning) as error:
            faults.append(Fault(REFUSED, f"{name}{words}: {error}"))
        except Exception as error:  # noqa: BLE001 - whatever a run under the policy raises is what is reported
            faults.append(Fault("run raised", f"{name}{words} under {policy!r} raised {type(error).__name__}: {error}"))
    return faults


def _run_faults(
    policy: MemoryPolicy, f: Callable[..., Any], args: tuple[Any, ...], name: str, seed: int
) -> Iterator[Fault]:
    out, plain = vjp(f, *args, policy=SaveAll())
    ct = random_cotangents(np.random.default_rng(seed), out)
    expected = flatten(plain(ct))[0]
    plain.close()
    watched = WatchedPolicy(policy)
    result, pull = vjp(f, *args, policy=policy if isinstance(policy, SaveAll) else watched)
    if not same_bits(tuple(flatten(out)[0]), tuple(flatten(result)[0])):
        yield Fault(
            "other value",
            f"{name} under {policy!r} returned other bits than under SaveAll(); the initial sweep is not to recompute",
        )
    cotangents = flatten(pull(ct))[0]
    measured, requests = pull.report.n_forward, tuple(watched.requests)
    yield from _bit_faults(policy, name, cotangents, expected, "")
    yield from _bit_faults(policy, name, flatten(pull(ct))[0], expected, " when pull is called again")
    pull.close()
    left = pull.report.live_bytes
    if left:
        yield Fault(
            "bytes left",
            f"{name} under {policy!r} holds {left} bytes after pull.close(), expected 0; delete every entry before "
            "EndReverse",
        )
    predicted = _predicted(policy, requests)
    if requests and measured not in predicted:
        yield Fault(
            "wrong forecast",
            f"{name} under {policy!r} executed {measured} forward steps, the simulator predicts {predicted[0]} for the "
            "schedules asked for; the actions yielded must depend on the length and the sizes alone",
        )


def _predicted(policy: MemoryPolicy, requests: tuple[Request, ...]) -> tuple[int, ...]:
    """Forward steps of the schedules that ran to their end; the second number counts the steps recorded from a lookback
    state, too.

    A schedule with actions left was given up: code before the first mark counts as an unmarked loop until the mark
    comes.
    """
    runs = []
    for n, state_bytes, tape_bytes, schedule in requests:
        if next(schedule, None) is None:
            length = schedule.n if schedule.n is not None else n or 0  # a loop of unknown length has finalized it
            runs.append(simulate(policy.schedule(n, state_bytes=state_bytes, tape_bytes=tape_bytes), length))
    total = sum(run.n_forward for run in runs)
    return total, total + sum(run.n_lookback for run in runs)


def _bit_faults(
    policy: MemoryPolicy, name: str, cotangents: list[Any], expected: list[Any], when: str
) -> Iterator[Fault]:
    for place, (a, b) in enumerate(zip(cotangents, expected, strict=True)):
        if not same_bits(a, b):
            with np.errstate(all="ignore"):
                gap = float(np.max(np.abs(np.asarray(a) - np.asarray(b)))) if np.shape(a) == np.shape(b) else np.nan
            yield Fault(
                "other bits",
                f"the cotangent of leaf {place} of {name} under {policy!r}{when} differs from SaveAll()'s by up to "
                f"{gap:.3g}, expected the same bits",
            )
