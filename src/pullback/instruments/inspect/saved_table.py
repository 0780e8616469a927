"""``Saved``: the table of what a program holds between forward and reverse. ``saved_values`` fills it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from attrs import asdict, evolve, frozen

from pullback.instruments.inspect.graph import place_text
from pullback.instruments.inspect.tables import Column, Table
from pullback.memory.ledger import mib
from pullback.words.errors import PullbackError
from pullback.words.specs import ArraySpec

SHOWN = 20
"""Rows that ``str`` lists, the largest first."""


@frozen
class Row:
    """One buffer, at the first record that holds it. ``spec`` and ``nbytes`` are those of the whole buffer, even where
    only a slice of it is saved.

    ``name`` is the slot as the rule declares it (``x``, ``out``, ``lu``); ``reason`` the ledger's word; ``origin`` what
    the value is: an input, the result of a node (``%5 exp``, numbered as in ``record``), or a constant. A row of a loop
    stands for one slot of its body: ``nbytes`` over all ``steps`` in which a buffer of its own is held there, ``spec``
    that of one of them.
    """

    nbytes: int
    primitive: str
    name: str
    reason: str
    spec: ArraySpec | None
    origin: str
    file: str = ""
    line: int = 0
    holders: int = 1
    """Slots that hold this buffer or a view of it; it counts once."""
    steps: int = 1
    loop: str = ""
    """The loop function that it is a slot of, with its line; empty outside loops."""
    is_argument: bool = False
    """The memory is the caller's own: held, but not added."""
    readers: tuple[str, ...] = ()
    """Whose pulls read it, each with the user's line."""
    first_step: int | None = None
    last_step: int | None = None
    """The last of the steps of a loop for which it is held."""
    made_at: str = ""
    """``file.py:12``, the user's line that made the value; empty for an input, a state and a constant."""

    @property
    def where(self) -> str:
        """``file.py:12``, the user's line; empty where there is none."""
        return place_text(self.file, self.line)

    @property
    def bytes_per_step(self) -> float:
        """Bytes of one step's share; all of them outside loops."""
        return self.nbytes / self.steps

    @property
    def kind(self) -> tuple[Any, ...]:
        """What rows have in common that differ in the number of a node alone."""
        return (
            self.file, self.line, self.primitive, self.name, self.reason, self.spec, self.loop, self.is_argument,
            unnumbered(self.origin),
        )  # fmt: skip


def unnumbered(origin: str) -> str:
    """What a value is without the number of its node."""
    return re.sub(r"^%\d+ ", "", origin)


@frozen
class Choice:
    """A rule with alternatives that save different values: ``taken`` are the names that the rule in use saves,
    ``others`` those of the alternatives (``nothing`` for none)."""

    primitive: str
    operand: str
    taken: str
    others: tuple[str, ...]
    where: str
    times: int

    def __str__(self) -> str:
        often = f", {self.times} times" if self.times > 1 else ""
        others = " or ".join(self.others)
        rule = f"the rule for {self.operand} that saves {self.taken}"
        return f"{self.primitive} at {self.where}{often}: {rule}; the alternative saves {others}"


@frozen
class Group:
    """Rows of one line, primitive or reason: their bytes together, and how many rows."""

    key: str
    nbytes: int
    n_rows: int


@frozen(repr=False)
class Groups:
    """The groups of a table by one property, the largest first. ``groups["saved"]`` gives the bytes of one."""

    by: str
    groups: tuple[Group, ...]

    def __iter__(self) -> Iterator[Group]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, key: str) -> int:
        return {group.key: group.nbytes for group in self.groups}[key]

    def table(self) -> Table:
        """One row a group."""
        columns = (
            Column("held", tuple(mib(g.nbytes) for g in self.groups)),
            Column("rows", tuple(str(g.n_rows) for g in self.groups)),
            Column(self.by, tuple(g.key for g in self.groups), text=True),
        )
        return Table(f"held by {self.by}: {mib(sum(g.nbytes for g in self.groups))}", columns)

    def _repr_html_(self) -> str:
        return self.table().html()

    def __str__(self) -> str:
        return str(self.table())

    def __repr__(self) -> str:
        return f"<Groups by {self.by}: {len(self.groups)}>"


_KEYS: dict[str, Callable[[Row], str]] = {
    "line": lambda row: f"{row.file}:{row.line}" if row.file else "(no line)",
    "primitive": lambda row: row.primitive,
    "reason": lambda row: row.reason,
    "name": lambda row: row.name,
    "origin": lambda row: row.origin,
    "loop": lambda row: row.loop or "(no loop)",
    "maker": lambda row: row.made_at or "(an input, a state or a constant)",
}

GROUPS = tuple(_KEYS)
"""What a table is grouped by."""


@frozen(repr=False)
class Saved:
    """What is held between forward and reverse: rows in the order of the program, loops after plain code. ``str``
    lists the largest."""

    program: str
    rows: tuple[Row, ...]
    choices: tuple[Choice, ...] = ()
    policy: str = ""
    """Empty for save-all."""

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers, each once: what the ledger and ``pull.report`` say of the same program under
        save-all."""
        return sum(row.nbytes for row in self.rows)

    @property
    def argument_bytes(self) -> int:
        """The part of ``total_bytes`` that is the arguments' own memory, which the caller holds anyway."""
        return sum(row.nbytes for row in self.rows if row.is_argument)

    def top(self, n: int) -> "Saved":
        """The table of the ``n`` largest rows, the largest first; its total is theirs alone."""
        return evolve(self, rows=tuple(sorted(self.rows, key=lambda row: -row.nbytes)[:n]))

    def group(self, by: str) -> Groups:
        """Bytes by ``"line"``, ``"primitive"``, ``"reason"``, ``"name"``, ``"origin"`` or ``"loop"``.

        Raises ``PullbackError`` for another word.
        """
        key = _KEYS.get(by)
        if key is None:
            raise PullbackError(f"saved values are not grouped by {by!r}; take one of {', '.join(map(repr, _KEYS))}")
        sums: dict[str, list[int]] = {}
        for row in self.rows:
            sums.setdefault(key(row), []).append(row.nbytes)
        groups = [Group(name, sum(sizes), len(sizes)) for name, sizes in sums.items()]
        return Groups(by, tuple(sorted(groups, key=lambda group: -group.nbytes)))

    def folded(self) -> "Saved":
        """The table with one row for all that differ in the number of a node alone, as those of the steps of a Python
        loop do; their ``steps`` are added up."""
        found: dict[Any, Row] = {}
        for row in self.rows:
            before = found.get(row.kind)
            if before is None:
                found[row.kind] = row
            else:
                nbytes, steps, origin = before.nbytes + row.nbytes, before.steps + row.steps, unnumbered(row.origin)
                found[row.kind] = evolve(before, nbytes=nbytes, steps=steps, origin=origin)
        return evolve(self, rows=tuple(found.values()))

    def to_dict(self) -> dict[str, Any]:
        """Everything in it as plain values, ready for ``json.dump``."""
        rows = [asdict(row) | {"spec": str(row.spec) if row.spec is not None else None} for row in self.rows]
        return {
            "program": self.program,
            "policy": self.policy,
            "total_bytes": self.total_bytes,
            "argument_bytes": self.argument_bytes,
            "rows": rows,
            "choices": [asdict(choice) for choice in self.choices],
        }

    def listing(self, limit: int | None = SHOWN) -> str:
        """The largest rows as a table, :meth:`folded` where there are more than ``limit``; all as they are with
        ``None``."""
        return str(self.table(limit))

    def table(self, limit: int | None = SHOWN) -> Table:
        """The largest rows, as :meth:`listing` prints them, as a :class:`Table`."""
        table = self if limit is None or len(self) <= limit else self.folded()
        shown = table.top(len(table) if limit is None else limit).rows
        return Table(self._title(), _columns(shown), tuple(self._notes(table, shown)))

    def _repr_html_(self) -> str:
        return self.table().html()

    def _title(self) -> str:
        under = f" under {self.policy}" if self.policy else ""
        return f"{self.program}{under} holds {mib(self.total_bytes)} between forward and reverse"

    def _notes(self, table: "Saved", shown: tuple[Row, ...]) -> Iterator[str]:
        smaller, n = self.total_bytes - sum(row.nbytes for row in shown), len(table) - len(shown)
        if n:
            rest = "a row that holds" if n == 1 else f"{n} rows that hold"
            yield f"... and {mib(smaller)} in {rest} no more than these"
        if len(table) < len(self):
            yield f"{len(self)} rows are folded into {len(table)}, by line, operation, slot, value, reason and spec"
        if self.argument_bytes:
            yield f"{mib(self.argument_bytes)} of it is the arguments' own memory"
        yield from (f"{choice}" for choice in self.choices)

    def __str__(self) -> str:
        return self.listing()

    def __repr__(self) -> str:
        return f"<Saved: {self._title()}, {len(self.rows)} rows>"


def _columns(rows: tuple[Row, ...]) -> tuple[Column, ...]:
    columns = [Column("held", tuple(mib(row.nbytes) for row in rows))]
    if any(row.loop or row.steps > 1 for row in rows):
        each = tuple(f"{row.steps} x {mib(row.bytes_per_step)}" if row.loop or row.steps > 1 else "" for row in rows)
        columns.append(Column("buffers x bytes", each))
    if any(row.loop for row in rows):
        columns.append(Column("steps", tuple(map(_range, rows))))
    texts: dict[str, Callable[[Row], str]] = {
        "spec": lambda row: str(row.spec) if row.spec is not None else "" if row.loop else "opaque",
        "primitive": lambda row: row.primitive,
        "slot": lambda row: row.name + (f" ({row.holders} holders)" if row.holders > 1 else ""),
        "value": lambda row: row.origin,
        "reason": lambda row: row.reason,
        "line": lambda row: row.where,
    }
    if any(len(row.readers) > 1 for row in rows):
        texts["also read by"] = _other_readers
    columns += [Column(title, tuple(map(cell, rows)), text=True) for title, cell in texts.items()]
    return tuple(columns)


def _range(row: Row) -> str:
    """``0-19``, the steps of a loop that a row is held for."""
    if row.first_step is None or row.first_step == row.last_step:
        return "" if row.first_step is None else str(row.first_step)
    return f"{row.first_step}-{row.last_step}"


def _other_readers(row: Row) -> str:
    """All but the one that stands in its row, two by name."""
    others = row.readers[1:]
    return ", ".join(others[:2]) + (f" and {len(others) - 2} more" if len(others) > 2 else "")
