"""Every declaration of a plugin, checked on operands that are drawn for it."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from pullback.commands.command_line_inputs import load_module
from pullback.rules.declaration import Composite, Primitive
from pullback.testing.gradients.grad_check import check_grads
from pullback.testing.primitives.primitive_check import check_primitive
from pullback.words.errors import CheckError, InputFileError
from pullback.words.structures import flatten

SHAPES = (4,), (3, 3), (), (2, 3, 3)
"""Shapes of the operands, in the order in which they are tried."""
MOST_OPERANDS = 2
"""The most operands of a function whose signature does not tell how many arrays it takes."""
Result = tuple[str, str, str]


def declarations_of(target: str) -> list[Primitive | Composite]:
    """The primitives and composites that a module or a file holds at its top level, or hands over as ``PRIMITIVES``."""
    if target.endswith(".py"):
        module = load_module(target)
    else:
        try:
            module = importlib.import_module(target)
        except ImportError as error:
            raise InputFileError(
                f"{target} cannot be imported: {error}; name a module that is installed, or a file"
            ) from error
    held = [*vars(module).values(), *getattr(module, "PRIMITIVES", ())]
    found = list(dict.fromkeys(value for value in held if isinstance(value, Primitive | Composite)))
    if not found:
        raise InputFileError(f"{target} holds no primitive at its top level; name the module that declares them")
    return found


def check_each(declarations: list[Primitive | Composite]) -> list[Result]:
    """(name, ``right``, ``wrong`` or ``not checked``, the text) of each: a primitive by its declaration, a composite
    by its gradients of two orders."""
    return [checked(declared.name, *_plan(declared)) for declared in declarations]


def checked(name: str, runs: Callable[..., Any], check: Callable[..., None], counts: range) -> Result:
    """``check`` on the first operands that ``runs`` takes."""
    refused = "it takes no operands of the shapes that are tried"
    for operands in _operands(counts):
        try:
            with np.errstate(all="ignore"):
                result = runs(*operands)
        except Exception as error:  # noqa: BLE001  it may refuse operands in its own way
            refused = f"{type(error).__name__}: {error}"
            continue
        if isinstance(result, tuple) or np.asarray(result).dtype.kind in "fc":
            try:
                with np.errstate(all="ignore"):
                    if _reads_a_triangle(runs, operands, result):
                        check_grads(lambda *xs: runs(*(x + x.mT for x in xs)), operands, order=2)
                    else:
                        check(*operands)
            except CheckError as error:
                return name, "wrong", str(error)
            return name, "right", ""
    return name, "not checked", f"{name}: {refused}; call pullback.testing with operands and parameters of yours"


def _reads_a_triangle(runs: Callable[..., Any], operands: tuple[Any, ...], result: Any) -> bool:
    """Whether a function of square matrices reads one triangle of each: it stands for symmetric ones, and its gradient
    is that along them."""
    if any(np.ndim(x) < 2 or x.shape[-1] != x.shape[-2] for x in operands):
        return False
    for triangle, other in ((np.tril, -1), (np.triu, 1)):
        of_one = runs(*(triangle(x) + triangle(x, other).mT for x in operands))
        if np.all([np.array_equal(a, b) for a, b in zip(flatten(of_one)[0], flatten(result)[0], strict=True)]):
            return True
    return False


def _plan(declared: Primitive | Composite) -> tuple[Callable[..., Any], Callable[..., None], range]:
    """What must run, what is checked, and how many operands are tried."""
    if isinstance(declared, Primitive):
        n = len(declared.operands) or MOST_OPERANDS
        return (
            lambda *xs: declared(*xs, **declared.defaults),
            lambda *xs: check_primitive(declared, *xs),
            range(n, n + 1),
        )
    function = declared.serves[0] if declared.serves else declared.function
    return function, lambda *xs: check_grads(function, xs, order=2), range(1, MOST_OPERANDS + 1)


def _operands(counts: range) -> Iterator[tuple[Any, ...]]:
    """Well-behaved numbers between 0.2 and 1, all of one shape; matrices are far from singular."""
    rng = np.random.default_rng(0)
    for count in counts:
        for shape in SHAPES:
            one = 2.0 * np.eye(3) if shape[-2:] == (3, 3) else 0.0
            yield tuple(rng.uniform(0.2, 1.0, shape) + one for _ in range(count))
