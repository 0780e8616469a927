"""Loops cut into segments of segments, as nested ``checkpoint`` of torch and of jax run them."""

from collections.abc import Iterator
from functools import partial

Nest = tuple[int, ...]
"""How many parts each level has, the outermost first; the parts of the last level are steps, whose tapes are held."""


def bytes_of(nest: Nest, state_bytes: int, tape_bytes: int) -> int:
    """What is held at the peak: the states at which the parts of every level but the last begin, and the tapes of the
    last."""
    return sum(nest[:-1]) * state_bytes + nest[-1] * tape_bytes


def nest_for(n: int, max_bytes: float, state_bytes: int, tape_bytes: int) -> Nest:
    """The nest of ``n`` steps with the fewest levels that holds at most ``max_bytes``; that which holds least where
    none does. A level runs every step once more."""
    held = partial(bytes_of, state_bytes=state_bytes, tape_bytes=tape_bytes)
    least: list[Nest] = []
    while found := list(_factored(n, len(least) + 1)):
        least.append(min(found, key=held))
        if held(least[-1]) <= max_bytes:
            return least[-1]
    return min(least, key=held)


def _factored(n: int, levels: int, least: int = 2) -> Iterator[Nest]:
    """``n`` as products of so many factors. Those before the last are above 1 and ascend: only their sum counts."""
    if levels == 1:
        yield (n,)
        return
    for k in range(least, n + 1):
        if n % k == 0:
            yield from ((k, *rest) for rest in _factored(n // k, levels - 1, k))
