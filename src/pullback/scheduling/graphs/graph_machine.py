"""A graph of operations and the machine that checks a schedule of it, byte for byte.

Inputs 0 .. are resident throughout. Operation v reads ``po[v]`` (operations) and ``pi[v]`` (inputs), and makes one
value. Its pullback reads ``so[v]`` (values of operations, maybe its own) and ``si[v]`` (inputs), takes the cotangent
of v, which is complete when every reader of v has been pulled back, and adds to those of what v reads. A cotangent is
as large as its value; that of an input stays to the end.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from attrs import define, field, frozen

from pullback.scheduling.graphs.summary import numbers
from pullback.words.errors import PolicyError, ScheduleError

COMPUTE: Final = "Compute"
DROP: Final = "Drop"
SEED: Final = "Seed"
PULL: Final = "Pull"


@frozen
class Step:
    """``Compute(v)``, ``Drop(v)``, ``Pull(v)``, or ``Seed(v)`` with the last operation."""

    name: str
    op: int

    def __repr__(self) -> str:
        return f"{self.name}({self.op})"


def _tuples(rows: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(dict.fromkeys(int(k) for k in row)) for row in rows)


@frozen(slots=False)
class Operations:
    """The graph: ``isz`` and ``sz`` bytes of inputs and values, ``fc`` and ``bc`` costs forward and back, what each
    operation reads (``pi``, ``po``), and what its pullback reads (``si``, ``so``). The last operation is the result."""

    isz: tuple[int, ...] = field(converter=numbers)
    sz: tuple[int, ...] = field(converter=numbers)
    fc: tuple[float, ...] = field(converter=numbers)
    bc: tuple[float, ...] = field(converter=numbers)
    pi: tuple[tuple[int, ...], ...] = field(converter=_tuples)
    po: tuple[tuple[int, ...], ...] = field(converter=_tuples)
    si: tuple[tuple[int, ...], ...] = field(converter=_tuples)
    so: tuple[tuple[int, ...], ...] = field(converter=_tuples)

    def __attrs_post_init__(self) -> None:
        n = len(self.sz)
        for name in ("fc", "bc", "pi", "po", "si", "so"):
            if len(getattr(self, name)) != n:
                raise PolicyError(
                    f"{name} has {len(getattr(self, name))} numbers and sz has {n}. Give one an operation."
                )
        if not n:
            raise PolicyError("the graph has no operation. Give at least one: the last is the result.")
        for v in range(n):
            if any(not 0 <= u < v for u in self.po[v]) or any(not 0 <= u <= v for u in self.so[v]):
                raise PolicyError(
                    f"operation {v} reads {self.po[v]} and its pullback {self.so[v]}: "
                    "an operation reads earlier ones, its pullback its own as well. Put them into topological order."
                )
            if any(not 0 <= u < len(self.isz) for u in (*self.pi[v], *self.si[v])):
                raise PolicyError(f"operation {v} reads inputs {self.pi[v]}, and there are {len(self.isz)}.")
        unread = [v for v in range(n - 1) if not self.readers[v]]
        if unread:
            raise PolicyError(f"nothing reads operation {unread[0]}, and it is not the result. Leave it out.")
        if min((*self.isz, *self.sz, *self.fc, *self.bc), default=0) < 0:
            raise PolicyError("a size or a cost is negative. Pass numbers of at least 0.")

    @property
    def n(self) -> int:
        """How many operations there are."""
        return len(self.sz)

    @cached_property
    def readers(self) -> tuple[int, ...]:
        """A mask of the operations that read it, for each operation."""
        return tuple(sum(1 << v for v in range(self.n) if u in self.po[v]) for u in range(self.n))

    @cached_property
    def input_readers(self) -> tuple[int, ...]:
        """A mask of the operations that read it, for each input."""
        return tuple(sum(1 << v for v in range(self.n) if u in self.pi[v]) for u in range(len(self.isz)))

    @cached_property
    def ancestors(self) -> tuple[int, ...]:
        """A mask of each operation itself and of all that it comes from."""
        masks: list[int] = []
        for v in range(self.n):
            mask = 1 << v
            for u in self.po[v]:
                mask |= masks[u]
            masks.append(mask)
        return tuple(masks)

    @property
    def least_cost(self) -> float:
        """The cost of save-all: everything once."""
        return sum(self.fc) + sum(self.bc)

    def cotangent_bytes(self, pulled: int, *, seeded: bool) -> int:
        """Bytes of the live cotangents when the operations of the mask ``pulled`` have been pulled back."""
        if not seeded:
            return 0
        last = self.n - 1
        own = sum(
            size
            for u, (size, readers) in enumerate(zip(self.sz, self.readers, strict=True))
            if not pulled >> u & 1 and (readers & pulled or u == last)
        )
        return own + sum(s for s, readers in zip(self.isz, self.input_readers, strict=True) if readers & pulled)

    def pullable(self, pulled: int) -> list[int]:
        """The operations whose cotangent is complete."""
        return [v for v, readers in enumerate(self.readers) if not pulled >> v & 1 and readers & ~pulled == 0]


@define
class GraphMachine:
    """Where a schedule of a graph stands; refuses what does not fit, and measures."""

    graph: Operations
    max_bytes: float = float("inf")
    resident: set[int] = field(factory=set)
    pulled: int = 0
    seeded: bool = False
    cost: float = 0
    peak_bytes: int = 0
    value_bytes: int = field(init=False)
    """Bytes of the inputs and the resident values."""

    def __attrs_post_init__(self) -> None:
        self.value_bytes = sum(self.graph.isz)

    def apply(self, step: Step) -> None:
        """Do one step, or raise ``ScheduleError``."""
        graph, v = self.graph, step.op
        if step.name == DROP:
            self._need(v in self.resident, step, "it is not resident")
            self.resident.remove(v)
            self.value_bytes -= graph.sz[v]
            return
        if step.name == COMPUTE:
            self._need(v not in self.resident, step, "it is resident already")
            self._need(set(graph.po[v]) <= self.resident, step, f"it reads {graph.po[v]}, of which one is missing")
            self.resident.add(v)
            self.value_bytes += graph.sz[v]
            self.cost += graph.fc[v]
        elif step.name == SEED:
            self._need(not self.seeded and v == graph.n - 1 and v in self.resident, step, "the result comes first")
            self.seeded = True
        else:
            self._need(step.name == PULL, step, "it is no step of a graph")
            self._need(self.seeded and v in graph.pullable(self.pulled), step, "its cotangent is not complete")
            self._need(set(graph.so[v]) <= self.resident, step, f"it reads {graph.so[v]}, of which one is missing")
            self.cost += graph.bc[v]
        freed = 0
        if step.name == PULL:  # its own cotangent is live until it is done
            self.pulled |= 1 << v
            freed = graph.sz[v]
        held = self.value_bytes + graph.cotangent_bytes(self.pulled, seeded=self.seeded) + freed
        self.peak_bytes = max(self.peak_bytes, held)
        self._need(held <= self.max_bytes, step, f"it takes {held:,} bytes and {self.max_bytes:,} are allowed")

    def _need(self, fits: bool, step: Step, what: str) -> None:
        if not fits:
            raise ScheduleError(f"{step!r} does not fit: {what}. {len(self.resident)} values are resident.")

    def carry_out(self, steps: Sequence[Step]) -> "GraphMachine":
        """Do all steps; raises ``ScheduleError`` also where an operation is not pulled back at the end."""
        for step in steps:
            self.apply(step)
        if self.pulled != (1 << self.graph.n) - 1:
            raise ScheduleError("the schedule ends before every operation is pulled back. Pull all of them.")
        return self
