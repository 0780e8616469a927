"""Libraries that only some functions need: imported at the call, so that pullback works without them."""

from importlib import import_module
from typing import Any

from pullback.words.errors import PullbackError

DISTRIBUTIONS = {"sklearn": "scikit-learn"}
"""The distributions of libraries that are imported by another name than they are installed under."""


def optional_library(module: str, purpose: str, extra: str = "demo") -> Any:
    """The module; ``PullbackError`` where its library is missing, with the purpose and the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        raise PullbackError(
            f"{purpose}, and {DISTRIBUTIONS.get(name, name)} is missing: install pullback[{extra}]"
        ) from error
