"""Subscripts of einsum, taken apart: which letter stands for which axis, and the einsum that pulls a cotangent back.

Nothing here sees an array. NumPy's einsum has accepted the subscripts before any of this is asked, so they are known to
be right.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from operator import index as integer
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from attrs import frozen

LETTERS = ascii_uppercase + ascii_lowercase
"""What label k of the sublist form is called in a string, as NumPy has it: the order decides implicit outputs."""

Shape = tuple[int, ...]


@frozen
class Terms:
    """Subscripts without ellipsis and with an output: one string of letters for each operand."""

    inputs: tuple[str, ...]
    output: str


@frozen
class Plan:
    """How the cotangent of one operand is made: ``einsum(subscripts, ct, *others)``, then the steps that are not
    None, in this order."""

    subscripts: str
    work: int
    """How many products a plain loop over all indices forms."""
    reshape: Shape | None
    """Axes of length 1 put back where the operand was broadcast, or where nothing the einsum reads has this index."""
    spread: Shape | None
    """The shape to broadcast to: an index that the operand alone has was summed, so its cotangent is constant along
    it."""
    term: str | None
    """The operand's subscripts where a letter repeats in them: what was made so far goes on that diagonal, zeros
    elsewhere."""
    letters: str
    shape: Shape


def from_sublists(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """Subscripts and operands of ``einsum(op0, [0, 1], op1, [1, 2], [0, 2])``."""
    pairs, output = args[: len(args) // 2 * 2], args[len(args) // 2 * 2 :]
    text = ",".join(map(_word, pairs[1::2]))
    return (f"{text}->{_word(output[0])}" if output else text), pairs[::2]


def _word(labels: Iterable[Any]) -> str:
    return "".join("..." if label is Ellipsis else _letter(integer(label)) for label in labels)


def _letter(label: int) -> str:
    if not 0 <= label < len(LETTERS):
        message = f"einsum: label {label} of a sublist is outside [0, {len(LETTERS)}); number the axes from 0"
        raise ValueError(message)
    return LETTERS[label]


@lru_cache(maxsize=4096)
def parse(subscripts: str, ndims: Shape) -> Terms:
    """The terms of ``subscripts`` for operands with so many axes: every ellipsis spelled out, an implicit output
    written down."""
    text = subscripts.replace(" ", "")
    left, arrow, output = text.partition("->")
    words = left.split(",")
    hidden = [
        ndim - len(word.replace("...", "")) if "..." in word else 0 for word, ndim in zip(words, ndims, strict=True)
    ]
    spare = "".join(letter for letter in LETTERS if letter not in text)[: max(hidden)]
    if len(spare) < max(hidden):
        message = (
            f"einsum: {subscripts!r} with {ndims} axes needs more than {len(LETTERS)} letters; reshape axes "
            "together first"
        )
        raise ValueError(message)
    inputs = tuple(word.replace("...", spare[len(spare) - n :]) for word, n in zip(words, hidden, strict=True))
    if not arrow:
        named = left.replace(",", "").replace(".", "")
        output = "..." + "".join(sorted(letter for letter in set(named) if named.count(letter) == 1))
    return Terms(inputs, output.replace("...", spare))


def _extents(words: tuple[str, ...], shapes: tuple[Shape, ...]) -> dict[str, int]:
    """The length of each index: that of any axis that bears its letter and is not 1, which would be broadcast."""
    full: dict[str, int] = {}
    for word, shape in zip(words, shapes, strict=True):
        for letter, n in zip(word, shape, strict=True):
            if n != 1 or letter not in full:
                full[letter] = n
    return full


@lru_cache(maxsize=4096)
def plan(subscripts: str, shapes: tuple[Shape, ...], index: int) -> Plan:
    """How the cotangent of operand ``index`` comes from that of the output and the other operands.

    einsum is a sum of products over all indices; the derivative by one factor puts the cotangent in its place, so the
    operand's subscripts and the output's change places. Three things have to be added to that rule (:class:`Plan`):
    axes of length 1 that were broadcast, indices that this operand alone has, and letters that repeat in its own term.
    """
    terms = parse(subscripts, tuple(map(len, shapes)))
    own = dict(zip(terms.inputs[index], shapes[index], strict=True))
    others = [(word, shape) for k, (word, shape) in enumerate(zip(terms.inputs, shapes, strict=True)) if k != index]
    full = _extents(terms.inputs, shapes)
    seen = {letter: n for word, shape in others for letter, n in zip(word, shape, strict=True) if n == full[letter]}
    seen |= {letter: full[letter] for letter in terms.output}
    kept = "".join(letter for letter, n in own.items() if letter in seen and n == full[letter])
    with_ones = tuple(n if letter in kept else 1 for letter, n in own.items())
    term = terms.inputs[index]
    read = [terms.output, *(word for word, _ in others)]
    return Plan(
        subscripts=f"{','.join(read)}->{kept}",
        work=prod(full[letter] for letter in set("".join(read))),
        reshape=with_ones if len(kept) < len(own) else None,
        spread=tuple(own.values()) if with_ones != tuple(own.values()) else None,
        term=term if len(own) < len(term) else None,
        letters="".join(own),
        shape=shapes[index],
    )
