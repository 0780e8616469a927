"""A NumPy function as a function of JAX arrays, which JAX differentiates through pullback's pulls."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, cast

import attrs
import jax
import numpy as np
from jax.custom_derivatives import SymbolicZero

import pullback as pb
from pullback_jax.results import Result, readable, result_of, taken_apart


def to_jax(f: Callable[..., Any], *, policy: Any = None, out: Any = None) -> Callable[..., Any]:
    """``f`` for JAX arrays: ``jax.grad`` goes through pullback's reverse, and ``jax.jit`` calls ``f`` on the host.

    JAX must know shapes and dtypes of the result beforehand. They are found by running ``f`` on shapes alone. Integer
    arrays outside of ``jax.jit`` are known beforehand. Where JAX computes without 64 bits, what ``f`` returns in 64
    bits is rounded to 32.

    Between forward and backward only the arguments are kept, so a backward executes the forward once more: what a
    callback leaves behind is unknown to JAX, which may drop, repeat and move callbacks. Derivatives of derivatives in
    reverse mode work; ``jax.vmap`` calls ``f`` once for each element.

    Parameters
    ----------
    f
        An ordinary NumPy program that pullback can differentiate, without effects: JAX may call it more than once.
    policy
        What is kept within one reverse, as in :func:`pullback.grad`; the gradient has the same bits under each.
    out
        The result's structure with ``jax.ShapeDtypeStruct``, or anything else that has ``shape`` and ``dtype``, in the
        places of arrays: where ``f`` reads values (``pb.value``, a branch).

    Returns
    -------
    A function that takes JAX arrays wherever ``f`` takes arrays, in any structure and by keyword too; anything else in
    the arguments is handed on as it is. It returns the structure that ``f`` returns, with JAX arrays in the places of
    arrays.

    Raises
    ------
    TypeError
        From the call, for an array whose dtype NumPy does not have: bfloat16, keys of ``jax.random``. From JAX, by
        ``jax.jvp`` and ``jax.hessian``, as for every ``jax.custom_vjp``: use ``jax.jacrev(jax.grad(f))``.
    PullbackError
        From the call, where ``f`` reads values and ``out`` is not given.

    Example
    -------
    >>> import jax, numpy as np
    >>> import pullback as pb
    >>> from pullback_jax import to_jax
    >>> layer = to_jax(lambda c: pb.fori_loop(0, 3, lambda k, u: np.sin(u) * c, c), policy=pb.Binomial(2))
    >>> jax.jit(jax.grad(lambda c: layer(c).sum()))(jax.numpy.zeros(2))
    Array([0., 0.], dtype=float32)
    """
    known: dict[Any, Result] = {}

    @wraps(f)
    def bridged(*args: Any, **kwargs: Any) -> Any:
        leaves, joined = taken_apart((args, kwargs))
        leaves = [leaf.copy() if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]  # read again in a backward
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, jax.Array)]
        name = getattr(f, "__name__", "the function")
        arrays = [readable(leaves[k], f"array {n} of {name}") for n, k in enumerate(places)]

        def program(*given: Any) -> Any:
            filled = list(leaves)
            for k, array in zip(places, given, strict=True):
                filled[k] = array
            positional, named = joined(filled)
            return f(*positional, **named)

        result = result_of(program, arrays, out, known, [leaf for k, leaf in enumerate(leaves) if k not in places])
        return result.joined(_node(_Call(program, policy, result))(*arrays))

    return bridged


@attrs.frozen(eq=False)
class _Call:
    """One call of a bridged function: the program of its arrays, and what is known of its result."""

    program: Callable[..., Any]
    policy: Any
    result: Result

    def leaves(self, *arrays: Any) -> list[Any]:
        """The arrays of the program's result."""
        return self.result.leaves(self.program(*arrays))

    def gradient(self, wanted: Sequence[bool]) -> Callable[..., Any]:
        """The gradient as a NumPy program, of the arrays and the cotangents: the answers for the arrays wanted."""

        def gradient(arrays: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
            def of_wanted(*some: Any) -> list[Any]:
                found = iter(some)
                every = (next(found) if is_wanted else a for a, is_wanted in zip(arrays, wanted, strict=True))
                return self.leaves(*every)

            some = [a for a, is_wanted in zip(arrays, wanted, strict=True) if is_wanted]
            _, pull = pb.vjp(of_wanted, *some, policy=self.policy)
            return list(pull(list(cotangents)))

        return gradient


@jax.tree_util.register_static
@attrs.frozen
class _Wanted:
    """Which arrays JAX wants the cotangents of: the part of what a forward leaves that is no array."""

    each: tuple[bool, ...]


def _node(call: _Call) -> Callable[..., Any]:
    """The call as a function of its arrays, with its rule."""

    @jax.custom_vjp
    def node(*arrays: Any) -> list[Any]:
        def computed(*given: Any) -> list[np.ndarray]:
            leaves = call.leaves(*(np.asarray(array) for array in given))
            return [np.asarray(leaf, spec.dtype) for leaf, spec in zip(leaves, call.result.specs, strict=True)]

        return list(jax.pure_callback(computed, list(call.result.specs), *arrays, vmap_method="sequential"))

    def forward(*primals: Any) -> tuple[list[Any], tuple[list[Any], _Wanted]]:
        arrays = [jax.numpy.asarray(primal.value) for primal in primals]  # numbers and NumPy's arrays come wrapped
        wanted = tuple(primal.perturbed and _is_smooth(primal.value) for primal in primals)
        return node(*arrays), (arrays, _Wanted(wanted))

    def backward(left: tuple[list[Any], _Wanted], cotangents: list[Any]) -> tuple[Any, ...]:
        arrays, wanted = left
        given = [
            _zeros_of(spec) if isinstance(ct, SymbolicZero) else ct
            for ct, spec in zip(cotangents, call.result.specs, strict=True)
        ]
        told = [jax.ShapeDtypeStruct(a.shape, a.dtype) for a, w in zip(arrays, wanted.each, strict=True) if w]
        answers = iter(to_jax(call.gradient(wanted.each), policy=call.policy, out=told)(arrays, given))
        return tuple(next(answers) if is_wanted else None for is_wanted in wanted.each)

    node.defvjp(forward, backward, symbolic_zeros=True)
    return cast("Callable[..., Any]", node)


def _is_smooth(leaf: Any) -> bool:
    """Whether the dtype of an array or a spec is one that has derivatives."""
    return bool(jax.numpy.issubdtype(leaf.dtype, jax.numpy.inexact))


def _zeros_of(spec: Any) -> Any:
    """The cotangent of a result that nothing reads; of an integer one it is zeros, too, which pulls do not read."""
    return jax.numpy.zeros(spec.shape, spec.dtype)
