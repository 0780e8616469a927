"""One term of a sum: the value and the gradient of an item, computed wherever it is sent under the settings of the
caller; and the sum of two of them."""

import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

from pullback.memory.in_force import InForce, settings_in_force
from pullback.scaling.transport import sendable_error
from pullback.transforms.derivatives.reverse import value_and_grad
from pullback.words.errors import WorkerError, say_where
from pullback.words.structures import map_leaves

Part = tuple[Any, Any]
"""A value and a gradient, which is a structure like ``x``."""


@frozen
class Failed:
    """What stands for a part where the function raised. An error that is handed over as a value needs no promise of
    how an executor treats those that are raised."""

    error: Exception
    told: str = ""
    """The traceback, where it cannot travel with the error."""

    def raised(self) -> Exception:
        """The error, with the traceback of where it was raised in a note."""
        if self.told:
            self.error.add_note(f"\nraised in another process:\n{self.told.rstrip()}")
        return self.error


@frozen(eq=False)
class Term:
    """``term(x, item, number)`` is ``(value, gradient)`` of ``f(x, item)``, wherever it is called.

    ``settings`` are what ``using`` says where the term is made; a thread or a process that computes it knows nothing of
    them. With ``load`` the item that ``f`` gets is ``load(item)``. A term that was pickled knows that it was.
    """

    f: Callable[[Any, Any], Any]
    settings: tuple[Any, ...]
    load: Callable[[Any], Any] | None = None
    travelled: bool = False
    both: Callable[..., Any] = field(init=False, repr=False)

    @both.default
    def _both(self) -> Callable[..., Any]:
        return value_and_grad(self.f)

    @classmethod
    def here(cls, f: Callable[[Any, Any], Any], policy: Any = None, load: Callable[[Any], Any] | None = None) -> "Term":
        """A term with ``policy``, or for None the one in force, and all else that is in force here."""
        return cls(f, settings_in_force(policy), load)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.f, self.settings, self.load, True)

    def __call__(self, x: Any, item: Any, number: int) -> Part:
        """The part of an item; an error says which item it was."""
        try:
            with InForce(*self.settings):
                value, gradient = self.both(x, item if self.load is None else self.load(item))
        except SystemExit as error:  # it would end the worker, and be tried on all others
            raise WorkerError(
                f"what computes item {number} of the sum ends its process, by SystemExit({error.code!r}): raise "
                "another error there"
            ) from error
        except Exception as error:
            say_where(error, f"item {number} of the sum")
            raise
        return value, gradient

    def part_or_error(self, x: Any, item: Any, number: int) -> Part | Failed:
        """The part, or the error as a value."""
        try:
            return self(x, item, number)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the sum was asked for
            if not self.travelled:
                return Failed(error)
            return Failed(sendable_error(error), "".join(traceback.format_exception(error)))


def plus(left: Part, right: Part, *, in_place: bool = False) -> Part:
    """The sum of two parts; ``in_place`` writes the gradients into those of ``left``, where they can be written.

    A leaf that has no gradient, as an integer, is None in both.
    """
    (value, gradient), (other, more) = left, right
    return value + other, map_leaves(_added_in_place if in_place else _added, gradient, more)


def _added(a: Any, b: Any) -> Any:
    return np.add(a, b, out=np.empty_like(a)) if isinstance(a, np.ndarray) else a + b


def _added_in_place(a: Any, b: Any) -> Any:
    return np.add(a, b, out=a) if isinstance(a, np.ndarray) and a.flags.writeable else _added(a, b)
