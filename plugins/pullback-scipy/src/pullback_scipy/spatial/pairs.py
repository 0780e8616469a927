"""Distances of all pairs of points: cdist and pdist, and those of two vectors.

The derivative of a distance at two equal points, where it has none, is 0, as that of a norm at the origin.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.spatial import distance

from pullback_scipy.mirroring import as_array, derived, linear, mirror, only


def _root(squares: Any) -> Any:
    """The root of a sum of squares, with the derivative 0 where it is 0."""
    zero = squares == 0
    return np.where(zero, 0.0, np.sqrt(np.where(zero, 1.0, squares)))


def _euclidean(d: Any, u: Any, v: Any, p: Any) -> Any:
    return _root(np.sum(d * d, axis=-1))


def _minkowski(d: Any, u: Any, v: Any, p: Any) -> Any:
    if p == np.inf:
        return np.max(np.abs(d), axis=-1)
    total = np.sum(np.abs(d) ** p, axis=-1)
    zero = total == 0
    return np.where(zero, 0.0, np.where(zero, 1.0, total) ** (1.0 / p))


def _cosine(d: Any, u: Any, v: Any, p: Any) -> Any:
    return 1 - np.sum(u * v, axis=-1) / np.sqrt(np.sum(u * u, axis=-1) * np.sum(v * v, axis=-1))


def _correlation(d: Any, u: Any, v: Any, p: Any) -> Any:
    u, v = (x - np.mean(x, axis=-1, keepdims=True) for x in (u, v))
    return _cosine(d, u, v, p)


def _canberra(d: Any, u: Any, v: Any, p: Any) -> Any:
    below = np.abs(u) + np.abs(v)
    zero = below == 0
    return np.sum(np.where(zero, 0.0, np.abs(d) / np.where(zero, 1.0, below)), axis=-1)


FORMULAS: dict[str, Callable[..., Any]] = {
    "euclidean": _euclidean,
    "sqeuclidean": lambda d, u, v, p: np.sum(d * d, axis=-1),
    "cityblock": lambda d, u, v, p: np.sum(np.abs(d), axis=-1),
    "chebyshev": lambda d, u, v, p: np.max(np.abs(d), axis=-1),
    "minkowski": _minkowski,
    "cosine": _cosine,
    "correlation": _correlation,
    "canberra": _canberra,
    "braycurtis": lambda d, u, v, p: np.sum(np.abs(d), axis=-1) / np.sum(np.abs(u + v), axis=-1),
}
"""Distances as functions of the difference of two points, the points, and the exponent."""
ALIASES = {"l2": "euclidean", "manhattan": "cityblock", "chebychev": "chebyshev", "cos": "cosine"}
"""Other names of them; SciPy is given the name as it was written, and raises where it does not know it."""


def _options(metric: str, p: Any) -> dict[str, Any]:
    return {"p": p} if metric == "minkowski" else {}


# -------------------------------------------------------------------------------------------------- Euclidean distances
# All differences at once would take a number for each pair and coordinate; products of matrices do without.
def _between_rule(ct: Any, a: Any, b: Any, out: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    zero = out == 0
    w = np.where(zero, 0.0, ct / np.where(zero, 1.0, out))
    of_a = np.sum(w, axis=1)[:, None] * a - w @ b if "a" in needed else None
    return of_a, np.sum(w, axis=0)[:, None] * b - w.T @ a if "b" in needed else None


def _squares_rule(ct: Any, a: Any, b: Any, needed: frozenset[str]) -> tuple[Any, Any]:
    of_a = 2 * (np.sum(ct, axis=1)[:, None] * a - ct @ b) if "a" in needed else None
    return of_a, 2 * (np.sum(ct, axis=0)[:, None] * b - ct.T @ a) if "b" in needed else None


@cache
def between(metric: str, given: Any) -> Any:
    """The primitive of cdist by a metric, which SciPy is given by a name or as a function."""

    def forward(a: Any, b: Any, *, p: Any) -> Any:
        return distance.cdist(a, b, given, **_options(metric, p))

    def formula(a: Any, b: Any, p: Any) -> Any:
        u, v = a[:, None, :], b[None, :, :]
        return FORMULAS[metric](u - v, u, v, p)

    made = derived(forward, formula, "a b", "p", name=f"scipy.cdist_{metric}")
    rule = {"euclidean": _between_rule, "sqeuclidean": _squares_rule}.get(metric)
    if rule is not None:
        made.rules.clear()
        made.vjp("a", "b", fn=rule)
    return made


@cache
def among(metric: str, given: Any) -> Any:
    """The primitive of pdist by a metric, likewise."""

    def forward(a: Any, *, p: Any) -> Any:
        return distance.pdist(a, given, **_options(metric, p))

    def formula(a: Any, p: Any) -> Any:
        i, j = np.triu_indices(a.shape[0], 1)
        return FORMULAS[metric](a[i] - a[j], a[i], a[j], p)

    return derived(forward, formula, "a", "p", name=f"scipy.pdist_{metric}")


def named(title: str, metric: Any) -> tuple[str, Any]:
    """The name of a metric that is served, and what SciPy is given for it."""
    metric = getattr(metric, "__wrapped__", metric)  # a counterpart of this module
    if callable(metric):
        name = str(getattr(metric, "__name__", "a function"))
        own = metric is not getattr(distance, name, None)
        only(title, "metric", f"a function {name} of your own" if own else name, *FORMULAS)
        return name, metric
    found = ALIASES.get(str(metric).lower(), str(metric).lower())
    only(title, "metric", found, *FORMULAS)
    return found, metric


def exponent(title: str, metric: str, options: dict[str, Any]) -> Any:
    """The exponent among the options of a metric, which are all but none."""
    if set(options) - ({"p"} if metric == "minkowski" else set()):
        only(title, "options", tuple(options), ("p",) if metric == "minkowski" else ())
    return options.get("p", 2)


@mirror(distance.cdist, "XA XB")
def cdist(XA: Any, XB: Any, metric: Any = "euclidean", **options: Any) -> Any:
    """The distances of each point of XA to each of XB."""
    name, given = named("scipy.spatial.distance.cdist", metric)
    p = exponent("scipy.spatial.distance.cdist", name, options)
    return between(name, given)(as_array(XA) * 1.0, as_array(XB) * 1.0, p=p)


@mirror(distance.pdist, "X")
def pdist(X: Any, metric: Any = "euclidean", **options: Any) -> Any:
    """The distances of all pairs of points of X."""
    name, given = named("scipy.spatial.distance.pdist", metric)
    p = exponent("scipy.spatial.distance.pdist", name, options)
    return among(name, given)(as_array(X) * 1.0, p=p)


def _moved(X: Any) -> Any:
    """The elements of a matrix above its diagonal, or the matrix that has them above and below."""
    if X.ndim == 2:
        return X[np.triu_indices(X.shape[0], 1)]
    n = int(np.ceil(np.sqrt(2 * X.shape[0])))
    i, j = np.triu_indices(n, 1)
    place = np.zeros((n, n), int)
    place[i, j] = place[j, i] = np.arange(1, X.shape[0] + 1)
    return np.concatenate((np.zeros(1, X.dtype), X))[place]


squared = linear(distance.squareform, _moved, name="scipy.squareform")


@mirror(distance.squareform, "X")
def squareform(X: Any) -> Any:
    """The matrix of condensed distances, or the condensed ones of a matrix."""
    return squared(as_array(X))


def _of_vectors(function: Any) -> Any:
    """The counterpart of a distance of two vectors."""
    metric = function.__name__

    def formula(u: Any, v: Any, p: Any) -> Any:
        return FORMULAS[metric](u - v, u, v, p)

    def forward(u: Any, v: Any, *, p: Any) -> Any:
        return np.asarray(function(u, v, **_options(metric, p)))[()]

    made = derived(forward, formula, "u v", "p", name=f"scipy.{metric}")

    def call(u: Any, v: Any, p: Any = 2) -> Any:
        return made(as_array(u) * 1.0, as_array(v) * 1.0, p=p)

    return mirror(function, "u v")(call)


euclidean, sqeuclidean = _of_vectors(distance.euclidean), _of_vectors(distance.sqeuclidean)
cityblock, chebyshev = _of_vectors(distance.cityblock), _of_vectors(distance.chebyshev)
minkowski, cosine = _of_vectors(distance.minkowski), _of_vectors(distance.cosine)
correlation, canberra = _of_vectors(distance.correlation), _of_vectors(distance.canberra)
braycurtis = _of_vectors(distance.braycurtis)
