"""The normal distribution of several numbers, and standard scores."""

from typing import Any

import numpy as np
from attrs import frozen
from scipy import stats

import pullback as pb
from pullback_scipy.mirroring import as_array, derived, holds, mirror, only


def _normal(x: Any, mean: Any, cov: Any, allow_singular: bool) -> Any:
    n, points = cov.shape[0], x[:, None] if x.ndim == 1 and cov.shape[0] == 1 else x
    try:
        factor = np.linalg.cholesky(cov)
    except np.linalg.LinAlgError:
        raise pb.NotDifferentiableError(
            "scipy.stats.multivariate_normal of a singular covariance has no derivative here; add a small multiple of "
            "the unit matrix to it"
        ) from None
    far = np.reshape(points - mean, (-1, n))
    z = np.linalg.solve(factor, far.T)
    logdet = np.sum(np.log(np.diagonal(factor)))
    out = -0.5 * np.sum(z * z, axis=0) - logdet - n * np.log(2 * np.pi) / 2
    return np.reshape(out, np.shape(points)[:-1])


normal_logpdf = derived(
    lambda x, mean, cov, *, allow_singular: stats.multivariate_normal.logpdf(x, mean, cov, allow_singular),
    _normal, "x mean cov", "allow_singular", name="scipy.multivariate_normal.logpdf",
)  # fmt: skip
normal_pdf = derived(
    lambda x, mean, cov, *, allow_singular: stats.multivariate_normal.pdf(x, mean, cov, allow_singular),
    lambda x, mean, cov, allow_singular: np.exp(_normal(x, mean, cov, allow_singular)),
    "x mean cov", "allow_singular", name="scipy.multivariate_normal.pdf",
)  # fmt: skip


@frozen(eq=False)
class MultivariateNormal:
    """SciPy's multivariate normal distribution, of regular covariances where something is traced."""

    plain: Any
    by = ("x", "mean", "cov")

    def _of(self, made: Any, x: Any, mean: Any, cov: Any, allow_singular: bool) -> Any:
        x, cov = as_array(x) * 1.0, as_array(cov) * 1.0
        if cov.ndim != 2:
            only("scipy.stats.multivariate_normal", "axes of cov", cov.ndim, 2)
        mean = np.zeros(cov.shape[0]) if mean is None else as_array(mean) * 1.0
        return made(x, mean, cov, allow_singular=bool(allow_singular))

    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density."""
        if not holds((x, mean, cov)):
            return self.plain.logpdf(x, mean, cov, allow_singular)
        return self._of(normal_logpdf, x, mean, cov, allow_singular)

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        if not holds((x, mean, cov)):
            return self.plain.pdf(x, mean, cov, allow_singular)
        return self._of(normal_pdf, x, mean, cov, allow_singular)

    def __call__(self, mean: Any = None, cov: Any = 1, allow_singular: bool = False, **kwargs: Any) -> Any:
        found = None if holds((mean, cov)) else self.plain(mean, cov, allow_singular, **kwargs)
        return FrozenNormal(self, (mean, cov, allow_singular), found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)


@frozen(eq=False)
class FrozenNormal:
    """A multivariate normal distribution with its parameters; SciPy's own where none of them is traced."""

    distribution: MultivariateNormal
    parameters: tuple[Any, ...]
    found: Any

    @property
    def holds_tracer(self) -> bool:
        """Whether the mean or the covariance is traced."""
        return self.found is None

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density."""
        plain = self.found is not None and not holds(x)
        return self.found.logpdf(x) if plain else self.distribution.logpdf(x, *self._three())

    def pdf(self, x: Any) -> Any:
        """The density."""
        plain = self.found is not None and not holds(x)
        return self.found.pdf(x) if plain else self.distribution.pdf(x, *self._three())

    def _three(self) -> tuple[Any, ...]:
        if self.found is None:
            return self.parameters
        return self.found.mean, self.found.cov, self.parameters[2]

    def __getattr__(self, name: str) -> Any:
        if self.found is not None or name.startswith("__"):
            return getattr(self.found, name)
        raise pb.NotDifferentiableError(
            f"scipy.stats.multivariate_normal(...).{name} with a traced mean or cov has no derivative here: logpdf and "
            "pdf have one; pass pullback.value(...) of what is traced to drop the derivative"
        )


multivariate_normal = MultivariateNormal(stats.multivariate_normal)


@mirror(stats.zscore, "a")
def zscore(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """The deviations from the mean, in units of the standard deviation."""
    a = as_array(a)
    return (a - np.mean(a, axis=axis, keepdims=True)) / np.std(a, axis=axis, ddof=ddof, keepdims=True)
