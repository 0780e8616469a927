"""``profile``: one program under several memory policies, measured."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, overload

import numpy as np
from attrs import define, evolve, field, frozen

from pullback.instruments.inspect.saved_values import saved
from pullback.instruments.profiling.profile_block import Watch
from pullback.instruments.profiling.profile_measurements import (
    DotProduct,
    MeasuredProgram,
    MeasuredRun,
    NotedPolicy,
    chain_figures,
    directional,
    make_program,
    peak_rss,
    plain_seconds,
    run_once,
    taylor_rate,
    why_not_sent,
)
from pullback.instruments.profiling.profile_table import Profile, Row
from pullback.instruments.profiling.seconds import SHORT, Forecaster, phases_of, timeline_of
from pullback.instruments.watching.parts import Tell, telling
from pullback.memory.in_force import policy_in_force
from pullback.memory.ledger import mib
from pullback.policies.base import MemoryPolicy, PolicyOrAuto
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.keep import KEEP, RECOMPUTE, Keep
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.testing.comparing.bits import same_bits
from pullback.transforms.derivatives.argnums import name_of
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import PolicyWarning, PullbackError
from pullback.words.structures import flatten

NO_LINE = "no line"
"""What is said to hold what no line of the user's holds."""
DEFAULT_POLICIES = (SaveAll(), Recompute(), Binomial(10), Binomial(30))


@overload
def profile() -> Watch: ...
@overload
def profile(
    f: Callable[..., Any],
    *args: Any,
    policies: PolicyOrAuto | Sequence[PolicyOrAuto] = None,
    budget: int | str | None = None,
    argnums: int | Sequence[int] = 0,
    repeat: int = 3,
    lines: int = 0,
    timeline: bool = False,
    taylor: bool = False,
    dot_product: bool = False,
    rss: bool = False,
    progress: Tell | bool | None = None,
    **kwargs: Any,
) -> Profile: ...
@public
def profile(
    f: Callable[..., Any] | None = None,
    *args: Any,
    policies: PolicyOrAuto | Sequence[PolicyOrAuto] = None,
    budget: int | str | None = None,
    argnums: int | Sequence[int] = 0,
    repeat: int = 3,
    lines: int = 0,
    timeline: bool = False,
    taylor: bool = False,
    dot_product: bool = False,
    rss: bool = False,
    progress: Tell | bool | None = None,
    **kwargs: Any,
) -> Profile | Watch:
    """The gradient of ``f(*args, **kwargs)`` under each policy: what it held, what it executed, how long it took, and
    beside each measured figure what ``plan`` predicts.

    Each gradient is computed ``repeat`` times, a short one at least twice, and compared, bit for bit, with the first
    one of save-all (of the first policy where save-all is not among them), and once more to tell the seconds by phase
    and the operations executed again. Without ``f``, ``with profile() as p:`` observes the gradients computed within
    the block.

    Parameters
    ----------
    f
        Any function whose gradient exists; None for a block.
    *args, **kwargs
        Its arguments.
    policies
        One or several; by default save-all, recompute, binomial with 10 and with 30 snapshots.
    budget
        ``"100 MB"``: save-all and :class:`Budget` of these bytes, or what ``policies`` says and it.
    argnums
        The arguments of the gradient.
    repeat
        How many times each gradient is computed; the fastest counts.
    lines
        Adds a row for each of so many lines of yours that make most of what is held: everything is held but that, which
        is computed again. ``answer`` says in sentences which line holds the memory, and what it costs not to hold it.
    timeline
        Adds what was held when, of one more run under each policy: ``row.timeline``.
    taylor, dot_product
        Add a Taylor test (scalar ``f``), and the dot product with a derivative in forward mode.
    rss
        Adds the resident memory of a process for each policy: needs memory-profiler and a ``f`` that can be pickled,
        without which the column is left out and a note says why.
    progress
        True shows a bar with what is under way; a function ``progress(what, done, total)`` is called as each part
        begins.

    Returns
    -------
    A :class:`Profile`, which prints as a table; for a block a
    :class:`pullback.instruments.profiling.profile_block.Watch`. A policy that refuses the program, or under which it
    fails half way, has no row and is told with its reason in the notes (``refused``).

    Raises
    ------
    PullbackError
        What ``vjp`` raises, where it does so under every policy; an error of ``f`` bears a note on what was held until
        then.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> table = pb.profile(f, np.ones(1000), policies=[pb.SaveAll(), pb.Binomial(5)], repeat=1)
    >>> [row.peak_bytes < 200_000 for row in table.rows]
    [False, True]
    """
    if f is None:
        return Watch()
    if isinstance(policies, MemoryPolicy | str):
        policies = (policies,)
    chosen = DEFAULT_POLICIES if budget is None else (SaveAll(),)
    policies = tuple(chosen if policies is None else map(policy_in_force, policies))
    if budget is not None:
        policies = (*policies, Budget(as_bytes(budget, "budget")))
    if not policies or repeat < 1:
        raise ValueError(
            f"profile needs a policy and a run, got {len(policies)} policies and repeat={repeat}; pass at least one of "
            "each"
        )
    if lines < 0:
        raise ValueError(f"profile needs lines >= 0, got {lines}; pass how many lines are to be left out in turn")
    program = make_program(f, args, (argnums,) if isinstance(argnums, int) else tuple(argnums), kwargs)
    with telling(progress) as tell:
        wanted = {"taylor": taylor, "dot_product": dot_product, "rss": rss, "timeline": timeline}
        try:
            policies = (*policies, *(without(line) for line in lines_that_make(program, lines)))
            return _profiled(program, policies, tell, repeat=repeat, **wanted)
        except Exception as error:
            if not isinstance(error, PullbackError):  # f has failed: what is known up to there is told
                error.add_note(_until_it_failed(program, policies[0]))
            raise


def _until_it_failed(program: MeasuredProgram, policy: MemoryPolicy) -> str:
    """What a function held until it failed, and by which line most."""
    until = timeline_of(program, policy, whole=False)
    most = next(iter(holding_lines(program.as_far_as_it_goes, policy)), None)
    told = "" if most is None else f"; most of it by {most[0]}: {mib(most[1])}"
    return f"until it failed, {name_of(program.f)} held under {policy!r}: {until}{told}"


def _profiled(
    program: MeasuredProgram,
    policies: tuple[MemoryPolicy, ...],
    tell: Tell,
    *,
    repeat: int,
    taylor: bool,
    dot_product: bool,
    rss: bool,
    timeline: bool,
) -> Profile:
    without_rss = why_not_sent(program, policies) if rss else ""
    rss = rss and not without_rss
    parts = _Parts(tell, 1 + dot_product + len(policies) * (2 + repeat + taylor + rss + timeline))
    if without_rss:
        parts.report(f"no peak RSS: {without_rss}", 0, parts.total)
    parts.begin("one plain forward run")
    plain_seconds(program)  # unmeasured: the first run meets cold caches
    jv = None
    if dot_product:
        parts.begin("the derivative along a direction")
        jv = directional(program)
    session = _Session(program, parts, repeat=repeat, taylor=taylor, rss=rss, jv=jv, timeline=timeline)
    first = next((k for k, policy in enumerate(policies) if isinstance(policy, SaveAll)), 0)
    rows = session.rows(policies, first)
    parts.finish()
    seconds, worked = map(min, zip(*session.plain, strict=True))
    ordered = tuple(evolve(rows[k], ratio=rows[k].cpu_seconds / (worked or np.nan)) for k in sorted(rows))
    method = None if jv is None else jv.method
    under, refused = policies[min(rows, key=lambda k: k != first)], tuple(session.refused)
    held = holding_lines(program, under)
    return Profile(name_of(program.f), ordered, seconds, repr(under), method, worked, without_rss, refused, held)


@define(eq=False)
class _Session:
    """One profile under way: what its rows share."""

    program: MeasuredProgram
    parts: "_Parts"
    repeat: int = field(kw_only=True)
    taylor: bool = field(kw_only=True)
    rss: bool = field(kw_only=True)
    jv: DotProduct | None = field(kw_only=True)
    timeline: bool = field(kw_only=True)
    plain: list[tuple[float, float]] = field(factory=list, init=False)
    """Seconds of plain forward runs, one before each gradient, so that a busy machine slows both alike."""
    reference: MeasuredRun | None = field(default=None, init=False)
    """The first run of the first policy."""
    refused: list[tuple[str, str]] = field(factory=list, init=False)
    """Policies without a row, each with why."""
    forecaster: Forecaster = field(init=False)
    n_steps: int = field(default=0, init=False)
    """Forward steps of the first policy where it is save-all; 0 where its steps are not counted."""
    rate: float | None = field(default=None, init=False)
    """The rate of the reference; a gradient of the same bits has the same."""

    def __attrs_post_init__(self) -> None:
        self.forecaster = Forecaster(self.program)

    def rows(self, policies: Sequence[MemoryPolicy], first: int) -> dict[int, Row]:
        """The rows by the place of their policy, ``first`` before the others; raises what was raised under each."""
        found: dict[int, Row] = {}
        errors: list[Exception] = []
        for k in (first, *(k for k in range(len(policies)) if k != first)):
            try:
                with quietly(policies[k]):
                    found[k] = self.row(policies[k])
            except Exception as error:  # noqa: BLE001 - of the user's function, too: the other rows are worth having
                self.refused.append((repr(policies[k]), f"{type(error).__name__}: {error}"))
                errors.append(error)
        if not found:
            raise errors[0]
        return found

    def row(self, policy: MemoryPolicy) -> Row:
        """Everything asked for, under one policy."""
        program, line = self.program, line_of(policy)
        name = f"without {line}" if line else repr(policy)
        self.parts.begin(f"{name}: forecast")
        forecast, predicted_seconds, again = self.forecaster.forecast(policy)
        observed = policy if isinstance(policy, SaveAll) else NotedPolicy(policy)  # save-all holds no snapshot
        runs, same = self._runs(observed, name)
        run, fastest = runs[-1], min(runs, key=lambda each: each.elapsed_seconds)
        self.parts.begin(f"{name}: seconds by phase")
        phases = phases_of(program, policy, again)
        rate = self._rate(run, name, same=same) if self.taylor else None
        if self.timeline:
            self.parts.begin(f"{name}: timeline")
        if self.rss:
            self.parts.begin(f"{name}: peak RSS")
        snapshots, length = chain_figures(observed)
        n_forward = run.report.n_forward
        if isinstance(policy, SaveAll):
            self.n_steps = n_forward
        steps = self.n_steps or length
        return Row(
            policy=name,
            snapshots=snapshots,
            n_forward=n_forward or None,
            recompute_factor=n_forward / steps if steps and n_forward else None,
            predicted_bytes=forecast.peak_bytes,
            peak_bytes=run.report.peak_bytes,
            bytes_by_reason=dict(run.report.bytes_by_reason),
            rss_bytes=peak_rss(program, policy) if self.rss else None,
            seconds=fastest.elapsed_seconds,
            forward_seconds=fastest.forward_seconds,
            cpu_seconds=min(each.cpu_seconds for each in runs),
            ratio=np.nan,  # until every plain run is timed
            taylor_rate=rate,
            dot_product_error=self.jv.error(run.gradient) if self.jv is not None else None,
            same_bits=same,
            predicted_seconds=predicted_seconds,
            phases=phases,
            timeline=timeline_of(program, policy) if self.timeline else None,
            without_line=line,
        )

    def _runs(self, policy: MemoryPolicy, name: str) -> tuple[list[MeasuredRun], bool]:
        """The runs, and whether all have the bits of the reference."""
        runs = []
        for k in range(self.repeat):
            self.parts.begin(f"{name}: gradient {k + 1} of {self.repeat}")
            runs.append(self._run(policy))
        if len(runs) == 1 and runs[0].elapsed_seconds < SHORT:  # the first run meets cold caches
            runs.append(self._run(policy))
        self.reference = reference = self.reference or runs[0]
        return runs, all(same_bits(*(flatten(each.gradient)[0] for each in (run, reference))) for run in runs)

    def _run(self, policy: MemoryPolicy) -> MeasuredRun:
        self.plain.append(plain_seconds(self.program))
        return run_once(self.program, policy)

    def _rate(self, run: MeasuredRun, name: str, *, same: bool) -> float:
        self.parts.begin(f"{name}: Taylor test")
        if not same:
            return taylor_rate(self.program, run.gradient)
        self.rate = self.rate if self.rate is not None else taylor_rate(self.program, run.gradient)
        return self.rate


@define(eq=False)
class _Parts:
    """Counts the parts of the work, and reports each as it begins."""

    report: Tell
    total: int
    done: int = 0

    def begin(self, what: str) -> None:
        """The next part begins."""
        self.report(what, self.done, self.total)
        self.done += 1

    def finish(self) -> None:
        """All parts are done."""
        self.report("done", self.total, self.total)


# ------------------------------------------------------------------------------------------ lines as what holds memory


@frozen
class MadeAt:
    """The rule of :class:`Keep` for what a line of the user's, ``model.py:12``, makes."""

    line: str

    @property
    def __name__(self) -> str:
        """What the policy calls it."""
        return f"line {self.line}"

    def __call__(self, value: Any) -> bool:
        """Whether the line has made this value."""
        return bool(value.line == self.line)


def without(line: str) -> Keep:
    """The policy that holds everything but what this line makes."""
    return Keep({MadeAt(line): RECOMPUTE}, others=KEEP)


def line_of(policy: MemoryPolicy) -> str:
    """The line that a policy is :func:`without`; empty for any other."""
    rules = policy.rules if isinstance(policy, Keep) else ()
    return rules[0].what.line if rules and isinstance(rules[0].what, MadeAt) else ""


def lines_that_make(program: MeasuredProgram, n: int) -> list[str]:
    """The ``n`` lines that make most of what save-all holds, and more than a hundredth of it."""
    if not n:
        return []
    table = saved(program.call, *program.active, policy=SaveAll())
    groups = (group for group in table.group("maker") if 100 * group.nbytes > table.total_bytes)
    return [group.key for group in groups if not group.key.startswith("(")][:n]


def holding_lines(program: MeasuredProgram, policy: MemoryPolicy) -> tuple[tuple[str, int], ...]:
    """The lines that hold something under a policy, and their bytes, most first; at the end what no line holds: the
    memory of the arguments, too, which is the caller's. Nothing where the function fails this time."""
    sums: dict[str, int] = {}
    with quietly(policy), suppress(Exception):
        for row in saved(program.call, *program.active, policy=policy).rows:
            where = NO_LINE if row.is_argument else row.where or NO_LINE
            sums[where] = sums.get(where, 0) + row.nbytes
    return tuple(sorted(sums.items(), key=lambda pair: (pair[0] == NO_LINE, -pair[1])))


@contextmanager
def quietly(policy: MemoryPolicy) -> Iterator[None]:
    """Within the block no policy that leaves out a line warns that this holds no less: that is what is asked."""
    with warnings.catch_warnings():
        if line_of(policy):
            warnings.simplefilter("ignore", PolicyWarning)
        yield
