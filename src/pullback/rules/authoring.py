"""``pullback.primitive``: how whoever stands outside the library declares a primitive."""

from collections.abc import Callable
from typing import Any

from pullback.rules import declaration


def primitive(forward: Callable[..., Any] | None = None, **options: Any) -> Any:
    """A :class:`Primitive` from a forward function; decorator with or without options.

    Positional parameters of ``forward`` are operands, ``*arrays`` is a family, keyword-only parameters are static.
    Options: ``name``, ``operands``, ``params`` (both where the signature cannot be read), ``residuals`` (``forward``
    then returns ``(out, {"lu": lu})``), ``outputs`` (names, where it returns a tuple), ``nondiff`` (operands without
    derivative, such as an index), ``serves`` (NumPy functions), ``view`` (the output may share memory with an operand),
    ``linear``, ``bilinear``, ``elementwise``, ``reach`` (for tangents and sparse Jacobians; the class explains them),
    ``opaque`` (``{"lu": nbytes_of}`` for residuals, operands or an ``out`` that are no arrays), ``masks`` (its rules
    send exact zeros to what was not taken, as those of ``where`` do), ``ordered`` (its calls have an effect: each is
    made once, in its order, in generated functions, too), ``guarded`` (False: its calls are not looked at,
    for one that ``check_primitive`` has found right on operands of each kind). Raises :class:`DeclarationError` naming
    what is wrong.
    """
    return declaration.primitive(forward, **{"guarded": True, **options})
