"""One fault, which a checker reports, and the error that lists all of them."""

from collections.abc import Iterable

from attrs import frozen

from pullback.words.errors import CheckError


@frozen
class Fault:
    """What a checker found, one of the lines of its :class:`CheckError`.

    Attributes
    ----------
    kind
        The fault in a word or two.
    text
        Where it is, what was expected, what came, and what to do.

    Example
    -------
    >>> print(Fault("shape", "the rule of x gave (3,), expected (2,)"))
    shape: the rule of x gave (3,), expected (2,)
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def raise_faults(subject: str, faults: Iterable[Fault]) -> None:
    """Nothing when there is no fault; else :class:`CheckError` with every one of them, numbered, each once."""
    lines = [f"  {number}. {fault}" for number, fault in enumerate(dict.fromkeys(faults), start=1)]
    if lines:
        raise CheckError("\n".join([f"{subject}: {len(lines)} fault{'s' if len(lines) > 1 else ''}", *lines]))
