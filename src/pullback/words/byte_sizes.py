"""Numbers of bytes as people write them: ``200_000_000``, ``"200 MB"``, ``"1.5 GiB"``, ``"50 %"`` of what is free."""

import operator
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pullback.words.errors import PolicyError

UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
    "TIB": 2**40,
}  # fmt: skip


def as_bytes(size: Any, name: str) -> int:
    """A number of bytes, from an integer or a text such as ``"200 MB"`` (10**6) or ``"200 MiB"`` (2**20).

    ``"50 %"`` is that share of the memory that is available now (:func:`available_bytes`). ``name`` is that of the
    argument, for the message. Raises :class:`PolicyError` for anything else, for a negative number, and for a share
    where nothing tells what is available.
    """
    if isinstance(size, str):
        share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", size)
        if share is not None and 0 < float(share[1]) <= 100:
            return int(float(share[1]) / 100 * _available(size, name))
        match = re.fullmatch(r"\s*(\d+(?:[._]?\d+)*)\s*([A-Za-z]*)\s*", size)
        if match is not None and match[2].upper() in UNITS and match[1].count(".") < 2:
            return int(float(match[1]) * UNITS[match[2].upper()])
    elif not isinstance(size, bool):
        try:
            number = operator.index(size)
        except TypeError:
            number = -1
        if number >= 0:
            return number
    raise PolicyError(
        f'{name}={size!r} is no number of bytes; write an integer, or a text with a unit such as "200 MB" or "1.5 GiB" '
        'or "50 %" of the memory that is available'
    )


def _available(size: str, name: str) -> int:
    available = available_bytes()
    if available is None:
        raise PolicyError(f"{name}={size!r}: nothing here tells how much memory is available; write a number of bytes")
    return available


def available_bytes(root: Path = Path("/")) -> int | None:
    """The memory that this process can still take: what the system has, or what the limits of its control groups leave.

    A group's file cache that can be given back counts as free. None where the system does not tell: elsewhere than
    on Linux. ``root`` is where its files lie.
    """
    found = [_of_system(root / "proc/meminfo"), *_of_groups(root)]
    return min((max(0, free) for free in found if free is not None), default=None)


def limit_of_groups(root: Path = Path("/")) -> int | None:
    """The least limit of memory that the control groups of this process have; None where they have none."""
    limits = (_values(group / limit) for group, limit, *_ in _groups(root))
    return min((found[0] for found in limits if found), default=None)


def _of_system(meminfo: Path) -> int | None:
    return next((1024 * value for value in _values(meminfo, "MemAvailable:")), None)


def _of_groups(root: Path) -> Iterator[int]:
    """What each control group of this process leaves."""
    for group, limit, used, cache in _groups(root):
        yield from _left(group, limit, used, cache)


def _groups(root: Path) -> Iterator[tuple[Path, str, str, str]]:
    """The folders of the control groups of this process, of either version and up to the top, with the names under
    which they tell limit, use and cache."""
    mounted = root / "sys/fs/cgroup"
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, path = [*line.strip().split(":", 2), "", ""][:3]
        if number == "0" and not controllers:
            tops = [mounted, mounted / "unified"]
            names = ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            tops = [mounted / "memory"]
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for top in tops:
            for depth in range(len(parts), -1, -1):  # in a container the path may begin above what is mounted
                yield top.joinpath(*parts[:depth]), *names


def _left(group: Path, limit: str, used: str, cache: str) -> Iterator[int]:
    """What one group leaves; nothing where it has no limit or is not there."""
    limits, uses = _values(group / limit), _values(group / used)
    if limits and uses:
        yield limits[0] - uses[0] + sum(_values(group / "memory.stat", cache))


def _values(path: Path, key: str = "") -> list[int]:
    """The number behind ``key``, or the number that is the whole file; empty where it is none."""
    rows = [line.split() for line in _lines(path)]
    words = [row[1] for row in rows if len(row) > 1 and row[0] == key] if key else [row[0] for row in rows if row]
    return [int(word) for word in words[:1] if word.isdecimal()]


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except OSError:
        return []
