"""Loops with and without stages: the same bits, under every policy."""

import numpy as np

import pullback as pb
from pullback.staging.generated import shelf
from pullback.testing.comparing.bits import same_bits

POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2), pb.Binomial(5))
N = 12


def loop_over(body, n=N):
    """The sum of what a loop over ``body(k, u, x)`` makes of x."""

    def f(x):
        return np.sum(pb.fori_loop(0, n, lambda k, u: body(k, u, x), x))

    return f


@pb.primitive
def outside(u):
    """A primitive of the user's."""
    return u * 2


@outside.vjp("u")
def _outside_rule(ct):
    return ct * 2


def measured(f, x, policy, staging):
    """Value and gradient."""
    with pb.using(staging=staging):
        return pb.value_and_grad(f, policy=policy)(x)


def require_same(f, *inputs, policies=POLICIES):
    """Value and gradient of ``f`` have the same bits with stages and without, at every input; asked twice, since the
    second time the stages are there."""
    for x in inputs:
        for policy in policies:
            recorded = measured(f, x, policy, "off")
            for _ in range(2):
                assert same_bits(measured(f, x, policy, "numpy"), recorded), policy


def shelves():
    """What is known of all bodies."""
    return list(shelf._SHELVES.values())


def variants():
    """What is known of steps, by body and by what enters them."""
    return [found for shelf_of_body in shelves() for found in shelf_of_body.variants]


def stages():
    """Their stages."""
    return [stage for found in variants() for stage in found.stages]


def reasons():
    """Why steps were not staged."""
    return [why for found in variants() for why in found.why]


def the_stage():
    """The only stage there is."""
    (stage,) = stages()
    return stage
