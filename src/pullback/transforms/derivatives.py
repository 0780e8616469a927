"""What is built from forward and reverse mode: ``jacobian``, ``hessian``, ``hvp``, ``gauss_newton_product``,
``elementwise_grad``."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pullback.recording.handles import value
from pullback.transforms.arguments import chosen
from pullback.transforms.forward import jvp, one_for_each
from pullback.transforms.jacobians import Task, name_of, same_again
from pullback.transforms.reverse import grad, vjp
from pullback.transforms.seeds import conjugate
from pullback.words.byte_sizes import as_bytes
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import map_leaves

MODES = ("auto", "forward", "reverse")
LEVELS = 42


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    mode: str = "auto",
    chunk: int | str | None = None,
    policy: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``f`` (``(jacobian, aux)`` with ``has_aux``).

    It has the structure of the output, and at each of its leaves the structure of the argument (a tuple for several
    numbers, a dict for several names). Each block has shape ``out.shape + argument.shape`` and the dtype that NumPy's
    promotion gives to both; None where a leaf carries no derivative. ``mode`` is ``"reverse"`` (a pull for each row,
    that is each output element; ``f`` run once, under ``policy``), ``"forward"`` (a run of ``f`` for each column, that
    is each input element; nothing is held) or ``"auto"``: forward where there are more than 1.5 times as many rows as
    columns. ``chunk``, in bytes or as text (``"200 MB"``), is what the result may take, and what the cotangents of rows
    that share the re-runs of a policy may hold.

    Raises :class:`BudgetError` with the figures where it would take more; :class:`NotDifferentiableError` for a complex
    output of a complex argument unless ``holomorphic``, and with it where ``f`` is not; :class:`ReplayError` where
    ``f`` gives other values when run again. A row of a real output in a complex argument is df/dx - i df/dy, as that of
    ``grad``.
    """
    which, limit = chosen(argnums, argnames), None if chunk is None else as_bytes(chunk, "chunk")
    if mode not in MODES:
        message = f"mode={mode!r} of jacobian; choose one of {', '.join(map(repr, MODES))}"
        raise StructureError(message)

    @wraps(f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        task = Task(*which.call(f, args, kwargs), f"Jacobian of {name_of(f)}", limit, has_aux, holomorphic)
        blocks, aux = task.by_columns() if mode == "forward" else task.recorded(policy, rows_only=mode == "reverse")
        result = blocks.structured(which)
        return (result, aux) if has_aux else result

    return derivative


def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: Any = None,
    chunk: int | str | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function that returns the matrix of second derivatives of the real scalar ``f`` (``(hessian, aux)`` with
    ``has_aux``).

    It has the structure of the argument, and at each of its leaves that structure again; the block of leaves a and b
    has shape ``a.shape + b.shape``. Forward over reverse: for each element of the argument one gradient under
    ``policy`` with tangents. Exactly symmetric: of each pair of elements the mean is taken. ``chunk`` as in
    :func:`jacobian`. Raises :class:`NotDifferentiableError` for complex arguments.
    """
    which, limit = chosen(argnums, argnames), None if chunk is None else as_bytes(chunk, "chunk")

    @wraps(f)
    def second(*args: Any, **kwargs: Any) -> Any:
        called, args, kwargs, where = which.call(f, args, kwargs)
        gradient = grad(called, where, policy=policy, has_aux=has_aux)
        task = Task(gradient, args, kwargs, where, f"Hessian of {name_of(f)}", limit, has_aux, holomorphic=False)
        for spec in task.specs:
            if spec.dtype.kind == "c":
                message = (
                    f"hessian is of real arguments, {name_of(f)} is given {spec}: no one matrix holds the second "
                    "derivatives of a complex one; use hvp, or give the real and the imaginary part as two arguments"
                )
                raise NotDifferentiableError(message)
        blocks, aux = task.by_columns()
        blocks.symmetrise()
        result = blocks.of_arguments(
            which, [blocks.of_arguments(which, [block.array() for block in row]) for row in blocks.rows]
        )
        return (result, aux) if has_aux else result

    return second


def hvp(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], *, policy: Any = None, has_aux: bool = False
) -> Any:
    """H t: the derivative of the gradient of the real scalar ``f`` at ``primals`` along ``tangents``.

    For one primal the product has its structure; for several it is a tuple of them; with ``has_aux`` it is
    ``(product, aux)``. Shapes and dtypes are those of the primals; None at leaves that carry no derivative. Tangents as
    those of ``jvp``. Forward over reverse: under ``policy`` its memory is twice that of the gradient, and every policy
    gives the same bits (Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6, 1994).
    """
    one_for_each("hvp", primals, tangents)
    gradient = grad(f, tuple(range(len(primals))), policy=policy, has_aux=has_aux, allow_int=True)
    _, product, *aux = jvp(gradient, primals, tangents, has_aux=has_aux)
    product = product[0] if len(primals) == 1 else product
    return (product, aux[0]) if has_aux else product


def gauss_newton_product(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    loss: Callable[[Any], Any] | None = None,
    policy: Any = None,
) -> Any:
    """J' H J t, where J is the Jacobian of ``f`` at ``primals`` and H the Hessian of the real scalar ``loss`` at
    ``f(*primals)``.

    ``loss`` takes the output of ``f``, whatever its structure; without one it is half the sum of squares, and H the
    identity. The product has the structure of ``primals``, as that of :func:`hvp` of ``loss(f(...))``, which it equals
    where ``f`` is linear or the gradient of the loss vanishes; for a convex loss J' H J is positive semidefinite. One
    ``jvp`` and one ``vjp``, the latter under ``policy`` (Schraudolph, Fast curvature matrix-vector products for
    second-order gradient descent, Neural Computation 14, 2002). Raises :class:`ReplayError` where ``f`` gives other
    values the second time.
    """
    one_for_each("gauss_newton_product", primals, tangents)
    out, sent = jvp(f, primals, tangents)
    ct = map_leaves(conjugate, sent) if loss is None else hvp(loss, (out,), (sent,))
    again, pull = vjp(f, *primals, policy=policy)
    same_again(f, out, again)
    cts = pull(ct)
    pull.close()
    return cts[0] if len(primals) == 1 else cts


def elementwise_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: Any = None,
) -> Callable[..., Any]:
    """A function that returns the derivative of each element of the output of ``f`` in the element of the argument that
    it is made of.

    The argument and the output are arrays; the result has the shape of the output, to which a smaller argument is
    broadcast first, and the dtype of the argument (a tuple for several numbers, a dict for several names). It is the
    pull of ones. Raises :class:`NotDifferentiableError` where ``f`` is not elementwise: where the output has no shape
    to which the argument can be broadcast, and where an element of it depends on others, which a second pull, of
    weights, tells; and for a complex output.
    """
    which = chosen(argnums, argnames)

    @wraps(f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        called, args, kwargs, where = which.call(f, args, kwargs)
        for k in where:
            if not carries_derivative(args[k]):
                given = spec_of(args[k]) if isinstance(args[k], np.ndarray | int) else type(args[k]).__name__
                message = (
                    f"argument {k} of {name_of(f)} is {given}; elementwise_grad is for floating arrays, convert "
                    "it or take jacobian"
                )
                raise NotDifferentiableError(message)
        out, pull = _pull_at(called, args, kwargs, where, policy)
        shape = np.shape(out)
        if any(np.shape(args[k]) != shape for k in where):
            pull.close()
            args = tuple(_as_large(called, a, shape) if k in where else a for k, a in enumerate(args))
            out, pull = _pull_at(called, args, kwargs, where, policy)
        dtype = getattr(out, "dtype", np.dtype(float))
        if np.shape(out) != shape or dtype.kind != "f":
            given = f"{dtype}{list(np.shape(out))} for arguments of shape {shape}"
            message = f"elementwise_grad is for real elementwise functions, {name_of(f)} gave {given}; use jacobian"
            raise NotDifferentiableError(message)
        slopes = pull(np.ones(shape, dtype))
        weights = _weights(shape, dtype)
        for k, slope, weighted in zip(where, slopes, pull(weights), strict=True):
            _require_diagonal(f, k, weights, value(slope), value(weighted))
        pull.close()
        return which.structured(slopes)

    return derivative


def _pull_at(f: Any, args: tuple[Any, ...], kwargs: Any, where: Sequence[int], policy: Any) -> tuple[Any, Any]:
    """The output and the pull of a function of the chosen arguments alone."""

    def chosen_only(*values: Any) -> Any:
        given = dict(zip(where, values, strict=True))
        return f(*(given.get(k, a) for k, a in enumerate(args)), **kwargs)

    out, pull = vjp(chosen_only, *(args[k] for k in where), policy=policy)
    if not hasattr(out, "shape") and not isinstance(out, float):
        message = (
            f"elementwise_grad is for functions that return an array, {name_of(f)} returned "
            f"{type(out).__name__}; use jacobian"
        )
        raise NotDifferentiableError(message)
    return out, pull


def _as_large(f: Any, array: Any, shape: tuple[int, ...]) -> Any:
    """An array broadcast to a shape."""
    try:
        return np.broadcast_to(array, shape).copy()
    except ValueError:
        message = (
            f"{name_of(f)} is not elementwise: it made an output of shape {shape} of an argument of shape "
            f"{np.shape(array)}, which cannot be broadcast to it; use jacobian, or vjp with the cotangent that you mean"
        )
        raise NotDifferentiableError(message) from None


def _weights(shape: tuple[int, ...], dtype: Any) -> Any:
    """Signed powers of two, any 42 neighbours all different: products and sums scaled by one have the same digits."""
    size = int(np.prod(shape, dtype=np.intp))
    rounds = np.tile(np.arange(LEVELS), (-(-size // LEVELS), 1))
    level = np.random.default_rng(0).permuted(rounds, axis=1).ravel()[:size]
    return (np.where(level % 2, -1.0, 1.0) * 2.0 ** (level // 2 - LEVELS // 4)).reshape(shape).astype(dtype)


def _require_diagonal(f: Any, number: int, weights: Any, slope: Any, weighted: Any) -> None:
    """Raise :class:`NotDifferentiableError` unless the cotangent of each element is its own weight times its slope."""
    with np.errstate(all="ignore"):
        expected = weights * slope
        gap = np.abs(weighted - expected)
        allowed = 1e-6 * np.abs(expected) + 2.0**12 * float(np.finfo(slope.dtype).smallest_subnormal)
        wrong = np.argwhere(np.isfinite(gap) & (gap > allowed))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        message = (
            f"{name_of(f)} is not elementwise: element {place} of argument {number} reaches other elements of the "
            "output than its own; use jacobian, or vjp with the cotangent that you mean"
        )
        raise NotDifferentiableError(message)
