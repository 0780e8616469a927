"""What a traced sparse *matrix* gives where SciPy gives a numpy.matrix: ``todense()``, sums and means along an axis."""

from typing import Any

import numpy as np

import pullback as pb

matrix: Any = pb.numpy.matrix
"""The class, of which matrices that are traced are instances, too."""


def array_of(x: Any) -> Any:
    """The array of a matrix, and anything else as it is."""
    return x.A if isinstance(x, matrix) else x


def of_array(x: Any) -> Any:
    """The matrix of an array, a row where it has one axis; a number is itself."""
    if np.ndim(x) == 0:
        return x
    return pb.numpy.asmatrix(x) if isinstance(x, pb.Tracer) else np.atleast_2d(x).view(np.matrix)
