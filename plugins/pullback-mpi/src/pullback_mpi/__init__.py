"""Gradients of NumPy programs that are divided over MPI ranks: :class:`Communicator`.

Importing it starts no MPI; making a :class:`Communicator` does.
"""

from pullback_mpi.communicator import Communicator
from pullback_mpi.errors import MismatchError, PartError, RankError
from pullback_mpi.primitives import PRIMITIVES

__all__ = ["PRIMITIVES", "Communicator", "MismatchError", "PartError", "RankError"]
