"""What ranks agree on that run one program together: what a schedule follows from, and whether all went well.

A rank is a process with others beside it. How ranks talk is nobody's business here: an :class:`Agreement` is told.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pullback.words.errors import PolicyError

SETTLED = "_pullback_settled"
"""The attribute of an error that others have been told of, or have told of."""


class Agreement(Protocol):
    """What ``pullback.using(agreement=...)`` takes: two calls that every rank makes, and that wait for all others.

    Example
    -------
    For a rank that is alone:

    >>> import pullback as pb
    >>> class Alone:
    ...     def largest(self, values):
    ...         return values
    ...
    ...     def settled(self, error):
    ...         pass
    >>> with pb.using(agreement=Alone()):
    ...     float(pb.grad(lambda x: x**2)(3.0))
    6.0
    """

    def largest(self, values: tuple[int, ...]) -> tuple[int, ...]:
        """The largest of each of these over all ranks; every rank gives as many. They are between -2**62 and 2**62."""

    def settled(self, error: BaseException | None) -> None:
        """An agreed point. Where ``error`` is None all has gone well here: return if it has on every rank, else raise.
        Where this rank has failed with ``error``: let the others know, those that wait in a call of a collective
        primitive too, and return; the error is then raised here. No other call follows until that has happened."""


GIVE_THE_SAME = "give every rank the same loop, number of steps and policy"


def agreed(agreement: Agreement, told: str, values: Sequence[int] = (), remedy: str = GIVE_THE_SAME) -> tuple[int, ...]:
    """The largest of each value over all ranks. Raises :class:`PolicyError`, on each of them, where ``told`` is not the
    same text on all: it says what runs, and under which policy."""
    from hashlib import blake2b  # noqa: PLC0415 - it loads OpenSSL, and few programs have ranks

    mark = int.from_bytes(blake2b(told.encode(), digest_size=7).digest())
    first, second, *found = agreement.largest((mark, -mark, *map(int, values)))
    if first != -second:
        raise PolicyError(
            f"ranks do not run the same steps under the same policy; this one runs {told}. What is run again is run "
            f"again on all of them at once: {remedy}"
        )
    return tuple(found)


def least(agreement: Agreement, told: str, value: int) -> int:
    """The smallest of a value over all ranks."""
    return -agreed(agreement, told, (-value,))[0]


class AgreedPoint:
    """A block at whose end ranks learn whether all went well: after an error in any case, once for each error, and
    otherwise if ``communicates()``."""

    __slots__ = ("_agreement", "_communicates")

    def __init__(self, agreement: Agreement, communicates: Callable[[], Any]) -> None:
        self._agreement, self._communicates = agreement, communicates

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, where: object) -> None:
        agreement = self._agreement
        if error is None:
            if self._communicates():
                _ask(agreement)
        elif isinstance(error, Exception | KeyboardInterrupt | SystemExit) and not _is_known(error):
            setattr(error, SETTLED, True)
            agreement.settled(error)


def _ask(agreement: Agreement) -> None:
    try:
        agreement.settled(None)
    except BaseException as error:
        setattr(error, SETTLED, True)  # all know of it
        raise


def _is_known(error: BaseException) -> bool:
    """Whether others know of an error, or of the one that it was made of."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        if getattr(one, SETTLED, False):
            return True
        seen.add(id(one))
        one = one.__cause__ or one.__context__
    return False
