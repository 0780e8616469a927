"""``profile``: one program under several memory policies, measured; the result prints as a table."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, overload

import numpy as np
from attrs import asdict, define, evolve, field, frozen

from pullback.inspect.profile_block import Watch, require_peak
from pullback.inspect.profile_measurements import (
    DotProduct,
    Program,
    Run,
    Watched,
    chain_figures,
    directional,
    make_program,
    peak_rss,
    plain_seconds,
    run_once,
    taylor_rate,
    why_not_sent,
)
from pullback.inspect.seconds import Forecaster, Phases, phases_of
from pullback.inspect.tables import Column, Table
from pullback.memory.in_force import policy_in_force
from pullback.memory.ledger import mib
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.budget import Budget
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.testing.comparing.bits import same_bits
from pullback.transforms.argnums import name_of
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import CheckError, PolicyError
from pullback.words.structures import flatten

Progress = Callable[[str, int, int], None]
"""Called with what begins now, how many parts are done, and how many there are."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


DEFAULT_POLICIES = (SaveAll(), Recompute(), Binomial(10), Binomial(30))


@frozen
class Row:
    """What was predicted and measured under one policy; None for a figure that is not wanted or does not apply."""

    policy: str
    snapshots: int
    """Most held at once by one loop."""
    n_forward: int | None
    """Forward steps executed, the first sweep included; None for plain code under save-all, which has no steps."""
    recompute_factor: float | None
    """``n_forward`` relative to the steps of the loop."""
    predicted_bytes: int
    """Peak of what is held for the reverse, as ``plan`` forecasts it."""
    peak_bytes: int
    """The same, as the ledger counted it."""
    bytes_by_reason: dict[str, int]
    rss_bytes: int | None
    """Peak resident set of a process of its own that computes this gradient, interpreter and libraries included."""
    seconds: float
    """Forward and reverse by the clock on the wall, the least of the runs."""
    forward_seconds: float
    """The part of it before the pull."""
    cpu_seconds: float
    """What the processor has worked, the least of the runs."""
    ratio: float
    """``cpu_seconds`` relative to one plain forward run: what else runs on the machine does not count."""
    taylor_rate: float | None
    """2 for a right gradient, 1 for a wrong one."""
    dot_product_error: float | None
    """The largest ``|<w, J v> - <J' w, v>| / (|w| |J v|)`` of three random directions."""
    predicted_seconds: float | None = field(kw_only=True, default=None)
    """Forward and reverse, from a few steps of each loop; of a program that must be run to be planned, of one run."""
    phases: Phases | None = field(kw_only=True, default=None)
    """Seconds forward, of what is executed again, and reverse, by the clock and of the processor, and the operations
    executed again: of one more run, in which steps are recorded and reversed each for themselves."""
    same_bits: bool
    """Whether every run gave the bits of the first run of the first policy (save-all where it is among them)."""


@frozen
class Profile:
    """The rows, one for each policy, and the seconds of one plain forward run. Prints as a table; ``to_json`` keeps
    every figure."""

    name: str
    rows: tuple[Row, ...]
    forward_seconds: float
    reference: str
    """The policy whose gradient the others are compared with."""
    derivative: str | None = None
    """How J v of the dot-product test was found."""
    forward_cpu_seconds: float = 0.0
    without_rss: str = ""
    """Why the peak RSS could not be read, where it was asked for."""
    refused: tuple[tuple[str, str], ...] = ()
    """Policies under which there is no gradient, each with why: what refused, or what was raised half way."""

    def assert_peak(self, budget: int | str, policy: MemoryPolicy | str | None = None) -> None:
        """Nothing, if no row (none of ``policy``) held more than so many bytes (``"200 MB"``) at the peak; else raises
        :class:`CheckError`, an ``AssertionError``, with what held them. For a test of a program of yours.

        Raises ``PolicyError`` for a policy that was not profiled, ``CheckError`` where one was refused, too.
        """
        name = None if policy is None else repr(policy_in_force(policy))
        rows = [row for row in self.rows if name is None or row.policy == name]
        if not rows:
            raise PolicyError(f"{name} was not profiled; pass one of {', '.join(row.policy for row in self.rows)}")
        if self.refused and name is None:
            raise CheckError(f"{self.name} was not profiled under every policy: {_refusals(self.refused)}")
        for row in rows:
            require_peak(f"{self.name} under {row.policy}", row.peak_bytes, row.bytes_by_reason, budget)

    def table(self) -> Table:
        """Columns for what was measured, and notes on what they mean."""
        rows = self.rows
        columns = [Column("policy", tuple(row.policy for row in rows), text=True)]
        for header, show, values in self._figures():
            if any(value is not None for value in values):
                columns.append(Column(header, tuple("-" if value is None else show(value) for value in values)))
        return Table(f"gradient of {self.name}, by memory policy", tuple(columns), self._notes())

    def _figures(self) -> Iterable[tuple[str, Callable[[Any], str], list[Any]]]:
        """Header, format and values of every column but the first."""
        rows = self.rows
        yield "|snapshots", str, [row.snapshots for row in rows]
        yield "forward|steps", str, [row.n_forward for row in rows]
        yield "recompute|factor", "{:.2f}".format, [row.recompute_factor for row in rows]
        yield "peak bytes|predicted", mib, [row.predicted_bytes for row in rows]
        yield "peak bytes|measured", mib, [row.peak_bytes for row in rows]
        yield "RSS|peak", mib, [row.rss_bytes for row in rows]
        yield "seconds|predicted", "{:.3g}".format, [row.predicted_seconds for row in rows]
        yield "seconds|measured", "{:.3g}".format, [row.seconds for row in rows]
        for part in ("forward", "recompute", "reverse"):
            spent = [None if row.phases is None else getattr(row.phases, part).cpu_seconds for row in rows]
            yield f"CPU s|{part}", "{:.3g}".format, spent
        yield "CPU|x plain", "{:.2f}".format, [row.ratio for row in rows]
        yield "Taylor|rate", "{:.3f}".format, [row.taylor_rate for row in rows]
        yield "dot-product|error", "{:.1e}".format, [row.dot_product_error for row in rows]
        yield "same|bits", lambda same: "yes" if same else "NO", [row.same_bits for row in rows]

    def _notes(self) -> tuple[str, ...]:
        off = [row for row in self.rows if row.predicted_bytes != row.peak_bytes]
        equal = "every gradient equals that of" if all(row.same_bits for row in self.rows) else "compared with"
        notes = [
            f"one plain forward run: {self.forward_seconds:.3g} s, {self.forward_cpu_seconds:.3g} s of the processor",
            "predicted = measured to the byte, for every policy"
            if not off
            else f"predicted and measured bytes differ for {', '.join(row.policy for row in off)}",
            f"same bits: {equal} {self.reference}, bit for bit",
        ]
        notes += [
            f"executed again under {row.policy}: " + ", ".join(f"{name} {n:,}" for name, n in most_of(row.phases))
            for row in self.rows
            if row.phases is not None and row.phases.operations
        ]
        if self.refused:
            notes.append(f"not profiled: {_refusals(self.refused)}")
        if self.without_rss:
            notes.append(f"no peak RSS: {self.without_rss}")
        if self.derivative is not None:
            notes.append(
                "dot-product error: |<w, Jv> - <J'w, v>| / (|w| |Jv|), the largest of three v, with Jv by "
                f"{self.derivative}"
            )
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, ready for ``json.dump``."""
        return asdict(self)

    def to_json(self) -> str:
        """Every figure, as text that ``json.loads`` reads; bytes and seconds as numbers."""
        return json.dumps(asdict(self), indent=2)

    def _repr_html_(self) -> str:
        return self.table().html()

    def __str__(self) -> str:
        return str(self.table())


def most_of(phases: Phases) -> list[tuple[str, int]]:
    """The primitives that were executed again most often, six at most."""
    return list(phases.operations.items())[:6]


def _refusals(refused: tuple[tuple[str, str], ...]) -> str:
    return "; ".join(f"{policy}: {why}" for policy, why in refused)


@overload
def profile() -> Watch: ...
@overload
def profile(
    f: Callable[..., Any],
    *args: Any,
    policies: MemoryPolicy | str | Sequence[MemoryPolicy | str] | None = None,
    budget: int | str | None = None,
    argnums: int | Sequence[int] = 0,
    repeat: int = 3,
    taylor: bool = False,
    dot_product: bool = False,
    rss: bool = False,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Profile: ...
@public
def profile(
    f: Callable[..., Any] | None = None,
    *args: Any,
    policies: MemoryPolicy | str | Sequence[MemoryPolicy | str] | None = None,
    budget: int | str | None = None,
    argnums: int | Sequence[int] = 0,
    repeat: int = 3,
    taylor: bool = False,
    dot_product: bool = False,
    rss: bool = False,
    progress: Progress | None = None,
    **kwargs: Any,
) -> Profile | Watch:
    """A :class:`Profile`: the gradient of ``f(*args, **kwargs)`` under each policy, what it held, what it executed, how
    long it took.

    Default policies: save-all, recompute, binomial with 10 and with 30 snapshots; with ``budget`` (``"100 MB"``)
    save-all and :class:`Budget` of these bytes, or what ``policies`` says and it. Beside each measured figure stands
    what ``plan`` predicts. Each gradient is computed ``repeat`` times and compared, bit for bit, with the first one of
    save-all (of the first policy where save-all is not among them), and once more to tell the seconds by phase and the
    operations executed again. A policy that refuses the program, or under which it fails half way, has no row and is
    told with its reason in the notes (``refused``).

    ``taylor`` (scalar ``f``), ``dot_product`` and ``rss`` (a process for each policy; needs memory-profiler and
    a ``f`` that can be pickled, without which the column is left out and a note says why) add their columns.
    ``progress(what, done, total)`` is called as each part begins.
    Raises what ``vjp`` raises, where it does so under every policy.

    Without ``f``, ``with profile() as p:`` observes the gradients computed within the block: see
    :class:`pullback.inspect.profile_block.Watch`.
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
    program = make_program(f, args, (argnums,) if isinstance(argnums, int) else tuple(argnums), kwargs)
    without_rss = why_not_sent(program, policies) if rss else ""
    rss = rss and not without_rss
    parts = _Parts(progress or silent, 1 + dot_product + len(policies) * (2 + repeat + taylor + rss))
    if without_rss:
        parts.report(f"no peak RSS: {without_rss}", 0, parts.total)
    parts.begin("one plain forward run")
    plain_seconds(program)  # unmeasured: the first run meets cold caches
    jv = None
    if dot_product:
        parts.begin("the derivative along a direction")
        jv = directional(program)
    session = _Session(program, parts, repeat=repeat, taylor=taylor, rss=rss, jv=jv)
    first = next((k for k, policy in enumerate(policies) if isinstance(policy, SaveAll)), 0)
    rows = session.rows(policies, first)
    parts.finish()
    seconds, worked = map(min, zip(*session.plain, strict=True))
    ordered = tuple(evolve(rows[k], ratio=rows[k].cpu_seconds / (worked or np.nan)) for k in sorted(rows))
    method = None if jv is None else jv.method
    reference, refused = repr(policies[min(rows, key=lambda k: k != first)]), tuple(session.refused)
    return Profile(name_of(f), ordered, seconds, reference, method, worked, without_rss, refused)


@define(eq=False)
class _Session:
    """One profile under way: what its rows share."""

    program: Program
    parts: "_Parts"
    repeat: int = field(kw_only=True)
    taylor: bool = field(kw_only=True)
    rss: bool = field(kw_only=True)
    jv: DotProduct | None = field(kw_only=True)
    plain: list[tuple[float, float]] = field(factory=list, init=False)
    """Seconds of plain forward runs, one before each gradient, so that a busy machine slows both alike."""
    reference: Run | None = field(default=None, init=False)
    """The first run of the first policy."""
    refused: list[tuple[str, str]] = field(factory=list, init=False)
    """Policies without a row, each with why."""
    forecaster: Forecaster = field(init=False)
    n_steps: int = field(default=0, init=False)
    """Forward steps of the first policy where it is save-all; 0 where its steps are not counted."""
    rate: float | None = field(default=None, init=False)
    """Of the reference; a gradient of the same bits has the same."""

    def __attrs_post_init__(self) -> None:
        self.forecaster = Forecaster(self.program)

    def rows(self, policies: Sequence[MemoryPolicy], first: int) -> dict[int, Row]:
        """The rows by the place of their policy, ``first`` before the others; raises what was raised under each."""
        found: dict[int, Row] = {}
        errors: list[Exception] = []
        for k in (first, *(k for k in range(len(policies)) if k != first)):
            try:
                found[k] = self.row(policies[k])
            except Exception as error:  # noqa: BLE001 - of the user's function, too: the other rows are worth having
                self.refused.append((repr(policies[k]), f"{type(error).__name__}: {error}"))
                errors.append(error)
        if not found:
            raise errors[0]
        return found

    def row(self, policy: MemoryPolicy) -> Row:
        """Everything asked for, under one policy."""
        program, name = self.program, repr(policy)
        self.parts.begin(f"{name}: forecast")
        forecast, predicted_seconds, again = self.forecaster.forecast(policy)
        observed = policy if isinstance(policy, SaveAll) else Watched(policy)  # save-all holds no snapshot
        runs, same = self._runs(observed, name)
        run, fastest = runs[-1], min(runs, key=lambda each: each.elapsed_seconds)
        self.parts.begin(f"{name}: seconds by phase")
        phases = phases_of(program, policy, again)
        rate = self._rate(run, name, same=same) if self.taylor else None
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
        )

    def _runs(self, policy: MemoryPolicy, name: str) -> tuple[list[Run], bool]:
        """The runs, and whether all have the bits of the reference."""
        runs, same = [], True
        for k in range(self.repeat):
            self.parts.begin(f"{name}: gradient {k + 1} of {self.repeat}")
            self.plain.append(plain_seconds(self.program))
            run = run_once(self.program, policy)
            self.reference = self.reference or run
            same = same and same_bits(*(flatten(each.gradient)[0] for each in (run, self.reference)))
            runs.append(run)
        return runs, same

    def _rate(self, run: Run, name: str, *, same: bool) -> float:
        self.parts.begin(f"{name}: Taylor test")
        if not same:
            return taylor_rate(self.program, run.gradient)
        self.rate = self.rate if self.rate is not None else taylor_rate(self.program, run.gradient)
        return self.rate


@define(eq=False)
class _Parts:
    """Counts the parts of the work, and reports each as it begins."""

    report: Progress
    total: int
    done: int = 0

    def begin(self, what: str) -> None:
        """The next part begins."""
        self.report(what, self.done, self.total)
        self.done += 1

    def finish(self) -> None:
        """All parts are done."""
        self.report("done", self.total, self.total)
