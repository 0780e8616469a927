"""What programs take from ``autograd.core``: the products for functions of one argument, rules, vector spaces."""

from collections.abc import Callable
from typing import Any

from pullback_autograd.differential_operators import pull_of, push
from pullback_autograd.extend import (
    JVPNode,
    SparseObject,
    VJPNode,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    notrace_primitive,
    primitive,
    register_notrace,
)
from pullback_autograd.tracer import Box, Node, getval, isbox, trace
from pullback_autograd.util import func, subval, subvals, toposort
from pullback_autograd.vector_spaces import VSpace, vspace

primitive_vjps: dict[Any, Any] = {}
"""Empty: rules stand with their functions here. Programs look for entries, or take some away for a while."""


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """``(vjp, value)`` of a function of one argument, at ``x``."""
    out, pull = pull_of(fun, x)
    return pull, out


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], Any]:
    """``v -> (value, Jacobian times v)`` of a function of one argument, at ``x``."""
    return lambda v: push(fun, x, v)


__all__ = [
    "Box", "JVPNode", "Node", "SparseObject", "VJPNode", "VSpace", "def_linear", "defjvp", "defjvp_argnum",
    "defjvp_argnums", "defvjp", "defvjp_argnum", "defvjp_argnums", "func", "getval", "isbox", "make_jvp", "make_vjp",
    "notrace_primitive", "primitive", "primitive_vjps", "register_notrace", "subval", "subvals", "toposort", "trace",
    "vspace",
]  # fmt: skip
