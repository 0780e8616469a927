"""A fault that a checker found, and the error that lists all of them."""

from collections.abc import Iterable

from attrs import frozen

from pullback.words.errors import CheckError


@frozen
class Fault:
    """``kind`` names the fault in a word or two; ``text`` says where, what was expected, what was given, and what to
    do."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def raise_faults(subject: str, faults: Iterable[Fault]) -> None:
    """Nothing when there is no fault; else :class:`CheckError` with every one of them, numbered, each once."""
    found = list(dict.fromkeys(faults))
    if not found:
        return
    lines = [f"  {number}. {fault}" for number, fault in enumerate(found, start=1)]
    raise CheckError("\n".join([f"{subject}: {len(found)} fault{'s' if len(found) > 1 else ''}", *lines]))
