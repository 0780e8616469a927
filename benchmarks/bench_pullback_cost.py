"""What a pullback costs: for every differentiable NumPy function the forward alone, in plain NumPy, beside the pull
alone, at 1e5 elements.

    python benchmarks/bench_pullback_cost.py [--quick] [--json PATH]

Figure to hold: a pull takes at most 3 times its forward, unless there is a reason; ``REASONS`` gives it. The pull is
that of ``vjp`` with respect to all operands, called again and again; nothing is subtracted, neither the copy of the
seed nor that of the gradient, which is the caller's own. The allocator's thresholds are fixed, lest it hand every large
array back to the system and the page faults of the next one be measured instead of the arithmetic.
"""

import os
import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from harness import arguments, compare, one_thread, print_table, write_json
from references.numpy_calls import CALLS

import pullback as pb

LIMIT = 3.0
THRESHOLDS = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}

GROUPS: Mapping[str, str] = {
    "the forward is a view or hands its operand back and touches no element; the gradient is a whole array": """
        asanyarray asarray ascontiguousarray asfortranarray require reshape ravel squeeze real imag real_if_close
        atleast_1d atleast_2d
        atleast_3d fliplr flipud flip rot90 transpose swapaxes moveaxis rollaxis matrix_transpose
        linalg.matrix_transpose expand_dims diag
        diagonal linalg.diagonal trace linalg.trace broadcast_to broadcast_arrays split array_split hsplit vsplit
        dsplit unstack
        lib.stride_tricks.sliding_window_view empty_like x[1:]""",
    "the forward is one pass over the memory; a pull has some besides its rule: it copies the cotangent, looks "
    "whether the operands were changed since, and gives an array of its own for each operand": """
        add subtract multiply square power_(2) negative positive conjugate copy array astype frexp full full_like
        zeros_like ones_like sum
        sum_(axis_0) sum_(axis_1) mean mean_(axis_0) mean_(axis_1) diff ediff1d polyadd polysub concatenate stack
        vstack hstack dstack
        column_stack append block roll fft.fftshift fft.ifftshift tile repeat resize insert delete meshgrid
        diag_(of_a_line) diagflat
        pad pad_(reflect) pad_(mean) outer linalg.outer""",
    "the forward reads and writes next to nothing; the gradient is a whole array for each operand": """
        max min amax amin ptp nanmax nanmin max_(axis_0) max_(axis_1) min_(axis_0) min_(axis_1) ptp_(axis_0)
        ptp_(axis_1)
        histogram_bin_edges dot_(vectors) vdot vecdot linalg.vecdot matvec vecmat tensordot linalg.tensordot
        linalg.norm linalg.matrix_norm
        linalg.norm_(vector) linalg.vector_norm add.reduceat""",
    "one instruction without a branch forward; the rule has comparisons and a selection of its own, for ties, bounds, "
    "zeros and NaN": """
        maximum minimum fmax fmin clip absolute fabs copysign divide power power_(0.5)""",
    "the rule scales its operands lest a square overflow or vanish": "arctan2 angle arcsinh",
    "the products of the others, from both ends, since nothing can be divided by 0": "prod_(with_a_0) "
    "cumprod_(with_a_0)",
    "the forward once more, for what was lost on the way; and a whole array": "prod_(axis_0)",
    "the forward is one LU or Cholesky factorisation; the gradient takes an inverse, or triangular systems, solved as "
    "any others": """
        linalg.cholesky linalg.det linalg.det_(3_x_3) linalg.slogdet""",
    "two products of the same size, with transposed and hence strided matrices": "matmul_(3_x_3) kron",
    "the cotangents of the points and of the heights are sums over places, each as dear as the search": "interp",
    "a product of all but one for each of the roots": "poly",
    "Horner's rule with arrays: a product and a sum for each coefficient": "polynomial.polynomial.polyval2d",
}
REASONS: Mapping[str, str] = {
    name if name.startswith("x[") else f"numpy.{name}".replace("_(", " (").replace("with_a_0",
        "with a 0").replace("of_a_line", "of a line")
    .replace("3_x_3", "3 x 3").replace("axis_", "axis "): why
    for why, names in GROUPS.items() for name in names.split()
}  # fmt: skip


def steady_memory() -> None:
    """Nothing, with glibc's allocator told to keep what is freed; it reads these variables when it starts, so the
    interpreter is started again where one is not set. Other allocators ignore them."""
    if any(os.environ.get(name) != value for name, value in THRESHOLDS.items()):
        sys.stdout.flush()
        # No shell.
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | THRESHOLDS)  # noqa: S606


def cotangents(out: Any) -> Any:
    """A cotangent for every floating array of the result, of the same structure."""
    if isinstance(out, tuple | list):
        parts = [cotangents(part) for part in out]
        return type(out)(*parts) if hasattr(out, "_fields") else type(out)(parts)
    value = np.asarray(pb.value(out))
    return np.ones(value.shape, value.dtype)


def cost(name: str, *, rounds: int, least_seconds: float) -> dict[str, Any]:
    """The row of one call: microseconds of its forward and of its pull, their ratio, and the reason where that is
    above the limit."""
    function, operands = CALLS[name]
    out, pull = pb.vjp(function, *operands)
    ct = cotangents(out)
    timed = compare(
        {"forward": lambda: function(*operands), "pull": lambda: pull(ct)}, rounds=rounds, least_seconds=least_seconds
    )
    ratio = timed.ratio("pull")
    why = REASONS.get(name, "") if ratio > LIMIT else ""
    return {
        "call": name,
        "forward_us": timed["forward"].seconds * 1e6,
        "pull_us": timed["pull"].seconds * 1e6,
        "ratio": ratio,
        "why": why,
    }


def main() -> None:
    options = arguments("forward and pullback of every differentiable NumPy function")
    one_thread()
    steady_memory()
    warnings.simplefilter("ignore")
    rounds, least = (1, 0.0) if options.quick else (5, 0.005)
    rows = sorted((cost(name, rounds=rounds, least_seconds=least) for name in CALLS), key=lambda row: -row["ratio"])
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
