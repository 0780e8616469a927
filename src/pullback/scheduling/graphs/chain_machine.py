"""A chain of unequal stages and the machine that checks a schedule of it, byte for byte.

Stage i = 1 .. L makes x_i from x_(i-1); x_0 is resident at the start. ``a[i]`` bytes x_i takes, and its cotangent as
many. The tape of stage i takes ``abar[i]`` and contains x_i. ``of[i]`` and ``ob[i]`` bytes are taken besides while it
runs forward and back, at a cost of ``uf[i]`` and ``ub[i]``. Each of these lists but ``a`` begins with stage 1.
"""

from collections.abc import Sequence
from typing import Any, Final

from attrs import define, field, frozen

from pullback.scheduling.graphs.summary import numbers
from pullback.words.errors import PolicyError, ScheduleError

FWD: Final = "Fwd"
TAPE: Final = "Tape"
LOSS: Final = "Loss"
BWD: Final = "Bwd"
DROP: Final = "Drop"
DROP_TAPE: Final = "DropTape"


@frozen
class Stage:
    """``Fwd(i)`` makes x_i, ``Tape(i)`` the tape of stage i, ``Loss(L)`` the first cotangent, ``Bwd(i)`` the one of
    x_(i-1); ``Drop(i)`` and ``DropTape(i)`` let go of x_i and of the tape."""

    name: str
    stage: int

    def __repr__(self) -> str:
        return f"{self.name}({self.stage})"


@frozen
class Chain:
    """The chain: bytes and costs as the module says."""

    a: tuple[int, ...] = field(converter=numbers)
    abar: tuple[int, ...] = field(converter=numbers)
    uf: tuple[float, ...] = field(converter=numbers)
    ub: tuple[float, ...] = field(converter=numbers)
    of: tuple[int, ...] = field(converter=numbers)
    ob: tuple[int, ...] = field(converter=numbers)

    def __attrs_post_init__(self) -> None:
        n = self.n
        if n < 1:
            raise PolicyError(
                f"a={self.a} has {len(self.a)} numbers. Give the bytes of x_0, and of each stage's result."
            )
        for name in ("abar", "uf", "ub", "of", "ob"):
            if len(getattr(self, name)) != n:
                raise PolicyError(
                    f"{name} has {len(getattr(self, name))} numbers for {n} stages. Give one a stage, from stage 1 on."
                )
        if min((*self.a, *self.uf, *self.ub, *self.of, *self.ob)) < 0:
            raise PolicyError("a size or a cost is negative. Pass numbers of at least 0.")
        for i, (tape, result) in enumerate(zip(self.abar, self.a[1:], strict=True), 1):
            if tape < result:
                raise PolicyError(
                    f"abar of stage {i} is {tape} and a[{i}] is {result}: the tape contains the result. Add it to abar."
                )

    @property
    def n(self) -> int:
        """How many stages there are."""
        return len(self.a) - 1

    @property
    def least_cost(self) -> float:
        """The cost of save-all: everything once."""
        return sum(self.uf) + sum(self.ub)


@define
class ChainMachine:
    """Where a schedule of a chain stands; refuses what does not fit, and measures."""

    chain: Chain
    max_bytes: float = float("inf")
    plain: set[int] = field(factory=lambda: {0})
    tapes: set[int] = field(factory=set)
    cotangent: int | None = None
    """The i whose cotangent is live."""
    cost: float = 0
    peak_bytes: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.peak_bytes = self.chain.a[0]

    @property
    def held_bytes(self) -> int:
        """Bytes of all that is resident, and of the cotangent."""
        chain = self.chain
        held = sum(chain.a[i] for i in self.plain) + sum(chain.abar[i - 1] for i in self.tapes)
        return held + (0 if self.cotangent is None else chain.a[self.cotangent])

    def apply(self, step: Stage) -> None:
        """Do one step, or raise ``ScheduleError``."""
        rule = _RULES.get(step.name)
        self._need(rule is not None and 0 <= step.stage <= self.chain.n, step, "it is no step of this chain")
        assert rule is not None
        rule(self, step, step.stage)
        self._hold(self.held_bytes, step)

    def carry_out(self, steps: Sequence[Stage]) -> "ChainMachine":
        """Do all steps; raises ``ScheduleError`` also where the cotangent of x_0 is not reached."""
        for step in steps:
            self.apply(step)
        if self.cotangent != 0:
            raise ScheduleError(f"the schedule ends with the cotangent of x_{self.cotangent}. Bwd down to stage 1.")
        return self

    def _reads(self, step: Stage, i: int) -> None:
        there = i - 1 in self.plain or i - 1 in self.tapes
        self._need(there, step, f"x_{i - 1} is not resident, nor the tape that contains it")

    def _fwd(self, step: Stage, i: int) -> None:
        self._reads(step, i)
        self._need(i not in self.plain, step, "x is resident already")
        self._hold(self.held_bytes + self.chain.a[i] + self.chain.of[i - 1], step)
        self.plain.add(i)
        self.cost += self.chain.uf[i - 1]

    def _tape(self, step: Stage, i: int) -> None:
        self._reads(step, i)
        self._need(i not in self.tapes, step, "the tape is resident already")
        self._hold(self.held_bytes + self.chain.abar[i - 1] + self.chain.of[i - 1], step)
        self.tapes.add(i)
        self.cost += self.chain.uf[i - 1]

    def _loss(self, step: Stage, i: int) -> None:
        last = self.chain.n
        self._need(self.cotangent is None, step, "it comes once")
        self._need(i == last and (last in self.plain or last in self.tapes), step, f"x_{last} comes first")
        self.plain.discard(last)
        self.cotangent = last

    def _bwd(self, step: Stage, i: int) -> None:
        self._need(self.cotangent == i, step, "the cotangent of its result is not there")
        self._need(i in self.tapes, step, "its tape is not resident")
        self._reads(step, i)
        self._hold(self.held_bytes + self.chain.ob[i - 1], step)
        self.tapes.remove(i)
        self.plain.discard(i - 1)
        self.cotangent = i - 1
        self.cost += self.chain.ub[i - 1]

    def _drop(self, step: Stage, i: int) -> None:
        self._need(i in self.plain and i > 0, step, "there is no such x to drop")
        self.plain.remove(i)

    def _drop_tape(self, step: Stage, i: int) -> None:
        self._need(i in self.tapes, step, "there is no such tape to drop")
        self.tapes.remove(i)

    def _hold(self, nbytes: int, step: Stage) -> None:
        self.peak_bytes = max(self.peak_bytes, nbytes)
        self._need(nbytes <= self.max_bytes, step, f"it takes {nbytes:,} bytes and {self.max_bytes:,} are allowed")

    def _need(self, fits: bool, step: Stage, what: str) -> None:
        if not fits:
            raise ScheduleError(
                f"{step!r} does not fit: {what}. x_i of {sorted(self.plain)}, the tapes of {sorted(self.tapes)} and "
                f"the cotangent of {self.cotangent} are resident."
            )


_RULES: Final[dict[str, Any]] = {
    FWD: ChainMachine._fwd,  # noqa: SLF001 - the table belongs to the class
    TAPE: ChainMachine._tape,
    LOSS: ChainMachine._loss,  # noqa: SLF001
    BWD: ChainMachine._bwd,  # noqa: SLF001
    DROP: ChainMachine._drop,  # noqa: SLF001
    DROP_TAPE: ChainMachine._drop_tape,  # noqa: SLF001
}
