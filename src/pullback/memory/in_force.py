"""What is in force in this thread or task: what ``using`` has set (policy, verify, staging, threads, progress), and the
traces under way."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from operator import index
from threading import get_ident
from typing import Any, Final

import numpy as np

from pullback.choosing.agreement import AgreedPoint, Agreement
from pullback.policies.base import MemoryPolicy, PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.recording.tape import CAPTURED, DEFERRED, FORWARD, PAUSED, RECORDING, REPLAYABLE, Tape, recording_of
from pullback.words.errors import PolicyError
from pullback.words.ordered_calls import UNDER_WAY
from pullback.words.plugins import backend

_TAPES: Final[ContextVar[tuple[Tape, ...]]] = UNDER_WAY
_PLANNED: ContextVar[list[Any] | None] = ContextVar("pullback_planned", default=None)
_WATCHERS: ContextVar[tuple[Callable[[Any], None], ...]] = ContextVar("pullback_watchers", default=())
LIVE: Final[dict[int, None]] = {}
"""The threads in which traces are under way. Adopted code looks whether there is any, which must cost nothing."""
RESUMED: Final[ContextVar[Any]] = ContextVar("pullback_resumed", default=None)
"""The block of ``resume`` that was entered last; :func:`resumed` asks whether it is open in this process."""
MEASURED: Final[ContextVar[bool]] = ContextVar("pullback_measured", default=False)
"""Whether loops are run for the sake of a plan, which also says what their steps take while they run."""
_UNSAID = (None, None, None, None, None, None)
_USED: ContextVar[tuple[Any, ...]] = ContextVar("pullback_used", default=_UNSAID)
"""The policy, ``verify``, ``staging``, ``threads``, ``progress`` and ``agreement`` of ``using``; None for what is not
said."""
# What is asked of what is in force, with the answers where there is nothing at all.
NOTHING_SAID: Final = ((_TAPES.get, ()), (_USED.get, _UNSAID), (_WATCHERS.get, ()), (_PLANNED.get, None))
_SAVE_ALL = SaveAll()
_NO_POINT: Final = nullcontext()
CHECKS: Final = ("off", "state", "all")
"""What ``verify`` may be."""
STAGINGS: Final = ("auto", "off", "numpy")
"""What ``staging`` may be: where it pays, nowhere, from the first step that repeats; or else the name of a backend."""


def using(
    policy: PolicyOrAuto = None,
    *,
    verify: str | None = None,
    staging: str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    agreement: Agreement | None = None,
) -> "AbstractContextManager[Any]":
    """Within the block, ``policy`` is what ``policy=None`` means, and so for the other settings; what is not given
    stays as it is. Blocks nest, and the values before are restored even after an error.

    Parameters
    ----------
    policy
        A memory policy, or ``"auto"``.
    verify
        What is compared where steps are run again: ``"all"`` (the default), ``"state"`` or ``"off"``, see
        :func:`fori_loop`.
    staging
        How steps that repeat are computed: ``"auto"`` (the default), ``"off"``, or the name of a backend.
    threads
        Among how many threads generated functions divide what is computed in blocks (default 1); the bits are the same
        for any number.
    progress
        True shows how far each gradient is, and how long it will take, by the schedule: steps of the sweep, steps
        executed again, steps reversed. In a terminal or a notebook; it needs the extra ``cli``.
    agreement
        What several ranks agree by that run one program together (:class:`Agreement`).

    Returns
    -------
    A context manager.

    Raises
    ------
    PolicyError
        For what is no policy or agreement, another word, or fewer threads than 1.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x))
    >>> with pb.using(pb.Binomial(5)):
    ...     g = pb.grad(f)(np.ones(3))
    >>> bool(np.all(g == pb.grad(f)(np.ones(3))))
    True
    """
    return InForce(
        None if policy is None else checked(policy),
        None if verify is None else verify_in_force(verify),
        None if staging is None else staging_in_force(staging),
        None if threads is None else threads_in_force(threads),
        None if progress is None else progress_in_force(progress),
        None if agreement is None else _checked_agreement(agreement),
    )


class InForce:
    """The block of :func:`using`. No generator: what an interrupt leaves of one would end in another context."""

    __slots__ = ("_before", "_used")

    def __init__(
        self,
        policy: MemoryPolicy | None,
        verify: str | None = None,
        staging: str | None = None,
        threads: int | None = None,
        progress: bool | None = None,
        agreement: Agreement | None = None,
    ) -> None:
        self._used = policy, verify, staging, threads, progress, agreement

    def __enter__(self) -> MemoryPolicy | None:
        self._before = _USED.get()
        _USED.set(tuple([old if new is None else new for new, old in zip(self._used, self._before, strict=True)]))
        return self._used[0]

    def __exit__(self, *_: object) -> None:
        _USED.set(self._before)


def settings_in_force(policy: PolicyOrAuto) -> tuple[MemoryPolicy | None, str | None, str | None, int | None]:
    """What :func:`using` is to be told in another thread or process, so that what runs there runs as here: ``policy``,
    or for None the one in force, and the ``verify``, ``staging`` and ``threads`` in force; None for what is not said.
    ``progress`` is left out: a bar is drawn where somebody looks; and so is ``agreement``, which is of this rank."""
    in_force, verify, staging, threads = _USED.get()[:4]
    return (in_force if policy is None else checked(policy)), verify, staging, threads


def verify_in_force(verify: Any = None) -> str:
    """``verify`` itself, or for None the one of ``using``, else ``"all"``; raises :class:`PolicyError` for anything
    else."""
    if verify is None:
        return _USED.get()[1] or "all"
    if verify not in CHECKS:
        raise PolicyError(f"verify= takes one of {', '.join(map(repr, CHECKS))}, got {verify!r}")
    return str(verify)


def staging_in_force(staging: Any = None) -> str:
    """``staging`` itself, or for None the one of ``using``, else ``"auto"``; raises :class:`PolicyError` for anything
    else than ``"auto"``, ``"off"`` or the name of a backend, :class:`PluginError` for one that is not installed."""
    if staging is None:
        return _USED.get()[2] or "auto"
    if staging not in STAGINGS:
        words = ", ".join(map(repr, STAGINGS))
        if not isinstance(staging, str) or not staging.isidentifier():
            raise PolicyError(f"staging= takes one of {words} or the name of a backend, got {staging!r}")
        backend(staging)
    return str(staging)


def threads_in_force(threads: Any) -> int:
    """``threads`` itself, or for None the number of ``using``, else 1; raises :class:`PolicyError` for anything but a
    whole number from 1 on."""
    if threads is None:
        return _USED.get()[3] or 1
    if isinstance(threads, bool | np.bool) or not hasattr(type(threads), "__index__") or index(threads) < 1:
        raise PolicyError(
            f"threads= takes a whole number from 1 on, got {threads!r}; 1 uses the thread that calls, and len("
            "os.sched_getaffinity(0)) tells how many processors there are"
        )
    return index(threads)


def progress_in_force(progress: Any) -> bool:
    """``progress`` itself, or for None that of ``using``, else False; raises :class:`PolicyError` for anything but
    True and False."""
    if progress is None:
        return bool(_USED.get()[4])
    if not isinstance(progress, bool | np.bool):
        raise PolicyError(f"progress= takes True or False, got {progress!r}; a function to call is profile's alone")
    return bool(progress)


def agreement_in_force() -> Agreement | None:
    """The one of ``using``, None where ranks agree on nothing."""
    found: Agreement | None = _USED.get()[5]
    return found


def _checked_agreement(agreement: Any) -> Agreement:
    """Raises :class:`PolicyError` for what has not the methods of one."""
    for name in ("largest", "settled"):
        if not callable(getattr(agreement, name, None)):
            raise PolicyError(
                f"agreement= takes an object with the methods largest and settled (pullback.Agreement), got "
                f"{agreement!r}, which has no {name}"
            )
    return agreement  # type: ignore[no-any-return]  # as asked


def agreed_at_end(
    tape: Tape, agreement: Agreement | None = None, *, always: bool = True
) -> "AbstractContextManager[None]":
    """The block of a pass of a transform: ranks learn at its end whether all went well, where it is in no other;
    unless ``always``, of errors alone. ``agreement``: that of the pass before it."""
    found = None if _TAPES.get() else agreement or agreement_in_force()
    return _NO_POINT if found is None else AgreedPoint(found, lambda: always and tape.collective)


def policy_in_force(policy: PolicyOrAuto = None) -> MemoryPolicy:
    """``policy`` itself, or for None the one of ``using``, else :class:`SaveAll`; raises :class:`PolicyError` for
    anything else."""
    if policy is not None:
        return checked(policy)
    return _USED.get()[0] or _SAVE_ALL


def saves_all() -> bool:
    """Whether save-all is the policy."""
    return isinstance(_USED.get()[0] or _SAVE_ALL, SaveAll)


def checked(policy: Any) -> MemoryPolicy:
    """``policy``, if it is one."""
    if not isinstance(policy, MemoryPolicy):
        if isinstance(policy, str) and policy == "auto":
            from pullback.choosing.auto import AUTO  # noqa: PLC0415 - for those who use it

            return AUTO
        kind = policy if isinstance(policy, type) else type(policy)
        remedy = f"pass an instance, {policy.__name__}(...)" if policy is kind else "pass an instance, not a name"
        if hasattr(kind, "actions") and not issubclass(kind, MemoryPolicy):
            remedy = (
                f"derive the class from it, as @attrs.frozen class {kind.__name__}(pullback.MemoryPolicy), and pass an "
                "instance (docs/write-a-policy.md)"
            )
        expected = 'a memory policy such as pullback.Binomial(20), or "auto"'
        raise PolicyError(f"policy= takes {expected}, got {policy!r}; {remedy}")
    return policy


class Tracing:
    """Within the block the tapes are the innermost traces, the last of them the innermost. Every step of a loop
    enters one, and may enter the same block again when it has been left."""

    __slots__ = ("_all", "_around", "_tapes", "_token")

    def __init__(self, *tapes: Tape) -> None:
        self._tapes = tapes
        self._around: tuple[Tape, ...] | None = None
        self._all: tuple[Tape, ...] = ()

    def __enter__(self) -> None:
        around = _TAPES.get()
        if around is not self._around:
            self._around, self._all = around, (*around, *self._tapes)
        self._token = _TAPES.set(self._all)
        LIVE[get_ident()] = None

    def __exit__(self, *_: object) -> None:
        _TAPES.reset(self._token)
        if not _TAPES.get():
            LIVE.pop(get_ident(), None)

    def _now(self, tapes: tuple[Tape, ...]) -> None:
        _TAPES.set(tapes)


class Enclosed(Tracing):
    """Within the block a step of a loop in the trace ``enclosing`` runs: that trace is in ``mode``, ``PAUSED`` or
    ``CAPTURED`` by ``inner`` (the tape of the step), and those around it are redirected to it, as they were while it
    was made. Without a trace nothing is done."""

    __slots__ = ("_before", "_enclosing", "_inner", "_mode")

    def __init__(self, enclosing: Tape | None, mode: int, inner: Tape | None = None) -> None:
        super().__init__(*(tape for tape in (enclosing, inner) if tape is not None))
        self._enclosing, self._mode, self._inner = enclosing, mode, inner

    def __enter__(self) -> None:
        tape, mode, below = self._enclosing, self._mode, self._inner
        self._before: list[tuple[Tape, int, Tape | None]] = []
        while tape is not None:
            self._before.append((tape, tape.mode, tape.inner))
            tape.mode, tape.inner = mode, below
            mode, below, tape = CAPTURED, tape, tape.enclosing
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        for tape, mode, below in self._before:
            tape.mode, tape.inner = mode, below


def _recording() -> Tape | None:
    """The innermost trace that records in this context."""
    return recording_of(_TAPES.get())[0]


def innermost(*, follows: bool = False) -> Tape | None:
    """The innermost trace, an ordinary one unless whoever asks ``follows`` shadow runs."""
    found = _recording()
    return found.shadow.surrender() if found is not None and found.mode == DEFERRED and not follows else found


def advancing() -> Tape | None:
    """The innermost trace, where a step of a loop in it runs on plain arrays; else None."""
    tapes = _TAPES.get()
    return tapes[-1] if tapes and tapes[-1].mode == PAUSED else None


def recording_alone() -> Tape | None:
    """The innermost trace, where it records under save-all, for itself: no step of a loop, and in no other trace."""
    tape = innermost_alone()
    return tape if tape is not None and tape.mode == RECORDING else None


def innermost_alone() -> Tape | None:
    """The innermost trace, where it records under save-all or computes tangents, for itself."""
    tape = _recording()
    alone = tape is not None and tape.mode in (RECORDING, FORWARD) and tape.captures is None and tape.outer is None
    return tape if alone else None


def nothing_in_force() -> bool:
    """Whether there is no trace, save-all is the policy, and nobody watches: what a call of ``grad`` mostly meets."""
    used = _USED.get()
    said = used[0] is not None or used[4] or used[5] is not None
    return not (_TAPES.get() or said or _WATCHERS.get() or _PLANNED.get() is not None)


def recorded(tape: Tape | None) -> bool:
    """Whether what a trace computes is recorded by ``tape``, whose handles are its values, or by one around that, to be
    reversed there.

    Then the trace saves all, whatever the policy: what it computed again would be recorded once more, so that more was
    held, not less, and cotangents would be added in another order.
    """
    while tape is not None and tape.mode not in (RECORDING, REPLAYABLE):
        tape = tape.outer
    return tape is not None


def depth() -> int:
    """How many traces are under way in this context."""
    return len(_TAPES.get())


def next_level() -> int:
    """The level of a trace that begins now: above every other under way."""
    return max([tape.level for tape in _TAPES.get()], default=0) + 1


@contextmanager
def planning() -> Iterator[list[Any]]:
    """Within the block loop functions run two steps and are carried out on names of buffers; the list gathers them."""
    loops: list[Any] = []
    token = _PLANNED.set(loops)
    try:
        yield loops
    finally:
        _PLANNED.reset(token)


def resumed() -> Any:
    """The block of ``resume`` in force, which gives a loop its journal; None where there is none, and in a process that
    was forked off within the block."""
    return None if (session := RESUMED.get()) is None or session.lock is None else session


def planned() -> list[Any] | None:
    """The list of loops being planned, None while programs are run for real."""
    return _PLANNED.get()


@contextmanager
def watching(tell: Callable[[Any], None]) -> Iterator[None]:
    """Within the block ``tell`` gets the report of every reverse pass as it ends; blocks nest, and each is told."""
    token = _WATCHERS.set((*_WATCHERS.get(), tell))
    try:
        yield
    finally:
        _WATCHERS.reset(token)


def watchers() -> tuple[Callable[[Any], None], ...]:
    """Who is to be told of a reverse pass."""
    return _WATCHERS.get()
