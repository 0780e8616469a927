"""What goes wrong among ranks: another one fails, they do not do the same, or an array does not fit its part."""

import pullback as pb


class RankError(pb.PullbackError, RuntimeError):
    """Another rank has failed, so this one cannot go on.

    Attributes
    ----------
    message
        The text, which has the error of that rank.
    rank
        Which.
    """

    def __init__(self, message: str, rank: int) -> None:
        super().__init__(message)
        self.rank = rank

    def __reduce__(self) -> tuple[type, tuple[str, int], dict[str, object]]:
        return type(self), (self.args[0], self.rank), self.__dict__


class MismatchError(pb.PullbackError, RuntimeError):
    """The ranks do not make the same communications, or hold different values where they must hold the same."""


class PartError(pb.PullbackError, ValueError):
    """An array or an argument does not fit how the domain is divided, such as a halo that is wider than a part."""


for _error in (RankError, MismatchError, PartError):
    _error.__module__ = "pullback_mpi"  # where users import it from
