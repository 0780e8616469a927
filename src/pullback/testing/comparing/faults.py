"""One fault, which a checker reports, and the error that lists all of them."""

from collections.abc import Iterable

from attrs import frozen

from pullback.words.errors import CheckError


@frozen
class Fault:
    """``kind`` names the fault in a word or two; ``text`` says where it is, what was expected, what came, and what to
    do."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def raise_faults(subject: str, faults: Iterable[Fault]) -> None:
    """Nothing when there is no fault; else :class:`CheckError` with every one of them, numbered, each once."""
    lines = [f"  {number}. {fault}" for number, fault in enumerate(dict.fromkeys(faults), start=1)]
    if lines:
        raise CheckError("\n".join([f"{subject}: {len(lines)} fault{'s' if len(lines) > 1 else ''}", *lines]))
