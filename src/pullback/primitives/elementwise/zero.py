"""Functions whose derivative is 0 wherever it exists, and functions that ask about structure: on tracers they give
NumPy's plain value.

``np.sign`` is not here: of complex numbers it has a derivative (see ``complexes``); nor is ``np.heaviside``, which at 0
is its second operand (see ``elementwise``), nor ``np.histogram_bin_edges``, which moves with its data.
"""

import numpy as np

from pullback.primitives.shared.versions import available
from pullback.rules.declaration import Composite, zero_derivative
from pullback.words.sniffs import UNNAMED

ROUNDING: tuple[Composite, ...] = (
    zero_derivative(np.ceil),
    zero_derivative(np.floor),
    zero_derivative(np.trunc),
    zero_derivative(np.rint),
    *(zero_derivative(fix) for fix in available("fix")),  # deprecated since NumPy 2.5
    zero_derivative(np.round),
    zero_derivative(np.around),
    zero_derivative(np.floor_divide),
    zero_derivative(np.nextafter),
    zero_derivative(np.spacing),
    *map(zero_derivative, UNNAMED),
)
QUESTIONS: tuple[Composite, ...] = (
    zero_derivative(np.signbit),
    zero_derivative(np.isfinite),
    zero_derivative(np.isinf),
    zero_derivative(np.isnan),
    zero_derivative(np.isneginf),
    zero_derivative(np.isposinf),
    zero_derivative(np.isreal),
    zero_derivative(np.iscomplex),
    zero_derivative(np.equal),
    zero_derivative(np.not_equal),
    zero_derivative(np.less),
    zero_derivative(np.less_equal),
    zero_derivative(np.greater),
    zero_derivative(np.greater_equal),
    zero_derivative(np.logical_and),
    zero_derivative(np.logical_or),
    zero_derivative(np.logical_not),
    zero_derivative(np.logical_xor),
    zero_derivative(np.all),
    zero_derivative(np.any),
    zero_derivative(np.allclose),
    zero_derivative(np.isclose),
    zero_derivative(np.array_equal),
    zero_derivative(np.array_equiv),
    zero_derivative(np.isin),
)
PLACES: tuple[Composite, ...] = (
    zero_derivative(np.argmax),
    zero_derivative(np.argmin),
    zero_derivative(np.nanargmax),
    zero_derivative(np.nanargmin),
    zero_derivative(np.argsort),
    zero_derivative(np.argpartition),
    zero_derivative(np.lexsort),
    zero_derivative(np.searchsorted),
    zero_derivative(np.digitize),
    zero_derivative(np.nonzero),
    zero_derivative(np.flatnonzero),
    zero_derivative(np.argwhere),
    zero_derivative(np.count_nonzero),
    zero_derivative(np.ravel_multi_index),
    zero_derivative(np.unravel_index),
)
STRUCTURE: tuple[Composite, ...] = (
    zero_derivative(np.shape),
    zero_derivative(np.ndim),
    zero_derivative(np.size),
    zero_derivative(np.result_type),
    zero_derivative(np.common_type),
    zero_derivative(np.min_scalar_type),
    zero_derivative(np.can_cast),
    zero_derivative(np.iscomplexobj),
    zero_derivative(np.isrealobj),
    zero_derivative(np.may_share_memory),
    zero_derivative(np.shares_memory),
    zero_derivative(np.array2string),
    zero_derivative(np.array_repr),
    zero_derivative(np.array_str),
    zero_derivative(np.ix_),
    zero_derivative(np.diag_indices_from),
    zero_derivative(np.tril_indices_from),
    zero_derivative(np.triu_indices_from),
    zero_derivative(np.einsum_path),
)

ZERO: tuple[Composite, ...] = (*ROUNDING, *QUESTIONS, *PLACES, *STRUCTURE)
