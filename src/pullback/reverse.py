"""Reverse-mode transforms: ``grad``, ``value_and_grad``, ``vjp``. They compose the floors below and add no rule of their own."""

import sys
import time
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from pullback.arrays import spec_of
from pullback.chains import PlainChain
from pullback.context import policy_in_force, watchers
from pullback.errors import NotDifferentiableError, StructureError, TracerError
from pullback.forms import release_records
from pullback.handles import Handle
from pullback.ledger import Ledger, Report
from pullback.policies.save_all import SaveAll
from pullback.sentinels import trapped
from pullback.structures import flatten, map_leaves, matched, unflatten
from pullback.sweep import Sweep, innermost_of, sweep
from pullback.tape import site_text
from pullback.trace import Traced, lowered, run_traced
from pullback.tracer import value


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    policy: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that returns ``(f(...), gradient)``.

    ``f`` returns a real scalar (a complex one with ``holomorphic``), or ``(scalar, aux)`` with ``has_aux``; then the result is
    ``((scalar, aux), gradient)``. The gradient has the structure, shapes and dtypes of the argument at ``argnums`` (a tuple for
    several) and shares no memory with anything. ``policy`` says what is kept between forward and reverse; it changes memory
    and time, never a bit of the result. For a complex argument it is df/dx - i df/dy. Raises
    :class:`NotDifferentiableError` for a non-scalar output and for an integer argument unless ``allow_int``.
    """
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    several = not isinstance(argnums, int)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        traced, pull = forward(f, args, kwargs, _positions(numbers, args, f), policy, allow_int=allow_int, repeatable=False)
        out, aux = split_aux(traced.out, has_aux=has_aux)
        seed = scalar_seed(out, f, holomorphic=holomorphic)
        gradients = traced.structured(pull.once([out], [seed], free=True))
        result = lowered(out, traced.tape)
        aux = map_leaves(lambda leaf: lowered(leaf, traced.tape), aux) if has_aux else None
        grads = tuple(gradients) if several else gradients[0]
        return ((result, aux) if has_aux else result), grads

    return gradient


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    policy: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """A function that returns the gradient of ``f`` (``(gradient, aux)`` with ``has_aux``); see :func:`value_and_grad`."""
    both = value_and_grad(f, argnums, policy=policy, has_aux=has_aux, holomorphic=holomorphic, allow_int=allow_int)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        result, grads = both(*args, **kwargs)
        return (grads, result[1]) if has_aux else grads

    return gradient


def vjp(f: Callable[..., Any], *primals: Any, policy: Any = None, has_aux: bool = False) -> Any:
    """``(out, pull)``: the value of ``f`` and the function that takes a cotangent of it to the tuple of cotangents of the primals.

    ``pull(ct)`` may be called again; it keeps what that needs until ``pull.close()``. ``pull.report`` says what the reverse
    held. With ``has_aux``, ``f`` returns ``(out, aux)`` and the result is ``(out, pull, aux)``. A cotangent has the structure, shapes
    and dtypes of the output; raises :class:`StructureError` for another structure.
    """
    traced, pull = forward(f, primals, {}, range(len(primals)), policy, allow_int=True, repeatable=True)
    out, aux = split_aux(traced.out, has_aux=has_aux)
    pull.out_leaves, pull.out_definition = flatten(out)
    result = unflatten(pull.out_definition, [lowered(leaf, traced.tape) for leaf in pull.out_leaves])
    if has_aux:
        return result, pull, map_leaves(lambda leaf: lowered(leaf, traced.tape), aux)
    return result, pull


class Pull:
    """What ``vjp`` returns beside the value: a function from a cotangent of the output to the cotangents of the primals."""

    def __init__(self, traced: Traced, chain: Any, ledger: Ledger) -> None:
        self.out_leaves: list[Any] = []
        self.out_definition: Any = None
        self._traced: Traced | None = traced
        self._site = traced.site
        self._chain = chain
        self.ledger = ledger

    def __call__(self, ct: Any) -> tuple[Any, ...]:
        traced = self._open()
        leaves = matched(ct, self.out_definition)
        if leaves is None:
            message = (
                f"the cotangent has structure {flatten(ct)[1]}, the output of the function differentiated at {traced.called_at} has "
                f"{self.out_definition}; give one leaf per output leaf, None where an output is not used"
            )
            raise StructureError(message)
        seeds = [checked_seed(leaf, out, traced) for leaf, out in zip(leaves, self.out_leaves, strict=True)]
        return tuple(traced.structured(self.once(self.out_leaves, seeds, free=False)))

    def once(self, outs: list[Any], seeds: list[Any], *, free: bool) -> list[Any]:
        """One reverse sweep: the cotangent of every input, zeros where the output does not depend on it. ``free`` gives up the tape."""
        traced = self._open()
        traced.require_unchanged()
        began = time.perf_counter()
        tape = traced.tape
        told = watchers()
        plain = self.ledger.plain_bytes(tape) if told else {}  # now: a freed tape holds nothing afterwards
        cts: list[Any] = [None] * len(tape.records)
        run = Sweep(outer=innermost_of(tape.outer, seeds), frees=free)
        for out, seed in zip(outs, seeds, strict=True):
            if seed is not None and isinstance(out, Handle) and out._tape is tape and out._id is not None:
                cts[out._id] = seed if cts[out._id] is None else cts[out._id] + seed
        if free:
            self._traced = None
        if self._chain is None:
            sweep(tape, tape.n_inputs, len(tape.records), cts, run)
        else:
            self._chain.reverse(cts, run)
        self.ledger.elapsed_seconds += time.perf_counter() - began
        for tell in told:
            tell(self.ledger.report(plain))
        return [_given_out(cts, k, given) for k, given in enumerate(traced.inputs)]

    def _open(self) -> Traced:
        if self._traced is None:
            message = f"this pull is closed and holds nothing (of the function differentiated at {site_text(self._site)}); call vjp again"
            raise TracerError(message)
        return self._traced

    @property
    def report(self) -> Report:
        """What was held between forward and reverse, by reason, and what the reverse did."""
        return self.ledger.report(self.ledger.plain_bytes(self._traced.tape if self._traced is not None else None))

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Release everything held for the reverse."""
        if self._traced is not None:
            release_records(self._traced.tape.records)
        self._traced, self.out_leaves = None, []
        if self._chain is not None:
            self._chain.close()
            self._chain = None


def forward(
    f: Any, args: tuple[Any, ...], kwargs: Any, argnums: Sequence[int], policy: Any, *, allow_int: bool, repeatable: bool
) -> tuple[Traced, Pull]:
    """Run ``f`` on tracers under a policy: the finished trace, and the pull that reverses it."""
    ledger = Ledger()
    chosen = policy_in_force(policy)
    saves_all = isinstance(chosen, SaveAll)
    chain = None if saves_all and not trapped() else PlainChain(chosen, ledger, repeatable, marked=saves_all)
    traced = run_traced(f, args, kwargs, argnums, allow_int=allow_int, chain=chain, policy=chosen, ledger=ledger, repeatable=repeatable)
    return traced, Pull(traced, traced.chain, ledger)


def _positions(numbers: Sequence[int], args: tuple[Any, ...], f: Any) -> list[int]:
    positions = []
    for number in numbers:
        position = number + len(args) if number < 0 else number
        if not 0 <= position < len(args):
            message = (
                f"argnums={number} of {getattr(f, '__name__', f)}: the call has {len(args)} positional arguments; "
                f"pass the argument by position"
            )
            raise StructureError(message)
        positions.append(position)
    return positions


def split_aux(out: Any, *, has_aux: bool) -> tuple[Any, Any]:
    """What the function returned, and beside it the aux that it promised."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        message = f"with has_aux=True the function returns (output, aux), got {type(out).__name__}"
        raise StructureError(message)
    return out


def scalar_seed(out: Any, f: Any, *, holomorphic: bool) -> Any:
    """1 in the dtype of a scalar output; raises :class:`NotDifferentiableError` for anything else."""
    name = getattr(f, "__name__", str(f))
    shape = getattr(out, "shape", None if isinstance(out, list | dict | tuple) else ())
    if shape != () or not isinstance(out, Handle | int | float | complex | np.generic | np.ndarray):
        given = f"shape {shape}" if shape else f"{'a ' if isinstance(out, list | dict | tuple) else ''}{type(out).__name__}"
        message = f"grad needs a scalar output, {name} returned {given}; sum it, or use vjp, which takes a cotangent of the output"
        raise NotDifferentiableError(message)
    dtype = np.dtype(getattr(out, "dtype", type(value(out))))
    if dtype.kind == "c" and not holomorphic:
        message = f"{name} returned a complex scalar; take its real part, or pass holomorphic=True if it is holomorphic"
        raise NotDifferentiableError(message)
    if dtype.kind not in "fc" and isinstance(out, Handle):
        message = f"{name} returned dtype {dtype}, which carries no derivative"
        raise NotDifferentiableError(message)
    return dtype.type(1) if dtype.kind in "fc" else None


def checked_seed(leaf: Any, out: Any, traced: Traced) -> Any:
    """A cotangent leaf as an array of the output leaf's shape and dtype, or None; raises :class:`StructureError` for another shape."""
    if leaf is None or not isinstance(out, Handle):
        return leaf
    shape, dtype = spec_of(out).shape, spec_of(out).dtype
    seed: Any = leaf if isinstance(leaf, Handle) else np.array(leaf, dtype=dtype)
    if seed.shape != shape:
        message = f"the cotangent has shape {seed.shape}, the output of the function differentiated at {traced.called_at} has {shape}"
        raise StructureError(message)
    return seed if seed.shape or isinstance(seed, Handle) else seed[()]


def _given_out(cts: list[Any], k: int, given: Any) -> Any:
    """The cotangent of input ``k`` as the user gets it: of the primal's shape and dtype, writable, sharing memory with nothing."""
    ct = cts[k]
    cts[k] = None
    if ct is None:
        zero = np.zeros(given.spec.shape, given.spec.dtype)
        return zero if given.spec.shape else zero[()]
    if type(ct) is np.ndarray and not given.spec.shape:
        return ct[()]
    if type(ct) is np.ndarray:
        alone = ct.base is None and ct.flags.writeable and sys.getrefcount(ct) <= 2
        return ct if alone else ct.copy(order="K")
    return ct
