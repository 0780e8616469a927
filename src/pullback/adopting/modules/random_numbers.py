"""Random numbers in adopted code: the same numbers, in arrays that can hold traced values while a trace is on."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Final

import numpy as np

from pullback.adopting.modules.arrays_as_handles import owned
from pullback.memory.in_force import LIVE
from pullback.recording.handles import Handle

DRAWS: Final = tuple(
    "beta chisquare dirichlet exponential f gamma gumbel laplace logistic lognormal multivariate_normal "
    "noncentral_chisquare noncentral_f normal pareto power rayleigh standard_cauchy standard_exponential "
    "standard_gamma standard_normal standard_t triangular uniform vonmises wald weibull".split()
)
"""What generators draw in floating numbers, old and new."""
OLD_DRAWS: Final = (*DRAWS, "rand", "randn", "random", "random_sample", "ranf", "sample")
NEW_DRAWS: Final = (*DRAWS, "random")


PICKS: Final = ("permutation", "permuted", "shuffle", "choice")
"""What draws places in an array that it is given."""
LOCATED: Final = dict.fromkeys(("normal", "laplace", "logistic", "gumbel"), ("loc", "scale"))
"""What is drawn about a place and on a scale, and what these are called; the defaults are 0 and 1."""
SCALED: Final = {"exponential": "scale", "rayleigh": "scale"}
"""What is drawn on a scale alone."""


def _drawing(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws, whose result is a buffer while a trace is under way."""
    method = not hasattr(draw, "__self__")

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if LIVE and any(isinstance(x, Handle) for x in (*args, *kwargs.values())):
            return _moved(partial(draw, args[0]) if method else draw, draw.__name__, args[method:], kwargs)
        made = draw(*args, **kwargs)
        return owned(made) if LIVE and kwargs.get("out") is None else made

    return drawn


def _moved(draw: Any, name: str, args: Any, kwargs: Any) -> Any:
    """Numbers drawn with traced parameters: those of the plain distribution, moved and stretched as NumPy does it."""
    names = (*LOCATED.get(name, ()), *((SCALED[name],) if name in SCALED else ()))
    names = ("low", "high") if name == "uniform" else names
    given = dict(zip((*names, "size"), args, strict=False)) | kwargs
    if not names or not given.keys() <= {*names, "size"}:
        return draw(*args, **kwargs)  # which refuses them by name
    parts = [given.get(part, default) for part, default in zip(names[::-1], (1.0, 0.0), strict=False)]
    size = given.get("size")
    size = np.broadcast_shapes(*map(np.shape, parts)) if size is None else size
    plain = draw(*(0.0, 1.0)[-len(names) :], size)
    if name == "uniform":
        return parts[1] + (parts[0] - parts[1]) * plain
    return parts[0] * plain if name in SCALED else parts[1] + parts[0] * plain


def _picking(draw: Callable[..., Any]) -> Callable[..., Any]:
    """A function that draws the places of elements: what it does with the numbers of the places is done to those of a
    traced array."""
    place = 0 if hasattr(draw, "__self__") else 1

    @wraps(draw)
    def picked(*args: Any, **kwargs: Any) -> Any:
        named = next((name for name in ("x", "a") if name in kwargs), None)
        x: Any = kwargs[named] if named else args[place] if len(args) > place else None
        if not LIVE or not issubclass(type(x), Handle) or kwargs.get("out") is not None or not x.shape:
            return draw(*args, **kwargs)
        numbers = np.arange(x.size).reshape(x.shape)
        if named:
            kwargs = kwargs | {named: numbers}
        else:
            args = (*args[:place], numbers, *args[place + 1 :])
        found = draw(*args, **kwargs)
        if found is not None:
            return np.ravel(x)[found]
        x[...] = np.ravel(x)[numbers]  # shuffled where it stands
        return None

    return picked


def _drawing_class(base: Any, draws: tuple[str, ...]) -> Any:
    """A class of generators whose functions take traced values."""
    known = {name: getattr(base, name) for name in (*draws, *PICKS) if hasattr(base, name)}
    return type(base.__name__, (base,), {name: _serving(name)(draw) for name, draw in known.items()})


def _serving(name: str) -> Callable[..., Any]:
    return _picking if name in PICKS else _drawing


Generator: Final[Any] = _drawing_class(np.random.Generator, NEW_DRAWS)
RandomState: Final[Any] = _drawing_class(np.random.RandomState, OLD_DRAWS)


def _default_rng(seed: Any = None) -> Any:
    """``numpy.random.default_rng``."""
    made = np.random.default_rng(seed)
    return made if made is seed else Generator(made.bit_generator)


def random_namespace_names() -> dict[str, Any]:
    """What stands in the place of NumPy's own names."""
    names = {
        name: _serving(name)(getattr(np.random, name)) for name in (*OLD_DRAWS, *PICKS) if hasattr(np.random, name)
    }
    return names | {"default_rng": wraps(np.random.default_rng)(_default_rng), "RandomState": RandomState}
