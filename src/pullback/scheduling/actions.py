"""The vocabulary of schedules: frozen, comparable, hashable values that print as the constructor that makes them.

Steps are numbered 0 .. n-1. ``x_k`` is the state at the START of step k: x_0 is the initial state, x_n the final one.
WORK is what the executor holds in its hands: one live state and the tape of at most one step. A *tier* is a place where
entries are stored until they are deleted; every executor has ``"memory"`` and ``"disk"``. An *entry* is a ``"state"``
(the snapshot x_k) or a ``"tape"`` (what the VJP rules of step k read). The exact rules are those of
:class:`pullback.scheduling.machine.Machine`.
"""

from typing import Any, Literal, TypeAlias

from attrs import NOTHING, fields, frozen

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

    start: int
    stop: int


@frozen(repr=False)
class Record(_Printed):
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

    step: int


@frozen(repr=False)
class Reverse(_Printed):
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

    step: int


@frozen(repr=False)
class Save(_Printed):
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

    kind: Kind
    step: int
    tier: str = MEMORY


@frozen(repr=False)
class Load(_Printed):
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

    kind: Kind
    step: int
    tier: str = MEMORY


@frozen(repr=False)
class Delete(_Printed):
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

    kind: Kind
    step: int
    tier: str = MEMORY


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
    step: int
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
