"""autograd.misc: flatten, optimizers, fixed_points, tracers."""

from pullback_autograd.misc.flatten import flatten
from pullback_autograd.misc.tracers import const_graph

__all__ = ["const_graph", "flatten"]
