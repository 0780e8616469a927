"""``scipy.spatial`` with derivatives of its distances; a name without one is SciPy's own."""

from scipy import spatial

from pullback_scipy.mirroring import fall_through
from pullback_scipy.spatial import distance

__getattr__, __dir__ = fall_through(spatial, globals())
__all__ = ["distance"]
