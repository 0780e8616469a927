"""autograd.misc: flatten, optimizers, fixed_points."""

from pullback_autograd.misc.flatten import flatten

__all__ = ["flatten"]
