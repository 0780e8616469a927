"""Programs that end otherwise than they should on one rank: ``endings.py HOW``."""

import sys
import time

import numpy as np
from mpi4py import MPI

import pullback as pb
from pullback_mpi import Communicator

WORLD = MPI.COMM_WORLD
HOW = sys.argv[1]
COMM = Communicator(WORLD)
X = np.ones((3, 2))

if HOW == "well":
    second = Communicator(WORLD, parts=(1, WORLD.size))
    with COMM.agree(pb.Binomial(2)):
        pb.grad(lambda u: COMM.total(np.sum(pb.fori_loop(0, 9, lambda k, u: COMM.halo(u, 1, 0)[1:-1] * u, u))))(X)
    second.halo(X, 1, 1, periodic=True)
elif WORLD.rank == 1 and HOW == "error":
    raise ZeroDivisionError("on rank 1")
elif WORLD.rank == 1 and HOW == "exit":
    sys.exit(0)
elif HOW == "busy elsewhere":
    if WORLD.rank == 1:
        raise ZeroDivisionError("on rank 1")
    WORLD.recv(source=1)  # what nobody sends
elif HOW == "replay":
    runs = [0]

    def step(k, u):
        runs[0] += WORLD.rank
        return COMM.halo(u, 1, 0)[1:-1] + float(runs[0])

    with COMM.agree(pb.Binomial(2)):
        pb.grad(lambda u: COMM.total(np.sum(pb.fori_loop(0, 9, step, u) ** 2)))(X)
else:
    COMM.halo(X, 1, 0)
    time.sleep(600)
