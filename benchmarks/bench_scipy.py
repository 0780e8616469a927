"""What a pull of a function of SciPy costs, in units of its forward, at 1e5 elements.

    python benchmarks/bench_scipy.py

Least processor time of interleaved runs in one process. The pull is that of a record that is there; the forward is
SciPy's own call.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

import pullback as pb
from pullback_scipy import fft, interpolate, linalg, ndimage, signal, sparse, stats
from pullback_scipy.sparse import linalg as sparse_linalg
from pullback_scipy.spatial import distance

N = 100_000
RNG = np.random.default_rng(0)
X, U = RNG.uniform(0.2, 3.0, N), RNG.uniform(0.05, 0.95, N)
IMAGE, SQUARE = RNG.normal(size=(316, 316)), RNG.normal(size=(316, 316)) / 20 + 3 * np.eye(316)
BAND = RNG.normal(size=(3, N)) + np.array([[0], [5], [0]])
NODES = np.linspace(0, 1, 20_000)


def tridiagonal(x: Any) -> Any:
    """A sparse matrix of a third of 1e5 rows."""
    return sparse.diags([0.1 * x[:33_332], 4 + x[:33_333], 0.1 * x[1:33_333]], [-1, 0, 1], format="csc")


MATRIX = tridiagonal(X)
CASES: dict[str, tuple[Callable[..., Any], Any]] = {
    **{f"special.{f}": (getattr(special, f), X) for f in
       ("gamma gammaln digamma erf erfc erfcx dawsn ndtr log_ndtr expit log_expit j0 j1 y0 i0 i0e i1 exprel "
        "entr").split()},
    **{f"special.{f}": (getattr(special, f), U) for f in "erfinv ndtri logit ellipk ellipe".split()},
    "special.jv(1.5, x)": (lambda x: special.jv(1.5, x), X),
    "special.kv(1.5, x)": (lambda x: special.kv(1.5, x), X),
    "special.gammainc(2.5, x)": (lambda x: special.gammainc(2.5, x), X),
    "special.betainc(1.5, 2, x)": (lambda x: special.betainc(1.5, 2.0, x), U),
    "special.xlogy(x, x)": (lambda x: special.xlogy(x, x), X),
    "linalg.solve": (lambda a: linalg.solve(a, IMAGE[:, :8]), SQUARE),
    "linalg.inv": (linalg.inv, SQUARE),
    "linalg.cholesky": (linalg.cholesky, SQUARE @ SQUARE.T),
    "linalg.expm": (linalg.expm, SQUARE),
    "linalg.eigh": (linalg.eigh, SQUARE + SQUARE.T),
    "linalg.svd": (lambda a: linalg.svd(a, full_matrices=False), SQUARE),
    "linalg.solve_banded": (lambda ab: linalg.solve_banded((1, 1), ab, X), BAND),
    "sparse product": (lambda x: tridiagonal(x) @ X[:33_333], X),
    "sparse.linalg.spsolve": (lambda x: sparse_linalg.spsolve(tridiagonal(x), X[:33_333]), X),
    "fft.dct": (fft.dct, X),
    "fft.rfft": (fft.rfft, X),
    "ndimage.gaussian_filter": (lambda x: ndimage.gaussian_filter(x, 2.0), IMAGE),
    "ndimage.correlate 3 x 3": (lambda x: ndimage.correlate(x, np.ones((3, 3))), IMAGE),
    "ndimage.zoom": (lambda x: ndimage.zoom(x, 1.3, order=1), IMAGE),
    "signal.fftconvolve": (lambda x: signal.fftconvolve(x, X[:500], "same"), X),
    "signal.lfilter": (lambda x: signal.lfilter([0.2, 0.1], [1.0, -0.5], x), X),
    "signal.resample": (lambda x: signal.resample(x, 80_000), X),
    "interpolate.CubicSpline": (lambda y: interpolate.CubicSpline(NODES, y)(U), X[:20_000]),
    "interpolate.interp1d": (lambda y: interpolate.interp1d(NODES, y)(U), X[:20_000]),
    "stats.norm.logpdf": (lambda x: stats.norm.logpdf(x, 0.3, 1.2), X),
    "stats.gamma.cdf": (lambda x: stats.gamma.cdf(x, 2.0), X),
    "distance.cdist": (lambda x: distance.cdist(x[:, :8], x[:, 8:16]), IMAGE),
}  # fmt: skip


def seconds(f: Callable[[], Any]) -> float:
    """The processor time of one run."""
    start = time.process_time()
    f()
    return time.process_time() - start


def main() -> None:
    """Print the table."""
    print("| function | forward, ms | pull / forward |\n|---|---|---|")
    for name, (f, x) in CASES.items():
        with np.errstate(all="ignore"):
            out, pull = pb.vjp(f, x)
            seed = pb.map_leaves(np.ones_like, out)
            runs = [(seconds(lambda: f(x)), seconds(lambda: pull(seed))) for _ in range(7)]  # noqa: B023 - called here
        forward, back = min(r[0] for r in runs), min(r[1] for r in runs)
        print(f"| {name} | {1e3 * forward:.2f} | {back / forward:.1f} |")


if __name__ == "__main__":
    main()
