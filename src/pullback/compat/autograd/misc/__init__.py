"""autograd.misc: flatten, optimizers, fixed_points."""

from pullback.compat.autograd.misc.flatten import flatten

__all__ = ["flatten"]
