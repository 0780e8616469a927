"""The naive reference that judges: a list of nodes on immutable arrays, three kinds of them, nothing shared with the
library.

Every operation is one of: *elementwise* (operands broadcast first; derivative from :data:`RULES`), a *gather* (any
function that only moves elements: it is run once more on element numbers, and its adjoint is ``np.add.at``), a *sum*.
Everything is float64 or complex128 in the reverse pass, and each gradient comes with a scale: the same sweep on
absolute values, which bounds the rounding of any right answer. Complex: df/dx - i df/dy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import define


@define(eq=False)
class Node:
    """An immutable value; ``parents`` are (node, g -> cotangent of the node, |g| -> bound)."""

    array: Any
    parents: tuple[Any, ...] = ()


def _half(a, b, larger):
    return np.where(a == b, 0.5, np.where(larger(a, b), 1.0, 0.0))


RULES: dict[str, tuple[Callable[..., Any], tuple[Callable[..., Any], ...]]] = {
    "add": (np.add, (lambda g, a, b: g, lambda g, a, b: g)),
    "subtract": (np.subtract, (lambda g, a, b: g, lambda g, a, b: -g)),
    "multiply": (np.multiply, (lambda g, a, b: g * b, lambda g, a, b: g * a)),
    "divide": (np.divide, (lambda g, a, b: g / b, lambda g, a, b: -g * a / b**2)),
    "maximum": (np.maximum, (lambda g, a, b: g * _half(a, b, np.greater), lambda g, a, b: g * _half(b, a, np.greater))),
    "minimum": (np.minimum, (lambda g, a, b: g * _half(a, b, np.less), lambda g, a, b: g * _half(b, a, np.less))),
    "sin": (np.sin, (lambda g, a: g * np.cos(a),)),
    "cos": (np.cos, (lambda g, a: -g * np.sin(a),)),
    "tanh": (np.tanh, (lambda g, a: g / np.cosh(a) ** 2,)),
    "exp": (np.exp, (lambda g, a: g * np.exp(a),)),
    "log": (np.log, (lambda g, a: g / a,)),
    "sqrt": (np.sqrt, (lambda g, a: g / (2 * a**0.5),)),
    "square": (np.square, (lambda g, a: g * 2 * a,)),
    "negative": (np.negative, (lambda g, a: -g,)),
    "absolute": (np.absolute, (lambda g, a: g * np.conj(a) / np.abs(a),)),
    "conjugate": (np.conjugate, (lambda g, a: np.conj(g),)),
    "real": (np.real, (lambda g, a: g,)),
    "imag": (np.imag, (lambda g, a: -1j * g if np.iscomplexobj(a) else 0 * g,)),
    "sign": (np.sign, (lambda g, a: 0 * g,)),
    "cube": (lambda a: a**3, (lambda g, a: g * 3 * a**2,)),
}


def elementwise(name: str, *nodes: Node) -> Node:
    """The ufunc ``name`` on broadcast operands."""
    f, partials = RULES[name]
    out = f(*(n.array for n in nodes))
    spread = [gather(lambda a: np.broadcast_to(a, np.shape(out)), n) for n in nodes]
    wide = [_wide(n.array) for n in spread]

    def pull_for(d):  # a derivative below 1 may be a difference of larger numbers, as 1 - tanh(a)**2 is
        return lambda g: d(g, *wide), lambda s: s * np.maximum(np.abs(d(np.ones(np.shape(out)), *wide)), 1.0)

    return Node(out, tuple((n, *pull_for(d)) for n, d in zip(spread, partials, strict=True)))


def gather(f: Callable[..., Any], *nodes: Node) -> Node:
    """``f`` moves elements: ``f(arrays)`` picks from their concatenation, by numbers found by running ``f`` on
    numbers."""
    sizes = [np.size(n.array) for n in nodes]
    starts = np.cumsum([0, *sizes])
    numbers = f(
        *(np.arange(k, k + m).reshape(np.shape(n.array)) for k, m, n in zip(starts, sizes, nodes, strict=False))
    )

    def scatter(start, size, shape):
        def pull(g):
            flat = np.zeros(starts[-1], np.result_type(g, float))
            np.add.at(flat, np.ravel(numbers), np.ravel(g))
            return flat[start : start + size].reshape(shape)

        return pull, pull

    pulls = [scatter(k, m, np.shape(n.array)) for k, m, n in zip(starts, sizes, nodes, strict=False)]
    return Node(f(*(n.array for n in nodes)), tuple((n, *p) for n, p in zip(nodes, pulls, strict=True)))


def total(f: Callable[..., Any], node: Node, axis: Any, divisor: float = 1.0) -> Node:
    """``f`` is ``np.sum`` or ``np.mean`` along ``axis``."""
    shape = np.shape(node.array)

    def pull(g):
        lost = range(len(shape)) if axis is None else [a % len(shape) for a in np.atleast_1d(axis)]
        kept = np.reshape(g, [1 if k in lost else n for k, n in enumerate(shape)])
        return np.broadcast_to(kept, shape) / divisor

    return Node(f(node.array), ((node, pull, pull),))


def gradients(out: Node, inputs: list[Node]) -> list[tuple[Any, Any]]:
    """For the scalar ``out.array.real``: the gradient and its scale for every input."""
    order, seen, stack = [], set(), [(out, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            stack += [(node, True), *((p, False) for p, _, _ in node.parents)]
    cts = {id(out): (np.ones(()), np.ones(()))}
    for node in reversed(order):
        for parent, pull, bound in node.parents if id(node) in cts else ():
            g, scale = pull(cts[id(node)][0]), bound(cts[id(node)][1])
            g = g if np.iscomplexobj(parent.array) else np.real(g)
            g0, s0 = cts.get(id(parent), (0.0, 0.0))
            cts[id(parent)] = (g0 + g, s0 + np.abs(scale))
    zero = [np.zeros(np.shape(n.array)) for n in inputs]
    return [cts.get(id(n), (z, z)) for n, z in zip(inputs, zero, strict=True)]


def complex_step(f: Callable[[Any], Any], x: Any) -> Any:
    """The gradient of an analytic real scalar ``f`` at a float64 array, to rounding: Im f(x + ih) / h with h =
    1e-30."""
    gradient = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1e-30j
        gradient[place] = np.imag(f(moved)) / 1e-30
    return gradient


def _wide(array: Any) -> Any:
    return np.asarray(array).astype(np.result_type(np.asarray(array).dtype, float))
