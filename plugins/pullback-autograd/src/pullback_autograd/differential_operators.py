"""autograd's operators on ``grad`` and ``vjp``: each takes ``(fun, argnum)`` and returns a function of fun's own
arguments.

``argnum`` is a position, or a sequence of positions; for a sequence the result is a tuple. Rows of Jacobians are pulls
of one reverse pass each, products with tangents are pulls of pulls: the pull is linear in its cotangent, so its own
pull is the Jacobian times a tangent.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

import pullback as pb
from pullback import checkpoint
from pullback_autograd.misc.flatten import leaves_of
from pullback_autograd.misc.packed import carries_derivative


def of_argument(operator: Callable[..., Any]) -> Callable[..., Any]:
    """``operator(f, x, ...)``, of a function of one argument, as ``operator(fun, argnum, ...)(*args)``."""

    @wraps(operator)
    def build(fun: Callable[..., Any], argnum: Any = 0, *more: Any, **options: Any) -> Callable[..., Any]:
        def derived(*args: Any, **kwargs: Any) -> Any:
            f, x = of_one(fun, argnum, args, kwargs)
            return operator(f, x, *more, **options)

        name, of = operator.__name__, name_of(fun)
        derived.__name__ = derived.__qualname__ = f"{name}_of_{of}_wrt_argnum_{argnum}"
        derived.__doc__ = f"    {name} of function {of} with respect to argument number {argnum}."
        return derived

    return build


def of_one(fun: Callable[..., Any], argnum: Any, args: tuple[Any, ...], kwargs: Any) -> tuple[Callable[..., Any], Any]:
    """``fun`` as a function of the argument at ``argnum`` (of a tuple, for several), and that argument."""
    several = not isinstance(argnum, int | np.integer)
    places = [number + len(args) if number < 0 else number for number in (argnum if several else (argnum,))]
    for place in places:
        if not 0 <= place < len(args):
            message = (
                f"argnum {argnum} of {name_of(fun)}: the call has {len(args)} positional arguments; pass the "
                "argument by position"
            )
            raise pb.StructureError(message)

    @wraps(fun)
    def f(x: Any) -> Any:
        given = list(args)
        for place, argument in zip(places, x if several else (x,), strict=True):
            given[place] = argument
        return fun(*given, **kwargs)

    return f, tuple(args[place] for place in places) if several else args[places[0]]


def name_of(fun: Any) -> str:
    """What messages call a function."""
    return str(getattr(fun, "__name__", type(fun).__name__))


def _as_scalar(f: Callable[..., Any]) -> Callable[..., Any]:
    """``f`` with its value as ``((), value)``: the first a scalar wherever the value is one number in whatever
    shape."""

    @wraps(f)
    def with_scalar(x: Any) -> tuple[Any, Any]:
        out = f(x)
        if isinstance(out, bool | np.bool):
            message = f"grad needs a scalar of floats, {name_of(f)} returned {type(out).__name__}; return a float"
            raise pb.NotDifferentiableError(message)
        one = isinstance(out, pb.Tracer | np.ndarray) and np.ndim(out) > 0 and np.size(out) == 1
        return np.reshape(out, ()) if one else out, out

    return with_scalar


def pull_of(f: Callable[..., Any], x: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The value of ``f`` at ``x``, and the function from its cotangent to that of ``x``."""
    if not any(map(carries_derivative, leaves_of(x))):
        raise pb.NotDifferentiableError(
            f"{name_of(f)}: the argument has type {type(x).__name__} and carries no derivative; pass floats"
        )
    out, pull = pb.vjp(f, x)
    return out, lambda ct: pull(ct)[0]


def push(f: Callable[..., Any], x: Any, tangent: Any) -> tuple[Any, Any]:
    """The value of ``f`` at ``x`` and its Jacobian times ``tangent``: the pull of the pull."""
    out, pull = pull_of(f, x)
    if not any(map(carries_derivative, leaves_of(out))):
        raise pb.NotDifferentiableError(f"{name_of(f)} returned {type(out).__name__}, which carries no derivative")
    _, pull_again = pull_of(pull, pb.map_leaves(np.zeros_like, out))
    return out, pull_again(tangent)


# ------------------------------------------------------------------------------------------------------------ gradients
def gradient_of(f: Callable[..., Any]) -> Callable[[Any], Any]:
    """The gradient of a function of one argument."""
    return lambda x: pb.grad(_as_scalar(f), has_aux=True)(x)[0]


@of_argument
def grad(f: Any, x: Any) -> Any:
    """The gradient of a real function of one number, in whatever shape; for a complex argument df/dx - i df/dy."""
    return gradient_of(f)(x)


@of_argument
def value_and_grad(f: Any, x: Any) -> Any:
    """``(value, gradient)``."""
    gradient, out = pb.grad(_as_scalar(f), has_aux=True)(x)
    return out, gradient


@of_argument
def grad_and_aux(f: Any, x: Any) -> Any:
    """``(gradient, aux)`` of a function that returns ``(scalar, aux)``."""
    return pb.grad(f, has_aux=True)(x)


@of_argument
def holomorphic_grad(f: Any, x: Any) -> Any:
    """The complex derivative of a holomorphic function with a scalar value."""
    return pb.grad(f, holomorphic=True)(x)


@of_argument
def elementwise_grad(f: Any, x: Any) -> Any:
    """The sum of the rows of the Jacobian: the derivative of each element, where output k depends on input k alone."""
    out, pull = pull_of(f, x)
    if any(np.iscomplexobj(pb.value(leaf)) for leaf in leaves_of(out)):
        raise pb.NotDifferentiableError(
            f"elementwise_grad is for real outputs, {name_of(f)} returned a complex one; use holomorphic_grad"
        )
    return pull(pb.map_leaves(np.ones_like, out))


egrad = elementwise_grad


@of_argument
def deriv(f: Any, x: Any) -> Any:
    """The Jacobian times a tangent of ones."""
    return push(f, x, pb.map_leaves(np.ones_like, x))[1]


def _by_name(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, only: str | None) -> dict[str, Any]:
    """The gradients with respect to the named arguments: all of them, or one."""
    signature = inspect.signature(fun)
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()

    def f(named: dict[str, Any]) -> Any:
        bound.arguments |= named
        return fun(*bound.args, **bound.kwargs)

    gradients: dict[str, Any] = pb.grad(f)({name: x for name, x in bound.arguments.items() if only in {None, name}})
    return gradients


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """The gradient with respect to the argument of that name, passed by position or by name."""
    names = list(inspect.signature(fun).parameters)
    if argname not in names:
        raise pb.StructureError(f"{name_of(fun)} has no argument {argname!r}; its arguments are {names}")

    @wraps(fun)
    def derived(*args: Any, **kwargs: Any) -> Any:
        return _by_name(fun, args, kwargs, argname)[argname]

    return derived


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients with respect to all arguments, by name; ``*args`` is a tuple and ``**kwargs`` a dict among them."""

    @wraps(fun)
    def derived(*args: Any, **kwargs: Any) -> dict[str, Any]:
        return _by_name(fun, args, kwargs, None)

    return derived


# ------------------------------------------------------------------------------------------------------------- products
@of_argument
def make_vjp(f: Any, x: Any) -> Any:
    """``(vjp, value)``: the function from a cotangent to that of the argument, and the value."""
    out, pull = pull_of(f, x)
    return pull, out


@of_argument
def make_jvp(f: Any, x: Any) -> Any:
    """``v -> (value, Jacobian times v)``."""
    return lambda v: push(f, x, v)


@of_argument
def make_jvp_reversemode(f: Any, x: Any) -> Any:
    """``v -> Jacobian times v``."""
    return lambda v: push(f, x, v)[1]


@of_argument
def make_hvp(f: Any, x: Any) -> Any:
    """``(hvp, gradient)``: the function from a tangent to Hessian times tangent, and the gradient."""
    gradient, pull = pull_of(gradient_of(f), x)
    return pull, gradient


def hessian_tensor_product(fun: Callable[..., Any], argnum: Any = 0) -> Callable[..., Any]:
    """A function of fun's arguments and a tangent: the Hessian times the tangent, the Hessian never formed."""

    @wraps(fun)
    def derived(*args: Any, **kwargs: Any) -> Any:
        f, x = of_one(fun, argnum, args[:-1], kwargs)
        return pull_of(gradient_of(f), x)[1](args[-1])  # the Hessian is symmetric

    return derived


def tensor_jacobian_product(fun: Callable[..., Any], argnum: Any = 0) -> Callable[..., Any]:
    """A function of fun's arguments and a cotangent: the cotangent times the Jacobian, the Jacobian never formed.

    A cotangent with fewer axes than the value is contracted with its first ones.
    """

    @wraps(fun)
    def derived(*args: Any, **kwargs: Any) -> Any:
        f, x = of_one(fun, argnum, args[:-1], kwargs)
        out, pull = pull_of(f, x)
        axes = np.ndim(args[-1]) if carries_derivative(out) else 0
        if 0 < axes < np.ndim(out):
            return jacobian(lambda x: np.tensordot(args[-1], f(x), axes))(x)
        return pull(args[-1])

    return derived


hessian_vector_product, vector_jacobian_product = hessian_tensor_product, tensor_jacobian_product


def _half_square(x: Any) -> Any:
    return 0.5 * np.sum(x**2)


def make_ggnvp(f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: Any = 0) -> Callable[..., Any]:
    """``(*args) -> v -> J^T H J v``, with J the Jacobian of ``f`` and H the Hessian of ``g`` at its value:
    generalised Gauss-Newton."""

    @wraps(f)
    def at(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        inner, x = of_one(f, f_argnum, args, kwargs)
        out, pull = pull_of(inner, x)
        _, hvp = pull_of(gradient_of(g), out)
        return lambda v: pull(hvp(push(inner, x, v)[1]))

    return at


# ------------------------------------------------------------------------------------------------------------ Jacobians
@of_argument
def jacobian(f: Any, x: Any) -> Any:
    """The Jacobian, of the output's shape followed by the argument's: one pull per element of the output."""
    out, pull = pull_of(f, x)
    for role, array in (("output", out), ("argument", x)):
        if not carries_derivative(array):
            message = (
                f"jacobian is for arrays of floats, the {role} of {name_of(f)} is a {type(array).__name__}; use "
                "make_vjp for structures"
            )
            raise pb.StructureError(message)
    plain = np.asarray(pb.value(out))
    rows = [pull(_unit(plain, place)) for place in np.ndindex(*plain.shape)]
    whole = np.stack(rows) if rows else np.zeros(0, np.asarray(pb.value(x)).dtype)
    return whole.reshape(plain.shape + np.shape(x))


def _unit(like: Any, place: tuple[int, ...]) -> Any:
    """The array with a one at ``place``."""
    unit = np.zeros_like(like)
    unit[place] = 1
    return unit


def hessian(fun: Callable[..., Any], argnum: Any = 0) -> Callable[..., Any]:
    """The Jacobian of the Jacobian."""
    derived: Callable[..., Any] = jacobian(jacobian(fun, argnum), argnum)
    return derived


__all__ = [
    "checkpoint", "deriv", "egrad", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "jacobian", "make_ggnvp", "make_hvp",
    "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "tensor_jacobian_product", "value_and_grad",
    "vector_jacobian_product",
]  # fmt: skip
