"""Functions of which something is known: staged ones, and gradients that the library has made; and how many stages are
made for one of them."""

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from attrs import define, field

T = TypeVar("T")
R = TypeVar("R")
MOST_MADE = 8
"""How many are made for one function: one that depends on what changes is better off without."""
MOST_KEPT = 4
"""How many are kept, for different calls."""
CARRIED: ContextVar[Any] = ContextVar("pullback_carried", default=None)
"""How gradients are computed while a program of derivatives is made a stage; None at any other time."""


def staged_of(f: Any) -> Any:
    """What is known of a staged function; None for any other, one among them that was made to look like it, as by
    ``functools.wraps``."""
    known = getattr(f, "__pullback_staged__", None)
    return None if known is None or known.itself is None or known.itself() is not f else known


def gradient_of(f: Any) -> Any:
    """What is known of a gradient that the library has made; None for any other function, and where more is asked than
    which arguments."""
    hot = getattr(f, "__pullback_hot__", None)
    return None if hot is None or hot.itself is None or hot.itself() is not f or not hot.usual else hot


def calls_staged(f: Any) -> str:
    """What a function names among what it reads from outside: ``staged`` where a staged function is among it,
    ``gradients`` where only gradients are; else empty."""
    code, names = getattr(f, "__code__", None), getattr(f, "__globals__", None)
    if code is None or names is None:
        return ""
    found = [names[name] for name in code.co_names if name in names]
    for cell in f.__closure__ or ():
        with suppress(ValueError):  # of a name that has no value yet
            found.append(cell.cell_contents)
    if any(staged_of(one) is not None for one in found):
        return "staged"
    return "gradients" if any(gradient_of(one) is not None for one in found) else ""


def function_within(f: Any) -> Any:
    """The function that a staged one, or a gradient, is made of; None for any other."""
    known = staged_of(f) or gradient_of(f)
    return None if known is None else known.f


@define(eq=False)
class Kept(Generic[T]):
    """What has been made for the calls of one function, the newest first. A call takes one out and puts it back."""

    kept: list[T] = field(factory=list, init=False)
    n_before: int = field(default=0, init=False)
    """Calls in the ordinary way since one was made."""
    n_made: int = field(default=0, init=False)
    busy: bool = field(default=False, init=False)
    """Whether one is being made or compared."""
    why: str = field(default="", init=False)
    """Why there is none."""

    @property
    def over(self) -> bool:
        """Whether none will come any more."""
        return self.n_made > MOST_MADE and not self.kept

    def wants(self, before: int) -> bool:
        """Whether one is to be made in this call, in which none was found: after so many others."""
        if self.busy or self.n_made > MOST_MADE:
            return False
        self.n_before += 1
        if self.n_before <= before:
            return False
        self.n_before = 0
        self.n_made += 1
        return True

    def take_out(self, one: T) -> bool:
        """Take one out; False where another thread has taken it."""
        try:
            self.kept.remove(one)
        except ValueError:
            return False
        return True

    def put_back(self, one: T) -> None:
        """A call is over."""
        self.kept.insert(0, one)
        del self.kept[MOST_KEPT:]

    def makes(self, make: Callable[[], T]) -> None:
        """Make one, which no call of its own looks for meanwhile; what goes wrong is why none will come."""
        try:
            made = self.ordinarily(make)
        except Exception as error:  # noqa: BLE001 - whatever a function does with what has no value
            self.refused(str(error) or type(error).__name__)
        else:
            self.put_back(made)

    def ordinarily(self, way: Callable[[], R]) -> R:
        """What the ordinary way gives: calls within it neither take one nor make one."""
        self.busy = True
        try:
            return way()
        finally:
            self.busy = False

    def refused(self, why: str) -> None:
        """There is none, and none will come."""
        self.why, self.n_made = why, MOST_MADE + 1
        self.kept.clear()
