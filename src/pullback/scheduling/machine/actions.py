"""The vocabulary of schedules: frozen, comparable, hashable values that print as the constructor that makes them.

Steps are numbered 0 .. n-1. ``x_k`` is the state at the START of step k: x_0 is the initial state, x_n the final one.
WORK is what the executor holds in its hands: one live state and the tape of at most one step. A *tier* is a place where
entries are stored until they are deleted; every executor has ``"memory"`` and ``"disk"``. An *entry* is a ``"state"``
(the snapshot x_k) or a ``"tape"`` (what the VJP rules of step k read). The exact rules are those of
:class:`pullback.scheduling.machine.machine.Machine`.
"""

import operator
from typing import Any, Literal, SupportsIndex, TypeAlias

from attrs import NOTHING, field, fields, frozen

from pullback.words.errors import PolicyError

Kind: TypeAlias = Literal["state", "tape"]

MEMORY = "memory"
DISK = "disk"


class _Printed:
    """Prints a value as its positional constructor, without trailing defaults: ``Save('state', 3)``."""

    __slots__ = ()

    def __repr__(self) -> str:
        cls: Any = type(self)
        shown = [(getattr(self, part.name), part.default) for part in fields(cls)]
        while shown and shown[-1][1] is not NOTHING and shown[-1][0] == shown[-1][1]:
            shown.pop()
        return f"{cls.__name__}({', '.join(repr(value) for value, _ in shown)})"


def _whole(step: SupportsIndex) -> int:
    """The number of a step; an action of a step and a half does not come to be."""
    if type(step) is int:
        return step
    try:
        if type(step) is not bool:
            return operator.index(step)
    except TypeError:
        pass
    raise PolicyError(
        f"an action names its steps by whole numbers, got {step!r} of type {type(step).__name__}. "
        "Divide by // where you compute them, or pass int(...)."
    )


@frozen(repr=False)
class _OfStep(_Printed):
    step: int = field(converter=_whole)


@frozen(repr=False)
class _OfEntry(_Printed):
    kind: Kind
    step: int = field(converter=_whole)
    tier: str = MEMORY


@frozen(repr=False)
class Advance(_Printed):
    """Run steps ``start`` .. ``stop - 1`` without recording, from the live x_start to x_stop.

    Parameters
    ----------
    start, stop
        The first step that is run, and the first that is not.

    Example
    -------
    >>> Advance(0, 3)
    Advance(0, 3)
    """

    start: int = field(converter=_whole)
    stop: int = field(converter=_whole)


@frozen(repr=False)
class Record(_OfStep):
    """Run step ``step`` from x_step and keep its tape in WORK; x_(step+1) is live afterwards.

    Parameters
    ----------
    step
        The number of the step.

    Example
    -------
    >>> Record(3)
    Record(3)
    """


@frozen(repr=False)
class Reverse(_OfStep):
    """Pull the cotangent of x_(step+1) back to x_step with the tape in WORK, which is consumed.

    Parameters
    ----------
    step
        The number of the step.

    Example
    -------
    >>> Reverse(3)
    Reverse(3)
    """


@frozen(repr=False)
class Save(_OfEntry):
    """Put the live x_step (``"state"``), or the tape of ``step`` out of WORK (``"tape"``), in ``tier``.

    Parameters
    ----------
    kind
        ``"state"`` or ``"tape"``.
    step
        The number of the step.
    tier
        Where it is stored; by default ``"memory"``.

    Example
    -------
    >>> Save("state", 3)
    Save('state', 3)
    """


@frozen(repr=False)
class Load(_OfEntry):
    """Make the stored x_step live, or put the stored tape of ``step`` in WORK. The entry stays stored.

    Parameters
    ----------
    kind
        ``"state"`` or ``"tape"``.
    step
        The number of the step.
    tier
        Where it is stored; by default ``"memory"``.

    Example
    -------
    >>> Load("tape", 3, "disk")
    Load('tape', 3, 'disk')
    """


@frozen(repr=False)
class Delete(_OfEntry):
    """Release the entry from ``tier``. Nothing else ever releases one.

    Parameters
    ----------
    kind
        ``"state"`` or ``"tape"``.
    step
        The number of the step.
    tier
        Where it is stored; by default ``"memory"``.

    Example
    -------
    >>> Delete("state", 3)
    Delete('state', 3)
    """


@frozen(repr=False)
class Transfer(_Printed):
    """Copy the entry from tier ``source`` to tier ``target``, not touching WORK. It stays in ``source`` until
    its Delete.

    Parameters
    ----------
    kind
        ``"state"`` or ``"tape"``.
    step
        The number of the step.
    source, target
        The tiers.

    Example
    -------
    >>> Transfer("state", 3, "memory", "disk")
    Transfer('state', 3, 'memory', 'disk')
    """

    kind: Kind
    step: int = field(converter=_whole)
    source: str
    target: str


@frozen(repr=False)
class EndForward(_Printed):
    """X_n has been reached; the output of the loop is known and reversing may begin.

    Example
    -------
    >>> EndForward()
    EndForward()
    """


@frozen(repr=False)
class EndReverse(_Printed):
    """Every step is reversed and nothing is stored; no action follows.

    Example
    -------
    >>> EndReverse()
    EndReverse()
    """


Action: TypeAlias = Advance | Record | Reverse | Save | Load | Delete | Transfer | EndForward | EndReverse
