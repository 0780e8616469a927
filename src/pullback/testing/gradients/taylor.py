"""The Taylor test: the residual of the first-order model falls with the square of the step if, and only if, the
gradient is right."""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import field, frozen

from pullback.testing.comparing.differences import inner, random_like
from pullback.testing.comparing.inexact_leaves import inexact_leaves
from pullback.transforms.derivatives.argnums import name_of
from pullback.transforms.derivatives.reverse import value_and_grad
from pullback.words.call_sites import public
from pullback.words.errors import CheckError
from pullback.words.structures import flatten

FLOOR = 16.0
"""A residual below this many roundings of f is noise; its rate says nothing."""


@frozen
class TaylorTest:
    """What :func:`taylor_test` measured; prints as a table.

    A rate is log2 of the ratio of two neighbouring residuals for halved steps: 2 for a right gradient, 1 for a wrong
    one.

    Attributes
    ----------
    steps
        The steps h along the direction v.
    residuals
        abs(f(x + h v) - f(x) - h <g, v>) for each of them.
    plain_residuals
        The same without the gradient term.
    floor
        Residuals below it are rounding.
    name
        That of the function.

    Example
    -------
    >>> import numpy as np
    >>> import pullback.testing as pt
    >>> bool(pt.taylor_test(lambda x: np.sum(np.exp(x)), np.ones(3)).rate > 1.95)
    True
    """

    steps: tuple[float, ...]
    residuals: tuple[float, ...]
    plain_residuals: tuple[float, ...]
    floor: float
    name: str = "f"
    rates: tuple[float, ...] = field(init=False)
    plain_rates: tuple[float, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        # attrs' way to set derived fields of a frozen value.
        object.__setattr__(self, "rates", _rates(self.steps, self.residuals))
        object.__setattr__(self, "plain_rates", _rates(self.steps, self.plain_residuals))

    @property
    def rate(self) -> float:
        """The last rate between two residuals above rounding: about 2; infinity where all are below it (f is linear
        along v)."""
        good = [r for r, low in zip(self.rates, self.residuals[1:], strict=True) if low > self.floor]
        if good:
            return good[-1]
        return np.inf if max(self.residuals) <= self.floor else self.rates[0]

    def __str__(self) -> str:
        head = f"{'step':>10}  {'|f(x+hv)-f(x)|':>16}  {'rate':>5}  {'|... - h<g,v>|':>16}  {'rate':>5}"
        rows = []
        for k, (h, plain, first) in enumerate(zip(self.steps, self.plain_residuals, self.residuals, strict=True)):
            before, after = (f"{self.plain_rates[k - 1]:5.2f}", f"{self.rates[k - 1]:5.2f}") if k else ("", "")
            note = "  rounding" if first <= self.floor else ""
            rows.append(f"{h:10.3e}  {plain:16.6e}  {before:>5}  {first:16.6e}  {after:>5}{note}")
        return "\n".join([
            f"Taylor test of {self.name}: last rate {self.rate:.2f} (right gradient 2, wrong 1)",
            head,
            *rows,
        ])


@public
def taylor_test(
    f: Callable[[Any], Any],
    x: Any,
    direction: Any = None,
    *,
    gradient: Any = None,
    step: float = 1e-2,
    levels: int = 5,
    policy: Any = None,
    seed: int = 0,
) -> TaylorTest:
    """Whether the gradient of a real scalar function at ``x`` is right: then the ``rate`` of what is left is about 2.

    Parameters
    ----------
    f
        Returns a real scalar.
    x
        An array or a structure.
    direction
        Has the structure of ``x``; default: a random one of the size of ``x``.
    gradient
        What is tested; default: that of ``pullback.grad`` under ``policy``.
    step, levels
        The steps are ``step``, ``step`` / 2, ..., so many of them.
    policy
        That of the gradient.
    seed
        Of the random direction.

    Returns
    -------
    A :class:`TaylorTest`, which prints as a table.

    Raises
    ------
    CheckError
        Where f or the residuals are not finite.
    ValueError
        For fewer than two levels.

    Source: Farrell et al., SIAM J. Sci. Comput. 35 (2013), section 6.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> round(pb.testing.taylor_test(lambda x: np.sum(np.sin(x)), np.array([0.3, 1.2])).rate, 2)
    2.0
    """
    if levels < 2:
        raise ValueError(f"a rate needs two steps, got levels={levels}; ask for levels=2 or more")
    leaves, rebuild = inexact_leaves(x)
    v = _direction(leaves, direction, seed)
    start, gradient = value_and_grad(f, policy=policy)(x) if gradient is None else (f(x), gradient)
    slope = sum(inner(g, w) for g, w in zip(_matching(gradient, leaves, "gradient"), v, strict=True))
    steps = tuple(step / 2**k for k in range(levels))
    values = [float(np.real(f(rebuild([_along(a, h, w) for a, w in zip(leaves, v, strict=True)])))) for h in steps]
    base = float(np.real(start))
    plain = tuple(abs(value - base) for value in values)
    first = tuple(abs(value - base - h * slope) for h, value in zip(steps, values, strict=True))
    if not np.all(np.isfinite(first)):
        raise CheckError(
            f"the Taylor residuals of {name_of(f)} are not finite: f(x) = {base:g}, <g, v> = {slope:g}; take a smaller "
            "step or a point inside the domain"
        )
    eps = max(
        (float(np.finfo(np.asarray(a).dtype).eps) for a in [*leaves, start] if np.asarray(a).dtype.kind in "fc"),
        default=2.0**-52,
    )
    return TaylorTest(steps, first, plain, FLOOR * eps * max(abs(base), *map(abs, values)), name_of(f))


def _along(x: Any, h: float, v: Any) -> Any:
    moved = x + h * v
    return moved.astype(x.dtype) if isinstance(x, np.ndarray | np.generic) else type(x)(moved)


def _direction(leaves: list[Any], direction: Any, seed: int) -> list[Any]:
    """The direction's leaves; a random one has the norm of ``x``, or 1 where x is zero."""
    if direction is not None:
        return _matching(direction, leaves, "direction")
    rng = np.random.default_rng(seed)
    v = [random_like(rng, a) for a in leaves]
    norms = [np.sqrt(sum(float(np.sum(np.abs(a) ** 2)) for a in side)) for side in (leaves, v)]
    scale = (norms[0] or 1.0) / (norms[1] or 1.0)
    return [np.asarray(w * scale).astype(w.dtype) for w in v]


def _matching(tree: Any, leaves: list[Any], what: str) -> list[Any]:
    others = [np.asarray(leaf) for leaf in flatten(tree)[0]]
    shapes, expected = [a.shape for a in others], [np.shape(a) for a in leaves]
    if shapes != expected:
        raise ValueError(
            f"the {what} has leaves of shapes {shapes}, x has {expected}; hand over the structure and the shapes of x"
        )
    return others


def _rates(steps: tuple[float, ...], residuals: tuple[float, ...]) -> tuple[float, ...]:
    with np.errstate(all="ignore"):
        ratios = np.log(np.divide(residuals[:-1], residuals[1:])) / np.log(np.divide(steps[:-1], steps[1:]))
    return tuple(float(r) for r in ratios)
