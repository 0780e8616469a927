"""The shape and the dtype of what NumPy's functions give for arrays without values.

A ufunc tells its dtypes itself, and its shapes by broadcasting or by its signature. A function that only moves elements
about is called on elements without bytes. One that NumPy has written in Python is run: what it calls comes here again.
The others have a line in a table, or are refused.
"""

import re
from collections.abc import Sequence
from types import FunctionType
from typing import Any, Final

import numpy as np

from pullback.shapes_only.hollow_rules import BY_VALUE, MOVES, RULES, reduced
from pullback.shapes_only.hollow_shapes import HollowResult, Shape, is_hollow, nothing_of, refuse
from pullback.words.structures import flatten

FOLDS: Final = frozenset((
    np.add, np.multiply, np.maximum, np.minimum, np.fmax, np.fmin, np.logical_and, np.logical_or, np.logaddexp,
))  # fmt: skip
"""The ufuncs whose methods NumPy carries out immediately."""
ZERO_AT_ZERO: Final = frozenset((
    np.add, np.subtract, np.positive, np.absolute, np.sqrt, np.square, np.sin, np.tan, np.tanh, np.sinh, np.expm1,
    np.log1p, np.arctan, np.maximum, np.minimum, np.conjugate,
))  # fmt: skip
"""What is zeros for zeros: of what stays so a replay needs no copy."""


def of_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a ufunc, or a method of one, gives."""
    if method == "at":
        return None
    out = kwargs.get("out")
    if method == "__call__":
        shapes, numbers = _shapes_of(ufunc, [np.shape(x) for x in inputs], kwargs), all(not np.ndim(x) for x in inputs)
        made = [(shape, kind, numbers) for shape, kind in zip(shapes, _dtypes_of(ufunc, inputs, kwargs), strict=True)]
    elif method == "outer":
        shape = (*np.shape(inputs[0]), *np.shape(inputs[1]))
        made = [(shape, kind, not shape) for kind in _dtypes_of(ufunc, inputs, kwargs)]
    else:
        made = [_along(ufunc, method, inputs, kwargs)]
    given = out if isinstance(out, tuple) else (out,) * len(made)
    like = next((x for x in inputs if isinstance(x, np.ndarray) and made and x.shape == made[0][0]), None)
    blank = [is_hollow(x) and x.is_blank for x in inputs]
    stays = method == "__call__" and (any(blank) if ufunc is np.multiply else ufunc in ZERO_AT_ZERO and all(blank))
    target: Any
    for target in given:
        if is_hollow(target):
            target.mark_blank(stays and target.is_blank)
    results = [
        HollowResult(shape, kind, number, like, stays) if target is None else target
        for (shape, kind, number), target in zip(made, given, strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def _dtypes_of(ufunc: np.ufunc, inputs: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[np.dtype[Any]]:
    kinds: list[Any] = [
        type(x) if type(x) in (int, float, complex) else np.asarray(x).dtype if isinstance(x, list | tuple) else
        getattr(x, "dtype", None) or np.dtype(type(x))
        for x in inputs
    ]  # fmt: skip
    out = kwargs.get("out") or ()
    targets = [None if x is None else x.dtype for x in (out if isinstance(out, tuple) else (out,))]
    targets += [None] * (ufunc.nout - len(targets))
    wanted = kwargs.get("dtype")
    how: dict[str, Any] = {"casting": kwargs.get("casting", "same_kind")}
    if wanted is not None:
        how["signature"] = (*(None,) * ufunc.nin, *(np.dtype(wanted),) * ufunc.nout)
    return ufunc.resolve_dtypes((*kinds, *targets), **how)[ufunc.nin :]


def _shapes_of(ufunc: np.ufunc, shapes: list[Shape], kwargs: dict[str, Any]) -> list[Shape]:
    """The shape of each output."""
    if ufunc.signature is None:
        return [np.broadcast_shapes(*shapes)] * ufunc.nout
    if any(kwargs.get(name) is not None for name in ("axes", "axis")):
        refuse(f"numpy.{ufunc.__name__}(axis=)")
    ins, outs = (re.findall(r"\(([^)]*)\)", side) for side in ufunc.signature.split("->"))
    sizes: dict[str, int] = {}
    dropped: set[str] = set()
    loops = []
    for shape, text in zip(shapes, ins, strict=True):
        names = [name for name in text.split(",") if name]
        if len(shape) < len(names):
            dropped.update(name for name in names if name.endswith("?"))
            names = [name for name in names if name not in dropped]
        if len(shape) < len(names):
            raise ValueError(f"{ufunc.__name__}: an operand of shape {shape} has too few axes for {ufunc.signature}")
        split = len(shape) - len(names)
        loops.append(shape[:split])
        for name, extent in zip(names, shape[split:], strict=True):
            if sizes.setdefault(name, extent) != extent:
                raise ValueError(f"{ufunc.__name__}: shapes {shapes} do not fit: {extent} is not {sizes[name]}")
    around = np.broadcast_shapes(*loops)
    return [
        (*around, *(sizes.get(name, 0) for name in text.split(",") if name and name not in dropped)) for text in outs
    ]


def _along(ufunc: np.ufunc, method: str, inputs: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Shape, Any, bool]:
    """What ``reduce``, ``accumulate`` and ``reduceat`` give: the dtype is that of a call on one element."""
    if ufunc not in FOLDS:
        refuse(f"numpy.{ufunc.__name__}.{method}")
    x = inputs[0]
    rest = dict(zip(("axis", "dtype"), inputs[1 + (method == "reduceat") :], strict=False)) | kwargs
    axis, kept = rest.get("axis", 0), bool(rest.get("keepdims", False))
    one = np.ones((1,) * max(1, x.ndim), x.dtype)
    kind = getattr(ufunc, "accumulate" if method != "reduce" else "reduce")(one, axis=0, dtype=rest.get("dtype")).dtype
    if method == "reduce":
        shape = reduced(x.shape, axis, kept=kept)
        return shape, kind, not shape
    if method == "reduceat":
        place = axis % x.ndim
        return (*x.shape[:place], len(inputs[1]), *x.shape[place + 1 :]), kind, False
    return x.shape, kind, False


def of_function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function of NumPy gives."""
    rule = RULES.get(func)
    if rule is not None:
        return rule(*args, **kwargs)
    if func in MOVES:
        return _moved(func, args, kwargs)
    implementation = getattr(func, "_implementation", None)
    where = str(getattr(func, "__module__", ""))
    if not isinstance(implementation, FunctionType) or where in ("numpy.linalg", "numpy.fft") or func in BY_VALUE:
        refuse(f"what {where}.{func.__name__} gives")
    return implementation(*args, **kwargs)


def _moved(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a function gives that moves elements about: it is called on elements without bytes."""
    leaves = [leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, np.ndarray | np.generic)]
    kinds = [leaf.dtype for leaf in leaves if is_hollow(leaf) or leaf.dtype.kind in "fc"]
    kind = np.result_type(*kinds)

    def emptied(x: Any) -> Any:
        if isinstance(x, list | tuple):
            return type(x)(map(emptied, x)) if any(isinstance(part, np.ndarray) for part in flatten(x)[0]) else x
        is_moved = is_hollow(x) or (isinstance(x, np.ndarray) and x.dtype.kind in "fc")
        return nothing_of(x) if is_moved else x

    try:
        found = func(*map(emptied, args), **{name: emptied(x) for name, x in kwargs.items() if name != "dtype"})
    except TypeError:
        refuse(f"what numpy.{func.__name__} gives")
    if isinstance(found, list | tuple):
        return type(found)([HollowResult(part.shape, kind) for part in found])
    return HollowResult(found.shape, kwargs.get("dtype") or kind)
