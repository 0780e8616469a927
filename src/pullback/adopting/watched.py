"""Who is told what becomes of the arrays of adopted code: nobody, but for ``pullback port``."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

NOTEBOOK: Final[ContextVar[Any]] = ContextVar("pullback_notebook", default=None)
"""Who is told; else None."""


@contextmanager
def watching(notebook: Any) -> Iterator[None]:
    """Within the block ``notebook`` is told of each array that becomes a handle, and of calls of Python's functions of
    numbers."""
    token = NOTEBOOK.set(notebook)
    try:
        yield
    finally:
        NOTEBOOK.reset(token)
