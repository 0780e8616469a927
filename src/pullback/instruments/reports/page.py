"""The page itself: one file with style, program, charting library and data, which asks the network for nothing."""

import json
import re
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from pullback.words.errors import InputFileError

ROOM: Final = files("pullback.instruments.reports")


def page_of(contents: dict[str, Any], version: str) -> str:
    """The page as text, of what ``Contents.to_dict`` gives.

    The charts are uPlot's (https://github.com/leeoniya/uPlot, MIT licence): ``uplot/`` holds the files of the npm
    package uplot 1.6.32 as they are, and the page has them in it.
    """
    data = json.dumps(contents, separators=(",", ":"))
    parts = {
        "TITLE": escape(f"{contents['name']}: memory and time"),
        "VERSION": escape(version),
        "CHART_STYLE": _read("uplot/uPlot.min.css"),
        "STYLE": _read("page.css"),
        "CHART_PROGRAM": _read("uplot/uPlot.iife.min.js"),
        "PROGRAM": _read("page.js"),
        # Within a script nothing is escaped, and "</script" or "<!--" in a text of the user's would end it.
        "DATA": data.replace("<", "\\u003c"),
    }
    # In one pass: a part may hold what looks like the name of another.
    return re.sub("@@([A-Z_]+)@@", lambda found: parts[found[1]], _read("page.html"))


def require_writable(path: Path) -> None:
    """Raise :class:`InputFileError` where no file can be written, before there is anything to be lost. A file that is
    there stays as it is."""
    existed = path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if not existed:
            path.unlink()
    except OSError as error:
        raise InputFileError(
            f"{path} cannot be written: {error.strerror}; name a file in a folder that exists"
        ) from error


def _read(name: str) -> str:
    return ROOM.joinpath(name).read_text("utf-8")
