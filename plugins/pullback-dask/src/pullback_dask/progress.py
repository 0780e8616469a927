"""How far a sum is: a bar, or a function that is told."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import pullback as pb

Tell = Callable[[int, int], Any]
"""A function that is told how many items are done, of how many."""
Progress = bool | Tell


def checked(progress: Any) -> Progress:
    """``progress``, if it says something."""
    if isinstance(progress, bool) or callable(progress):
        return progress  # type: ignore[no-any-return]
    raise pb.PolicyError(f"progress= takes True, False or a function (n_done, n_items), got {progress!r}")


@contextmanager
def shown(progress: Progress, n_items: int) -> Generator[Tell, None, None]:
    """Within the block, the function to tell how many items are done."""
    if progress is False:
        yield lambda _done, _items: None
    elif progress is not True:
        progress(0, n_items)
        yield progress
    else:
        from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn  # noqa: PLC0415 - for who watches
        from rich.progress import Progress as Bar  # noqa: PLC0415 - as above

        with Bar("sum over items", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), transient=True) as bar:
            task = bar.add_task("", total=n_items)
            yield lambda done, _items: bar.update(task, completed=done)
