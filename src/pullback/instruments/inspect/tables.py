"""A table as a value: columns of text with two-line headers, printed as aligned plain text. It knows nothing of what
it shows."""

from html import escape

from attrs import frozen

GAP = "  "
STYLE = """
.pullback { font: 13px/1.5 system-ui, sans-serif; color: inherit; overflow-x: auto }
.pullback table { border-collapse: collapse; margin: 0.4em 0 }
.pullback caption { text-align: left; font-weight: 600; padding-bottom: 0.3em }
.pullback th { text-align: right; vertical-align: bottom; white-space: pre-line; border-bottom: 1px solid currentColor }
.pullback td { text-align: right; border-bottom: 1px solid color-mix(in srgb, currentColor 18%, transparent) }
.pullback th, .pullback td { padding: 0.15em 0.8em 0.15em 0; background: none; color: inherit }
.pullback .words { text-align: left } .pullback pre, .pullback small { color: inherit; background: none }
"""
"""The style of a table in a notebook: its colours are those of the page around it, light or dark."""


def framed(inside: str) -> str:
    """A piece of a page in that style; ``inside`` is HTML."""
    return f'<div class="pullback"><style>{STYLE}</style>{inside}</div>'


def as_text(text: str) -> str:
    """Plain text as such a piece."""
    return framed(f"<pre>{escape(text)}</pre>")


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
        """Characters of the widest cell."""
        return max(map(len, (*self.lines, *self.cells)))

    def placed(self, cell: str) -> str:
        """``cell`` padded to the width of the column."""
        return cell.ljust(self.width) if self.text else cell.rjust(self.width)


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
        """The table with one column for each row; for few rows of many columns and a narrow screen."""
        first, *rest = self.columns
        names = Column(first.title, tuple(column.title for column in rest), text=True)
        across = [Column(name, tuple(column.cells[k] for column in rest)) for k, name in enumerate(first.cells)]
        return Table(self.title, (names, *across), self.notes)

    def compact(self) -> str:
        """Plain text without rules and empty lines; of headers in one line."""
        lines = [GAP.join(column.placed(column.title) for column in self.columns).rstrip()]
        return "\n".join([self.title, *lines, *self._body(), *self.notes])

    def _body(self) -> list[str]:
        return [
            GAP.join(column.placed(cell) for column, cell in zip(self.columns, row, strict=True)).rstrip()
            for row in self.rows
        ]

    def html(self) -> str:
        """The table as a piece of a page, for a notebook: escaped, and without anything from elsewhere."""
        kind = ['class="words"' if column.text else "" for column in self.columns]
        heads = "".join(
            f"<th {k}>{escape(chr(10).join(part for part in column.lines if part))}</th>"
            for k, column in zip(kind, self.columns, strict=True)
        )
        rows = "".join(
            "<tr>" + "".join(f"<td {k}>{escape(cell)}</td>" for k, cell in zip(kind, row, strict=True)) + "</tr>"
            for row in self.rows
        )
        notes = "".join(f"<small>{escape(note)}</small><br>" for note in self.notes)
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        return framed(f"<table>{title}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{notes}")

    def __str__(self) -> str:
        heads = [GAP.join(column.placed(column.lines[k]) for column in self.columns).rstrip() for k in (0, 1)]
        rule = "-" * self.width
        return "\n".join([
            self.title,
            "",
            *(head for head in heads if head),
            rule,
            *self._body(),
            *(["", *self.notes] if self.notes else []),
        ])
