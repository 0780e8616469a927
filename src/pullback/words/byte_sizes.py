"""Numbers of bytes as people write them: ``200_000_000``, ``"200 MB"``, ``"1.5 GiB"``."""

import operator
import re
from typing import Any

from pullback.words.errors import PolicyError

UNITS = {
    "": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
    "TIB": 2**40,
}  # fmt: skip


def as_bytes(size: Any, name: str) -> int:
    """A number of bytes, from an integer or a text such as ``"200 MB"`` (10**6) or ``"200 MiB"`` (2**20).

    ``name`` is that of the argument, for the message. Raises :class:`PolicyError` for anything else, and for a negative
    number.
    """
    if isinstance(size, str):
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
        f'{name}={size!r} is no number of bytes; write an integer, or a text with a unit such as "200 MB" or "1.5 GiB"'
    )
