"""Functions whose derivative is 0 wherever it exists, and functions that ask about structure: on tracers they give
NumPy's plain value.

Three are not here. ``np.sign`` of a complex number has a derivative (see ``complex_parts``), ``np.heaviside`` is its
second operand at 0 (see ``ufunc_rules``), and ``np.histogram_bin_edges`` moves with its data (see ``histograms``).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.primitives.shared.numpy_names import available
from pullback.rules.declaration import Composite, zero_derivative
from pullback.words.undocumented import UNNAMED


def _each(*functions: Callable[..., Any]) -> tuple[Composite, ...]:
    return tuple(map(zero_derivative, functions))


ROUNDING = _each(
    *(np.ceil, np.floor, np.trunc, np.rint, np.round, np.around, np.floor_divide, np.nextafter, np.spacing, *UNNAMED),
    *available("fix"),  # deprecated since NumPy 2.5
)
QUESTIONS = _each(
    *(np.signbit, np.isfinite, np.isinf, np.isnan, np.isneginf, np.isposinf, np.isreal, np.iscomplex),
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *(np.logical_and, np.logical_or, np.logical_not, np.logical_xor, np.all, np.any),
    *(np.allclose, np.isclose, np.array_equal, np.array_equiv, np.isin),
)
PLACES = _each(
    *(np.argmax, np.argmin, np.nanargmax, np.nanargmin, np.argsort, np.argpartition, np.lexsort),
    *(np.searchsorted, np.digitize, np.nonzero, np.flatnonzero, np.argwhere, np.count_nonzero),
    *(np.ravel_multi_index, np.unravel_index),
)
STRUCTURE = _each(
    *(np.shape, np.ndim, np.size, np.result_type, np.common_type, np.min_scalar_type, np.can_cast),
    *(np.iscomplexobj, np.isrealobj, np.may_share_memory, np.shares_memory),
    *(np.array2string, np.array_repr, np.array_str),
    *(np.ix_, np.diag_indices_from, np.tril_indices_from, np.triu_indices_from, np.einsum_path),
)

ZERO: tuple[Composite, ...] = (*ROUNDING, *QUESTIONS, *PLACES, *STRUCTURE)
