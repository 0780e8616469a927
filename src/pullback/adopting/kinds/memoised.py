"""``functools.lru_cache`` and ``cache`` for adopted code: a call with traced arguments is computed, since a cache would
hand out a value of another trace.
"""

import functools
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from pullback.memory.in_force import LIVE
from pullback.primitives.shaping.nested_lists import holds_tracer


def lru_cache(maxsize: Any = 128, typed: bool = False) -> Any:
    """``functools.lru_cache``."""
    if callable(maxsize):
        return _memoised(functools.lru_cache(maxsize))
    return lambda function: _memoised(functools.lru_cache(maxsize, typed)(function))


def cache(function: Callable[..., Any], /) -> Any:
    """``functools.cache``."""
    return _memoised(functools.cache(function))


def _memoised(plain: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        if LIVE and (holds_tracer(args) or holds_tracer(tuple(kwargs.values()))):
            return plain.__wrapped__(*args, **kwargs)
        return plain(*args, **kwargs)

    found: Any = update_wrapper(call, plain)
    found.cache_info, found.cache_clear, found.cache_parameters = (
        plain.cache_info,
        plain.cache_clear,
        plain.cache_parameters,
    )
    return found
