"""Random numbers in adopted code: the same numbers, in arrays that can hold traced values while a trace is on."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

import numpy as np

from pullback.adopting.owning import owned
from pullback.memory.in_force import LIVE

DRAWS: Final = tuple(
    "beta chisquare dirichlet exponential f gamma gumbel laplace logistic lognormal multivariate_normal "
    "noncentral_chisquare noncentral_f normal pareto power rayleigh standard_cauchy standard_exponential "
    "standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull".split()
)
"""What generators draw in floating numbers, old and new."""
OLD_DRAWS: Final = (*DRAWS, "rand", "randn", "random", "random_sample", "ranf", "sample")
NEW_DRAWS: Final = (*DRAWS, "random")


def _drawing(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws, whose result is a buffer while a trace is under way."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        made = draw(*args, **kwargs)
        return owned(made) if LIVE and kwargs.get("out") is None else made

    return drawn


Generator: Final[Any] = type(
    "Generator", (np.random.Generator,), {name: _drawing(getattr(np.random.Generator, name)) for name in NEW_DRAWS}
)
RandomState: Final[Any] = type(
    "RandomState",
    (np.random.RandomState,),
    {name: _drawing(draw) for name in OLD_DRAWS if (draw := getattr(np.random.RandomState, name, None)) is not None},
)


def _default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng``."""
    made = np.random.default_rng(seed)
    return made if made is seed else Generator(made.bit_generator)


def random_namespace_names() -> dict[str, Any]:
    """What stands in the place of NumPy's own names."""
    names = {name: _drawing(getattr(np.random, name)) for name in OLD_DRAWS if hasattr(np.random, name)}
    return names | {"default_rng": wraps(np.random.default_rng)(_default_rng), "RandomState": RandomState}
