"""A table as a value: columns of text with two-line headers, printed as aligned plain text. It knows nothing of what
it shows."""

from attrs import frozen

GAP = "  "


@frozen
class Column:
    """One column: its header in one or two lines (the last ``|`` of ``header`` breaks it), and a cell for every row."""

    header: str
    cells: tuple[str, ...]
    text: bool = False
    """Words stand to the left, numbers to the right."""

    @property
    def lines(self) -> tuple[str, str]:
        """The header as two lines, the upper one empty where it has only one."""
        upper, _, lower = self.header.rpartition("|")
        return upper, lower

    @property
    def title(self) -> str:
        """The header in one line."""
        return " ".join(part for part in self.lines if part)

    @property
    def width(self) -> int:
        """Characters of the widest entry."""
        return max(map(len, (*self.lines, *self.cells)))

    def placed(self, entry: str) -> str:
        """``entry`` padded to the width of the column."""
        return entry.ljust(self.width) if self.text else entry.rjust(self.width)


@frozen
class Table:
    """Columns of equal length under a title, with lines of notes below. ``str`` gives plain text."""

    title: str
    columns: tuple[Column, ...]
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Characters of the widest line of the columns."""
        return sum(column.width for column in self.columns) + len(GAP) * (len(self.columns) - 1)

    @property
    def rows(self) -> tuple[tuple[str, ...], ...]:
        """The cells row by row."""
        return tuple(zip(*(column.cells for column in self.columns), strict=True))

    def transposed(self) -> "Table":
        """The same with one column for each row; for few rows of many columns and a narrow screen."""
        first, *rest = self.columns
        names = Column(first.title, tuple(column.title for column in rest), text=True)
        across = [Column(name, tuple(column.cells[k] for column in rest)) for k, name in enumerate(first.cells)]
        return Table(self.title, (names, *across), self.notes)

    def __str__(self) -> str:
        heads = [GAP.join(column.placed(column.lines[k]) for column in self.columns).rstrip() for k in (0, 1)]
        rule = "-" * self.width
        body = [
            GAP.join(column.placed(cell) for column, cell in zip(self.columns, row, strict=True)).rstrip()
            for row in self.rows
        ]
        return "\n".join([
            self.title,
            "",
            *(head for head in heads if head),
            rule,
            *body,
            *(["", *self.notes] if self.notes else []),
        ])
