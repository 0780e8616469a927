"""A generated function with its text, found again by the file that its lines stand in."""

from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from attrs import define, field

from pullback.backends.plans import Kernel
from pullback.recording.copies import faithful_copy
from pullback.staging.placing import Plan


@define(eq=False)
class Generated:
    """A function with its text. ``sites`` are the user's call sites by the line of the text, each with NumPy's name for
    what is computed there."""

    name: str
    text: str
    function: Callable[..., Any] = field(repr=False)
    plan: Plan = field(repr=False)
    sites: dict[int, tuple[int, str]] = field(repr=False)
    kernels: tuple[Kernel, ...] = field(default=(), repr=False)
    plain: "Generated | None" = field(default=None, repr=False)
    """The same by NumPy alone, in the same buffers; None where there are no kernels."""
    reads: bool = False
    """Whether values are read while it runs: then it is a generator, which yields each, and at last what it gives."""

    def whole(self, *arguments: Any) -> tuple[list[Any], Any]:
        """What is read on the way, copied, and what it gives."""
        if not self.reads:
            return [], self.function(*arguments)
        *read, found = [faithful_copy(x) if type(x) is np.ndarray else x for x in self.function(*arguments)]
        return read, found

    @property
    def works_in_place(self) -> bool:
        """Whether it computes into arrays that it has."""
        return bool(self.plan.buffers or self.plan.fresh)


_FILES: WeakValueDictionary[str, Generated] = WeakValueDictionary()


def in_file(generated: Generated) -> Generated:
    """The function, which :func:`of_file` now finds."""
    _FILES[generated.function.__code__.co_filename] = generated
    return generated


def of_file(filename: str) -> Generated | None:
    """The function whose text is in a file of that name."""
    return _FILES.get(filename)
