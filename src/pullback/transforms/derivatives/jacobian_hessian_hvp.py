"""``jacobian`` and ``hessian``, the dense matrices, and ``hvp`` and ``gauss_newton_product``, products without them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pullback.policies.base import PolicyOrAuto
from pullback.transforms.derivatives.argnums import chosen, name_of
from pullback.transforms.derivatives.called_again import product_by_caller, product_called
from pullback.transforms.derivatives.forward import jvp, one_for_each
from pullback.transforms.derivatives.jacobian_rows_and_columns import KnownColumns, Task, same_again
from pullback.transforms.derivatives.reverse import grad, vjp
from pullback.transforms.derivatives.seed_checks import conjugate
from pullback.travelling.made_functions import made
from pullback.words.byte_sizes import as_bytes
from pullback.words.call_sites import public
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.structures import map_leaves

MODES = ("auto", "forward", "reverse")


def jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    mode: str = "auto",
    chunk: int | str | None = None,
    policy: PolicyOrAuto = None,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``f`` (``(jacobian, aux)`` with ``has_aux``).

    Parameters
    ----------
    f
        Returns an array or a structure of arrays.
    argnums, argnames
        The argument, or several: as in :func:`value_and_grad`.
    mode
        ``"reverse"``: a pull for each row, that is each output element; ``f`` runs once, under ``policy``.
        ``"forward"``: a run of ``f`` for each column, that is each input element; nothing is held. ``"auto"``: forward
        where there are more than 1.5 times as many rows as columns.
    chunk
        Bytes, or text (``"200 MB"``): what the result may take, and what the cotangents of rows, or the tangents of
        columns, that are computed together may hold.
    policy
        That of the reverse mode.
    has_aux
        ``f`` returns ``(out, aux)``.
    holomorphic
        ``f`` is a complex function with a complex derivative, which is compared.

    Returns
    -------
    A function of the arguments of ``f``. Its result has the structure of the output, and at each of its leaves the
    structure of the argument (a tuple for several numbers, a dict for several names). Each block has shape ``out.shape
    + argument.shape`` and the dtype that NumPy's promotion gives to both; None where a leaf carries no derivative. A
    row of a real output in a complex argument is df/dx - i df/dy, as that of ``grad``.

    Raises
    ------
    BudgetError
        With the figures, where the result would take more than ``chunk``.
    NotDifferentiableError
        For a complex output of a complex argument unless ``holomorphic``, and with it where ``f`` is not.
    ReplayError
        Where ``f`` gives other values when run again.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.jacobian(lambda x: np.stack([x[0] * x[1], x[1] ** 2]))(np.array([2.0, 3.0]))
    array([[3., 2.],
           [0., 6.]])
    """
    which, limit = chosen(argnums, argnames), None if chunk is None else as_bytes(chunk, "chunk")
    if mode not in MODES:
        raise StructureError(f"mode={mode!r} of jacobian; choose one of {', '.join(map(repr, MODES))}")

    known = KnownColumns() if has_aux or holomorphic else KnownColumns.of(f, "jacobian", which.numbers, which.names)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        task = Task(*which.call(f, args, kwargs), f"Jacobian of {name_of(f)}", limit, has_aux, holomorphic, known)
        blocks, aux = task.by_columns() if mode == "forward" else task.recorded(policy, rows_only=mode == "reverse")
        result = blocks.structured(which)
        return (result, aux) if has_aux else result

    return made(
        "jacobian", f, public(derivative, like=f), argnums=argnums, argnames=argnames, mode=mode, chunk=chunk,
        policy=policy, has_aux=has_aux, holomorphic=holomorphic,
    )  # fmt: skip


def hessian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: PolicyOrAuto = None,
    chunk: int | str | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function that returns the matrix of second derivatives of the real scalar ``f`` (``(hessian, aux)`` with
    ``has_aux``).

    Forward over reverse: for each element of the argument one gradient under ``policy`` with tangents. Exactly
    symmetric: of each pair of elements the mean is taken.

    Parameters
    ----------
    f
        Returns a real scalar, or ``(scalar, aux)`` with ``has_aux``.
    argnums, argnames
        The argument, or several: as in :func:`value_and_grad`.
    policy
        That of the gradients.
    chunk
        As in :func:`jacobian`.
    has_aux
        The result is ``(hessian, aux)``.

    Returns
    -------
    A function of the arguments of ``f``. Its result has the structure of the argument, and at each of its leaves that
    structure again; the block of leaves a and b has shape ``a.shape + b.shape``.

    Raises
    ------
    NotDifferentiableError
        For complex arguments.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.hessian(lambda x: x[0] ** 2 * x[1])(np.array([1.0, 2.0]))
    array([[4., 2.],
           [2., 0.]])
    """
    which, limit = chosen(argnums, argnames), None if chunk is None else as_bytes(chunk, "chunk")

    known = KnownColumns() if has_aux or policy else KnownColumns.of(f, "hessian", which.numbers, which.names)

    def second(*args: Any, **kwargs: Any) -> Any:
        called, args, kwargs, where = which.call(f, args, kwargs)
        gradient = grad(called, where, policy=policy, has_aux=has_aux)
        task = Task(gradient, args, kwargs, where, f"Hessian of {name_of(f)}", limit, has_aux, False, known)
        for spec in task.specs:
            if spec.dtype.kind == "c":
                raise NotDifferentiableError(
                    f"hessian is of real arguments, {name_of(f)} is given {spec}: no one matrix holds the second "
                    "derivatives of a complex one; use hvp, or give the real and the imaginary part as two arguments"
                )
        blocks, aux = task.by_columns()
        blocks.symmetrise()
        result = blocks.of_arguments(
            which, [blocks.of_arguments(which, [block.array() for block in row]) for row in blocks.rows]
        )
        return (result, aux) if has_aux else result

    return made(
        "hessian", f, public(second, like=f), argnums=argnums, argnames=argnames, policy=policy, chunk=chunk,
        has_aux=has_aux,
    )  # fmt: skip


@partial(public, first=[product_by_caller])
def hvp(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    policy: PolicyOrAuto = None,
    has_aux: bool = False,
) -> Any:
    """H t: the derivative of the gradient of the real scalar ``f`` at ``primals`` along ``tangents``.

    Forward over reverse: under ``policy`` its memory is twice that of the gradient, and every policy gives the same
    bits.

    Parameters
    ----------
    f
        Returns a real scalar, or ``(scalar, aux)`` with ``has_aux``.
    primals
        A sequence of its arguments.
    tangents
        As those of :func:`jvp`.
    policy
        That of the gradient (default: the policy in force).
    has_aux
        The result is ``(product, aux)``.

    Returns
    -------
    For one primal the product has its structure; for several it is a tuple of them. Shapes and dtypes are those of the
    primals; None at leaves that carry no derivative.

    Raises
    ------
    StructureError
        For a tangent of another structure, shape or dtype.
    NotDifferentiableError
        As :func:`grad`.

    Source: Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6, 1994.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
    array([6., 0.])
    """
    one_for_each("hvp", primals, tangents)
    if policy is None and not has_aux:
        found = product_called(_product, f, tuple(primals), tuple(tangents))
        if found is not None:
            return found[0] if len(primals) == 1 else tuple(found)
    product, *aux = _product(f, primals, tangents, policy, has_aux=has_aux)
    product = product[0] if len(primals) == 1 else product
    return (product, aux[0]) if has_aux else product


def _product(
    f: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any], policy: Any = None, *, has_aux: bool = False
) -> Any:
    """The product, a tuple with a part for each primal, and then aux."""
    gradient = grad(f, tuple(range(len(primals))), policy=policy, has_aux=has_aux, allow_int=True)
    return jvp(gradient, primals, tangents, has_aux=has_aux)[1:]


@public
def gauss_newton_product(
    f: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    loss: Callable[[Any], Any] | None = None,
    policy: PolicyOrAuto = None,
) -> Any:
    """J' H J t, where J is the Jacobian of ``f`` at ``primals`` and H the Hessian of the real scalar ``loss`` at
    ``f(*primals)``.

    One ``jvp`` and one ``vjp``. It equals :func:`hvp` of ``loss(f(...))`` where ``f`` is linear or the gradient of the
    loss vanishes; for a convex loss J' H J is positive semidefinite.

    Parameters
    ----------
    f
        Returns an array or a structure of arrays.
    primals
        A sequence of its arguments.
    tangents
        As those of :func:`jvp`.
    loss
        Takes the output of ``f``, whatever its structure; without one it is half the sum of squares, and H the
        identity.
    policy
        That of the ``vjp``.

    Returns
    -------
    The product has the structure of ``primals``, as that of :func:`hvp`.

    Raises
    ------
    ReplayError
        Where ``f`` gives other values the second time.
    StructureError
        For a tangent of another structure, shape or dtype.

    Source: Schraudolph, Fast curvature matrix-vector products for second-order gradient descent, Neural Computation 14,
    2002.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> pb.gauss_newton_product(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([1.0, 1.0]),))
    array([ 4., 16.])
    """
    one_for_each("gauss_newton_product", primals, tangents)
    out, out_tangent = jvp(f, primals, tangents)
    ct = map_leaves(conjugate, out_tangent) if loss is None else hvp(loss, (out,), (out_tangent,))
    again, pull = vjp(f, *primals, policy=policy)
    same_again(f, out, again)
    cts = pull(ct)
    pull.close()
    return cts[0] if len(primals) == 1 else cts
