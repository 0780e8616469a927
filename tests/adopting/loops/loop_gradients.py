"""Gradients of loops as a whole, one by one, and under a policy."""

import numpy as np

import pullback as pb


def bits(values):
    return [np.asarray(value).tobytes() for value in values]


def both(f, args, **options):
    """Value and gradients, by the arguments that are no integers."""
    where = tuple(k for k, arg in enumerate(args) if not isinstance(arg, int))
    value, gradients = pb.value_and_grad(f, where, **options)(*args)
    return [value, *gradients]


def require_same(f, *args):
    """The same bits as one by one, and under a policy; they are returned."""
    whole = both(f, args)
    with pb.using(staging="off"):
        one_by_one = both(f, args)
    assert type(whole[0]) is type(one_by_one[0])
    assert bits(whole) == bits(one_by_one) == bits(both(f, args, policy=pb.Binomial(3)))
    return whole
