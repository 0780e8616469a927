"""Heat in a cube that is divided along all three axes: 2 x 2 x 2 parts of 16 x 16 x 16."""

import numpy as np
from cases import WORLD, case, run_cases

import pullback as pb
from pullback_mpi import Communicator

COMM = Communicator(WORLD, parts=(2, 2, 2))
SHAPE = (16, 16, 16)
WHOLE = 0.1 + 0.05 * np.random.default_rng(0).random(SHAPE)
PART = WHOLE[COMM.slices(SHAPE)]


def warmed(c, exchange):
    """The field after some steps of a stencil that reaches into the corners."""

    def step(k, u):
        p = exchange(u)
        around = p[:-2, 1:-1, 1:-1] + p[2:, 1:-1, 1:-1] + p[1:-1, :-2, 1:-1] + p[1:-1, 2:, 1:-1]
        around = around + p[1:-1, 1:-1, :-2] + p[1:-1, 1:-1, 2:] + 0.1 * (p[:-2, :-2, :-2] + p[2:, 2:, 2:])
        return u + c * (around - 6.2 * u)

    return np.sum(pb.fori_loop(0, 12, step, c * c) ** 2)


def exchanged(u):
    """The part with faces, edges and corners of all its neighbours."""
    for axis in range(3):
        u = COMM.halo(u, 1, axis, periodic=True)
    return u


def wrapped(u):
    """The whole with its own ends around it."""
    for axis in range(3):
        ends = [slice(None)] * axis
        u = np.concatenate([u[(*ends, slice(-1, None))], u, u[(*ends, slice(0, 1))]], axis)
    return u


@case
def the_serial_program_is_met_under_every_policy():
    value, gradient = pb.value_and_grad(lambda c: warmed(c, wrapped))(WHOLE)
    found = []
    for policy in (pb.SaveAll(), pb.Binomial(3), pb.Recompute(), pb.Budget("2 MB")):
        with COMM.agree(policy):
            found.append(pb.value_and_grad(lambda c: COMM.total(warmed(c, exchanged)))(PART))
    for other in found:
        assert np.array_equal(other[0], found[0][0]) and np.array_equal(other[1], found[0][1])
    assert abs(found[0][0] - value) <= 1e-14 * abs(value)
    assert np.max(np.abs(COMM.gather(found[0][1]) - gradient)) <= 4e-15 * np.max(np.abs(gradient))


@case
def the_adjoint_is_right():
    COMM.check_adjoint(exchanged, PART)
    COMM.check_adjoint(lambda c: COMM.total(warmed(c, exchanged)), PART, replicated_out=True)


run_cases()
