"""How autograd makes operators of many arguments out of those of one, and names what it makes."""

from collections.abc import Callable
from functools import wraps as wraps_as_python
from typing import Any

from pullback_autograd.differential_operators import of_one


def get_name(f: Any) -> str:
    """The name of a function."""
    return str(getattr(f, "__name__", "[unknown name]"))


def get_doc(f: Any) -> str:
    """The docstring of a function."""
    return str(getattr(f, "__doc__", ""))


def wraps(
    fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **kwargs: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that names a function after ``fun``."""

    def named(f: Callable[..., Any]) -> Callable[..., Any]:
        f.__name__ = namestr.format(fun=get_name(fun), **kwargs)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **kwargs)
        return f

    return named


def wrap_nary_f(fun: Any, op: Any, argnum: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that names what the operator ``op`` makes of ``fun``."""
    name = f"{get_name(op)}_of_{get_name(fun)}_wrt_argnum_{argnum}".replace("{", "").replace("}", "")
    return wraps(fun, name, f"{get_name(op)} of function {{fun}} with respect to argument number {argnum}.")


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """``operator(f, x, ...)``, of a function of one argument, as ``operator(fun, argnum, ...)(*args)``."""

    @wraps_as_python(unary_operator)
    def nary_operator(fun: Any, argnum: Any = 0, *more: Any, **options: Any) -> Callable[..., Any]:
        @wrap_nary_f(fun, unary_operator, argnum)
        def nary_f(*args: Any, **kwargs: Any) -> Any:
            f, x = of_one(fun, argnum, args, kwargs)
            return unary_operator(f, x, *more, **options)

        return nary_f

    return nary_operator


__all__ = ["get_doc", "get_name", "unary_to_nary", "wrap_nary_f", "wraps"]
