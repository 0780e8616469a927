"""How far work of several parts is: a bar that names the part that begins."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.words.errors import PolicyError
from pullback.words.optional_libraries import optional_library

Tell = Callable[[str, int, int], None]
"""A function that is called with what begins now, how many parts are done, and how many there are."""


def silent(what: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


@contextmanager
def telling(progress: Tell | bool | None) -> Iterator[Tell]:
    """Within the block, what is to be called as each part begins: for True it draws a bar on stderr, in a terminal or a
    notebook; a function is that function, and None and False are silent.

    Raises :class:`PolicyError` for anything else, ``PullbackError`` where rich is missing.
    """
    if progress is not None and not isinstance(progress, bool | np.bool) and not callable(progress):
        raise PolicyError(f"progress= takes True, False or a function (what, done, total), got {progress!r}")
    if progress is None or isinstance(progress, bool | np.bool):
        if not progress:
            yield silent
            return
        console = optional_library("rich.console", "progress is drawn by rich", "cli").Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            yield silent
            return
        with bar_on(console) as tell:
            yield tell
        return
    yield progress


@contextmanager
def bar_on(console: Any) -> Iterator[Tell]:
    """A bar on a console of rich. It is drawn when a part begins, not by a thread of its own, which would disturb the
    timings; and it is gone at the end."""
    rich = optional_library("rich.progress", "progress is drawn by rich", "cli")
    columns = rich.BarColumn(bar_width=24), rich.MofNCompleteColumn(), rich.TextColumn("{task.description}")
    with rich.Progress(*columns, console=console, auto_refresh=False, transient=True) as bar:
        task = bar.add_task("", total=1)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total, refresh=True)

        yield tell
