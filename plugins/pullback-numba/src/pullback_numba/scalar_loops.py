"""Loops over single numbers: functions of a text, compiled as they stand."""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numba
import numpy as np
from numba.core.errors import NumbaError

from pullback import PluginError
from pullback_numba.compiling import flags

OPTIONS: Final[dict[str, Any]] = {
    # NumPy's bits, as of nests. What Python raises is raised: an index out of range, a division by 0.
    "fastmath": False, "error_model": "python", "boundscheck": True, "nogil": True,
}  # fmt: skip


@cache
def compiled_loop(text: str, name: str) -> Callable[..., tuple[Any, bool]] | None:
    """The function of this name in a text, compiled when it is called: it gives what that gives, and whether NumPy
    would have warned.

    Parameters
    ----------
    text
        Functions of numbers and arrays, the later ones of which call the earlier ones; ``np`` is NumPy.
    name
        That of one of them.

    Returns
    -------
    The function; None on a processor of which it is not known when NumPy would warn.

    Raises
    ------
    PluginError
        From a call, where numba cannot compile the text for such values. Any other error is the function's own.

    Example
    -------
    >>> from pullback_numba import compiled_loop
    >>> compiled_loop("def halved(x): return x / 2", "halved")(3.0)
    (1.5, False)
    """
    watched = flags()
    if not watched:
        return None
    names: dict[str, Any] = {"np": np}
    exec(compile(text, f"<pullback {name}>", "exec"), names)  # noqa: S102 - generated from a loop
    for key, made in list(names.items()):
        if callable(made) and key != "np" and not key.startswith("__"):
            names[key] = numba.njit(made, **OPTIONS)
    function = names[name]

    def called(*given: Any) -> tuple[Any, bool]:
        clear(watched)
        try:
            result = function(*given)
        except NumbaError as error:
            raise PluginError(f"numba cannot compile a loop: {str(error).splitlines()[0]}") from error
        return result, bool(test(watched))

    return called


def _external(name: str) -> Any:
    word = numba.types.int32
    return numba.types.ExternalFunction(name, word(word))


_clear, _test = _external("feclearexcept"), _external("fetestexcept")


@numba.njit
def clear(which: int) -> Any:
    """Forget what has happened since."""
    return _clear(which)


@numba.njit
def test(which: int) -> Any:
    """What of it has happened."""
    return _test(which)
