"""``pullback.primitive``: the decorator by which users and plugins declare a primitive."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack, overload

from pullback.rules import declaration
from pullback.rules.declaration import Primitive
from pullback.words.errors import DeclarationError


class Options(TypedDict, total=False):
    """What :func:`primitive` takes by name."""

    name: str
    """What messages and tables call it; else the name of the forward."""
    operands: Sequence[str]
    """The positional arrays, where the signature cannot be read."""
    family: str
    """The name of any number of further arrays, where the signature cannot be read."""
    params: Sequence[str]
    """The static parameters, where the signature cannot be read."""
    residuals: Sequence[str]
    """What the forward computes for its rules: it then returns ``(out, {"lu": lu})``."""
    outputs: Sequence[str]
    """The parts of a forward that returns a tuple; the result is a named tuple of them."""
    nondiff: Sequence[str]
    """Operands without derivative, such as an index."""
    serves: Sequence[Callable[..., Any]]
    """The NumPy functions that mean this primitive."""
    view: bool
    """The output may share memory with an operand."""
    linear: Sequence[str]
    """The operands in which it is linear together, the others held fixed."""
    bilinear: Sequence[str]
    """The operands in each of which it is linear, all others held fixed."""
    elementwise: bool
    """An element of the output depends on the elements at its own place alone."""
    reach: str
    """The elements of the operands on which an element of the output depends, for sparse Jacobians: see the class."""
    opaque: Mapping[str, Callable[[Any], int]]
    """How many bytes residuals, operands or an ``out`` hold that are no arrays."""
    masks: bool
    """Its rules send exact zeros to what was not taken, as those of ``where`` do."""
    ordered: bool
    """Its calls have an effect: each is made once, in its order, in generated functions, too."""
    collective: bool
    """Its calls meet calls of others, in other processes: each is recorded and pulled back whatever it depends on."""
    guarded: bool
    """False: its calls are not looked at, for one that ``check_primitive`` has found right."""
    symbol: str
    """The Python operator with the same meaning, which NumPy evaluates faster on numbers."""
    vjps: Mapping[str, Any]
    """Rules by operand, in the place of ``@made.vjp(operand)``."""
    jvps: Mapping[str, Callable[..., Any]]
    """Rules for tangents by operand, in the place of ``@made.jvp(operand)``."""
    trusted: bool
    """The results of its rules are not checked at run time."""


@overload
def primitive(forward: Callable[..., Any], /, **options: Unpack[Options]) -> Primitive: ...


@overload
def primitive(forward: None = None, /, **options: Unpack[Options]) -> Callable[[Callable[..., Any]], Primitive]: ...


def primitive(forward: Callable[..., Any] | None = None, /, **options: Unpack[Options]) -> Any:
    """A :class:`Primitive` from a forward function; decorator with or without options.

    Parameters
    ----------
    forward
        Its positional parameters are operands, ``*arrays`` is a family, keyword-only parameters are static.
    **options
        ``name``; ``operands``, ``params`` (both where the signature cannot be read); ``residuals`` (``forward`` then
        returns ``(out, {"lu": lu})``); ``outputs`` (names, where it returns a tuple; the result is a named tuple);
        ``nondiff`` (operands without derivative, such as an index); ``serves`` (NumPy functions); ``view`` (the output
        may share memory with an operand); ``linear``, ``bilinear``, ``elementwise``, ``reach`` (for tangents and sparse
        Jacobians; the class explains them); ``opaque`` (``{"lu": nbytes_of}`` for residuals, operands or an ``out``
        that are no arrays); ``masks`` (its rules send exact zeros to what was not taken, as those of ``where`` do);
        ``ordered`` (its calls have an effect: each is made once, in its order, in generated functions, too);
        ``collective`` (its calls meet calls of others, in other processes: each is recorded whatever its operands are,
        run in every re-run of its step, and pulled back in any case, a missing cotangent being zeros); ``guarded``
        (False: its calls are not looked at, for one that ``check_primitive`` has found right on operands of each kind).

    Returns
    -------
    The primitive, whose rules are declared by ``.vjp`` and, if need be, ``.jvp``.

    Raises
    ------
    DeclarationError
        Names what is wrong in the declaration.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> @pb.primitive
    ... def softplus(x):
    ...     return np.logaddexp(0.0, x)
    >>> @softplus.vjp("x")
    ... def _(ct, x):  # the names after ct are what is saved
    ...     return ct / (1.0 + np.exp(-x))
    >>> float(pb.grad(softplus)(0.0))
    0.5
    """
    unknown = [name for name in options if name not in Options.__annotations__]
    if unknown:
        raise DeclarationError(f"primitive has no option {unknown[0]!r}; it has {', '.join(Options.__annotations__)}")
    return declaration.primitive(forward, **{"guarded": True, **options})
