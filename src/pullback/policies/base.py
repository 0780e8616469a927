"""What a policy is: a frozen value that gives a schedule for a loop of n steps."""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import NOTHING, define, fields

from pullback.words.errors import PolicyError

if TYPE_CHECKING:
    from pullback.scheduling.machine.actions import Action
    from pullback.scheduling.machine.schedule import Schedule


@define(repr=False, unsafe_hash=True)
class MemoryPolicy:
    """How much memory a loop or program may hold between forward and reverse: the base class of all policies.

    Subclass it, as a frozen attrs class, and write :meth:`actions` as a plain generator. Every action is checked by
    :class:`pullback.scheduling.machine.machine.Machine` as it is carried out, so a wrong policy raises and never gives
    a wrong gradient::

        @frozen
        class KeepEveryState(MemoryPolicy):
            def actions(self, n, *, state_bytes=0, tape_bytes=0):
                for k in range(n):
                    yield Save("state", k)
                    yield Advance(k, k + 1)
                yield EndForward()
                for k in reversed(range(n)):
                    yield Load("state", k)
                    yield Delete("state", k)
                    yield Record(k)
                    yield Reverse(k)
                yield EndReverse()

    Example
    -------
    >>> import pullback as pb
    >>> isinstance(pb.SaveAll(), MemoryPolicy)
    True
    """

    @property
    def within(self) -> Any:
        """What decides of the values within a step (:class:`~pullback.policies.keep.Keep`); None: all are held."""
        return None

    @property
    def plans_values(self) -> bool:
        """Whether code without marks is no chain of steps for it, but a graph of values."""
        return False

    @property
    def between(self) -> "MemoryPolicy":
        """What decides which steps of a loop function are held: itself, unless it says so of values within them."""
        return self

    def schedule(self, n: int | None, *, state_bytes: int | None = None, tape_bytes: int | None = None) -> "Schedule":
        """A fresh schedule for a loop of ``n`` steps (``None``: unknown, told later by ``finalize``).

        ``state_bytes`` and ``tape_bytes`` are the sizes of one snapshot and of the tape of one step, None where they
        are unknown. Where a policy :attr:`counts_states`, tapes take the place of states that are larger
        (:mod:`pullback.scheduling.machine.tapes_for_states`). Raises ``PolicyError`` for a length that is negative or
        no whole number, or unknown where this policy needs it.
        """
        # What schedules are made of is read when the first is asked for: most programs run under save-all.
        from pullback.scheduling.machine.schedule import whole_number  # noqa: PLC0415 - as above

        length = (
            None if n is None else whole_number(n, "the number of steps", 0, "Pass n >= 0, or None where it is unknown")
        )
        found = self.begin(length, state_bytes=state_bytes or 0, tape_bytes=tape_bytes or 0)
        if self.counts_states and state_bytes is not None and tape_bytes is not None and tape_bytes < state_bytes:
            from pullback.scheduling.machine.tapes_for_states import tapes_for_states  # noqa: PLC0415 - as above

            return tapes_for_states(found, state_bytes, tape_bytes)
        return found

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> "Schedule":
        """The schedule for a checked ``n``, and sizes of which 0 is unknown as well: overridden by policies that can
        learn the length late (``finish`` of ``Schedule``)."""
        from pullback.scheduling.machine.schedule import Schedule  # noqa: PLC0415 - as above

        if n is None:
            raise PolicyError(
                f"{self!r} needs a known length and this loop does not know its own. "
                "Use pb.steps(n) with a number, or SaveAll, Recompute, Periodic or Binomial."
            )
        try:
            actions = iter(self.actions(n, state_bytes=state_bytes, tape_bytes=tape_bytes))
        except TypeError as error:
            raise PolicyError(
                f"{self!r} gives no actions ({error}). Write actions(self, n, *, state_bytes, tape_bytes), a generator."
            ) from error
        return Schedule(actions, n, policy=self)

    def reserving(self, nbytes: int, *, start_held: bool = False, digests: int = 0) -> "MemoryPolicy":  # noqa: ARG002
        """The policy for a loop that holds ``nbytes`` beside snapshots and tapes: itself, unless it counts bytes.

        ``start_held``: the initial state is among these, so its snapshot takes nothing more. ``digests``: what those of
        the loop take, where there is room.
        """
        return self

    def lending(self, begun: int) -> "MemoryPolicy":  # noqa: ARG002
        """The policy for a loop that others may follow, which may need the bytes more, and that begins when so many are
        booked: itself, unless it counts bytes."""
        return self

    def at_call(self) -> "MemoryPolicy":
        """The policy for a call of a transform that begins now: itself, unless it looks at what is free."""
        return self

    def common(self, least: Callable[[int], int]) -> "MemoryPolicy":  # noqa: ARG002
        """The policy where several ranks run the steps together: itself, unless it goes by what only this one knows;
        ``least`` gives the smallest of a number over all of them."""
        return self

    def decided(self, loop: Any, ledger: Any) -> tuple["MemoryPolicy", Any]:  # noqa: ARG002
        """The policy for a loop of known sizes (:class:`pullback.choosing.auto.LoopSizes`), asked before its schedule:
        itself, unless it decides within the run; and what is closed when the loop is over, or None."""
        return self, None

    @property
    def looks(self) -> bool:
        """Whether :meth:`measuring` looks at its gauge, which costs a little."""
        return False

    @property
    def unlooked_bytes(self) -> int:
        """What plain code without marks may make, and is kept, before it becomes a chain of steps."""
        return 0

    def measuring(self, n: int | None, gauge: Any) -> "Schedule":  # noqa: ARG002
        """The schedule for recorded steps, whose sizes show as they run (:class:`pullback.choosing.auto.Gauge`):
        :meth:`schedule` without sizes, unless the policy looks at them."""
        return self.schedule(n)

    def kept_unlooked(self, ledger: Any) -> None:
        """A program has ended: nothing, unless the policy tells the report that all was kept."""

    @property
    def needs_sizes(self) -> bool:
        """Whether ``state_bytes`` and ``tape_bytes`` change its schedules. Then those of marked steps are drawn after
        two steps, which tell them."""
        return True

    @property
    def counts_bytes(self) -> bool:
        """Whether its schedules stay within a number of bytes: then it is asked :meth:`reserving` first."""
        return False

    @property
    def counts_states(self) -> bool:
        """Whether its schedules hold a number of states, whatever their bytes: then the tapes of the steps that a state
        serves are held in its place where they take less."""
        return False

    @property
    def room(self) -> int | None:
        """The bytes that snapshots and tapes may take together; None where nobody has said a number."""
        return None

    def least(self, n: int, state_bytes: int, tape_bytes: int) -> int:
        """The bytes of snapshots and tapes that a known number of steps can do with: what they take, where nobody has
        said a number."""
        from pullback.scheduling.machine.simulator import simulate  # noqa: PLC0415 - of loops with a number

        sizes = {"state_bytes": state_bytes, "tape_bytes": tape_bytes}
        return simulate(self.schedule(n, **sizes), n, **sizes).peak_bytes

    @property
    def ample_bytes(self) -> int | None:
        """The number of bytes beside which a program may be so small that nobody has to look at what it holds."""
        return self.room

    def parted(self, nbytes: int) -> "MemoryPolicy":  # noqa: ARG002
        """The policy of a loop in a step, which gets so many bytes of the :attr:`room`: itself, where there is none."""
        return self

    def affords(self, nbytes: int, least: int) -> bool:  # noqa: ARG002
        """Whether ``nbytes`` that only make a loop faster are little beside what it may hold, and leave the ``least``
        that it has to."""
        return True

    @property
    def tiers(self) -> Mapping[str, Any]:
        """What the names of tiers in actions stand for where it is not the default: name to place, of
        ``pullback.stores`` or a user's own; a path or URL is ``Disk`` there."""
        return {}

    # For those who override it.
    def actions(self, n: int, *, state_bytes: int, tape_bytes: int) -> "Iterator[Action]":  # noqa: ARG002
        """Yield the actions for ``n`` steps: the one method a user's policy writes."""
        raise PolicyError(
            f"{type(self).__name__} yields no actions for n={n}. Write actions(self, n, *, state_bytes, tape_bytes)."
        )

    def __setattr__(self, name: str, value: object) -> None:
        """Raises: a policy is a value. Frozen attrs classes and dataclasses set their fields in another way."""
        kind = type(self).__name__
        raise PolicyError(
            f"{kind}.{name} cannot be set: a policy is a frozen value. Declare its settings as fields, "
            f"@attrs.frozen class {kind}(pullback.MemoryPolicy): with a line {name}: {type(value).__name__}, and no "
            "__init__ (docs/write-a-policy.md)."
        )

    def __repr__(self) -> str:
        cls: Any = type(self)
        shown = []
        for part in fields(cls):
            value = getattr(self, part.name)
            if part.default is NOTHING or value != part.default:
                shown.append(f"{part.name}={value!r}" if part.kw_only else repr(value))
        return f"{cls.__name__}({', '.join(shown)})"


PolicyOrAuto: TypeAlias = MemoryPolicy | Literal["auto"] | None
"""What ``policy=`` takes: None is the policy of ``using``, else save-all."""
