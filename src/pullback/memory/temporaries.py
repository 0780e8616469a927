"""How many temporary arrays each operation makes, forward and in its rule: a table for ``working_bytes``."""

from typing import Any, Final

from pullback.rules.forms import FORMS

ORDINARY: Final = (1.0, 2.0)
OF: Final = {
    "absolute": (1, 2.4),
    "arctan2": (1, 3.1),
    "determinant": (1, 5.1),
    "einsum_many": (2, 4.1),
    "einsum_pair": (1, 2.9),
    "getitem": (0.1, 2.5),
    "horner": (2, 3.1),
    "hypot": (1, 3.2),
    "interp_between": (1, 5),
    "interp_to_ends": (1, 5),
    "least_squares": (1, 4.1),
    "line_irfft": (1.1, 2.6),
    "linalg.cholesky": (1, 4.1),
    "logaddexp": (1, 2.2),
    "maximum": (1, 3.1),
    "middle": (2.2, 2),
    "minimum": (1, 3.1),
    "order_statistic": (2.2, 2),
    "partitioned": (3.2, 2),
    "product_cross": (2.4, 2.4),
    "product_dot": (1, 3.1),
    "product_inner": (1, 3.1),
    "product_matmul": (1, 3.1),
    "product_vdot": (1, 3.1),
    "pseudo_inverse": (3.1, 5.1),
    "qr": (1.2, 4.1),
    "reduce_std": (1.9, 2.9),
    "reduce_var": (1.1, 2.1),
    "sinc": (3.1, 6.2),
    "slope_along": (2, 2.1),
    "unwrapped": (5.1, 2),
}
"""How many there are, by name, in sizes of the larger of the operands and the result, as ``tracemalloc`` sees it:
forward, and back beyond the cotangents themselves."""


FEW: Final = {
    "add": 0, "cos": 0, "exp": 0, "log": 0, "multiply": 0, "negative": 0, "sin": 0, "square": 0, "subtract": 0,
    "tan": 0, "cosh": 1, "expm1": 1, "log1p": 1, "reciprocal": 1, "sinh": 1, "sqrt": 1, "tanh": 1,
}  # fmt: skip
"""How many there are on the way back, by name, where no operand is broadcast or of another type and no NaN is
masked."""


def on_the_way(record: Any, *, masks: bool = True) -> tuple[float, float]:
    """How many, forward and back, for the operation of a record; ``masks``: whether its rule may have to mask a NaN."""
    form = FORMS[record[0]]
    found = OF.get(form.name, ORDINARY)
    return found if masks or not form.exact else (found[0], FEW.get(form.name, found[1]))
