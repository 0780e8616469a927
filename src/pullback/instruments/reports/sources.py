"""The source with what each line holds."""

import linecache
from pathlib import Path, PurePath
from typing import Any, Final

from pullback.instruments.inspect.saved_table import Saved

WHOLE: Final = 300
"""Lines of a file that is shown whole; of a longer one the surroundings of what holds something are."""
AROUND: Final = 12


def source_lines(table: Saved) -> list[dict[str, Any]]:
    """The name of each file that rows name, its path as shown, and its lines as ``(number, text, bytes, rows)``; those
    that hold most first.

    A gap is a line with the number 0. A file whose text is not to be had has its held lines alone.
    """
    held: dict[str, dict[int, tuple[int, int]]] = {}
    for row in table.rows:
        if row.file:
            of_file = held.setdefault(row.file, {})
            nbytes, n_rows = of_file.get(row.line, (0, 0))
            of_file[row.line] = nbytes + row.nbytes, n_rows + 1
    files = sorted(held, key=lambda file: -sum(nbytes for nbytes, _ in held[file].values()))
    return [{"name": PurePath(file).name, "shown": _shown(file), "lines": _lines(file, held[file])} for file in files]


def _lines(file: str, held: dict[int, tuple[int, int]]) -> list[tuple[int, str, int, int]]:
    texts = linecache.getlines(file)
    if not texts:
        return [(line, "", *held[line]) for line in sorted(held)]
    wanted = range(1, len(texts) + 1)
    if len(texts) > WHOLE:
        near = {k for line in held for k in range(line - AROUND, line + AROUND + 1)}
        wanted = sorted(near & set(wanted))  # type: ignore[assignment]  # either way numbers that rise
    lines: list[tuple[int, str, int, int]] = []
    for number in wanted:
        if lines and lines[-1][0] != number - 1:
            lines.append((0, "", 0, 0))
        lines.append((number, texts[number - 1].rstrip(), *held.get(number, (0, 0))))
    return lines


def _shown(file: str) -> str:
    """The path from the working directory, or the name of a file elsewhere: a page is handed on to others."""
    path, here = PurePath(file), Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else path.name
