"""Which cases of a long table are run by default, and which by ``sh .ci/test -m slow`` alone."""

GOLDEN = (5**0.5 - 1) / 2


def in_share(number: int, n: int, turn: int = 0) -> bool:
    """Whether the ``number``-th case of a group is in the share of one in ``n``.

    By multiples of the golden ratio, which are spread evenly and in step with no table, whatever its period. The shares
    of the n turns have nothing but the first case in common, and hold all cases together.
    """
    return number == 0 or int((number * GOLDEN) % 1 * n) == turn % n
