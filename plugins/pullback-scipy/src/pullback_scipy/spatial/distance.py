"""``scipy.spatial.distance`` with derivatives; a name without one is SciPy's own."""

from scipy.spatial import distance

from pullback_scipy.mirroring import fall_through
from pullback_scipy.spatial.pairs import (
    braycurtis,
    canberra,
    cdist,
    chebyshev,
    cityblock,
    correlation,
    cosine,
    euclidean,
    minkowski,
    pdist,
    sqeuclidean,
    squareform,
)

__getattr__, __dir__ = fall_through(distance, globals())
__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine", "euclidean", "minkowski",
    "pdist", "sqeuclidean", "squareform",
]  # fmt: skip
