"""A NumPy function as a function of tensors, which torch differentiates through pullback's pulls."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
import torch
from torch.autograd import Function

import pullback as pb
from pullback_torch.arguments import as_tensor, digest, read_only, taken_apart, unshared


def to_torch(f: Callable[..., Any], *, policy: Any = None) -> Callable[..., Any]:
    """``f`` for tensors: a part of torch's graph, whose backward goes through pullback's reverse.

    Where no argument requires a gradient, or under ``torch.no_grad()``, ``f`` is called on plain arrays. Backward may
    run twice (``retain_graph=True``), and be differentiated (``create_graph=True``): then ``f`` is executed again, as a
    part of the function that is differentiated. ``torch.func.grad``, ``jvp`` and ``vmap`` work; ``vmap`` calls ``f``
    once for each element. Gradients of complex tensors are torch's, df/dx + i df/dy.

    Parameters
    ----------
    f
        An ordinary NumPy program that pullback can differentiate. It sees read-only arrays.
    policy
        What is kept between forward and backward, as in :func:`pullback.grad`; the gradient has the same bits under
        each.

    Returns
    -------
    A function that takes CPU tensors wherever ``f`` takes arrays, in any structure and by keyword too, without a copy.
    It returns the structure that ``f`` returns, with tensors in the places of arrays and numbers.

    Raises
    ------
    TypeError
        From the call, for a tensor that NumPy cannot read: on another device, sparse, of bfloat16.
    PullbackError
        From the call or backward, as in any gradient; it names the line of ``f``.

    Example
    -------
    >>> import numpy as np, torch
    >>> import pullback as pb
    >>> from pullback_torch import to_torch
    >>> layer = to_torch(lambda c: pb.fori_loop(0, 3, lambda k, u: np.sin(u) * c, c), policy=pb.Binomial(2))
    >>> c = torch.zeros(2, requires_grad=True)
    >>> layer(c).sum().backward()
    >>> c.grad
    tensor([0., 0.])
    """

    @wraps(f)
    def bridged(*args: Any, **kwargs: Any) -> Any:
        leaves, joined = taken_apart((args, kwargs))
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        tensors = [leaves[k] for k in places]

        def program(*arrays: Any) -> Any:
            filled = list(leaves)
            for k, array in zip(places, arrays, strict=True):
                filled[k] = array
            given, named = joined(filled)
            return f(*given, **named)

        call = _Call(program, policy, getattr(f, "__name__", "the function"))
        call.active = [t.requires_grad and torch.is_grad_enabled() for t in tensors]
        under_func = torch._C._are_functorch_transforms_active()  # noqa: SLF001 - as Function.apply asks
        call.given = {} if under_func else None
        outputs = _Bridge.apply(call, *tensors)
        return call.join(outputs)

    return bridged


class _Call:
    """One call of a bridged function: the program of its tensors, and what its forward leaves for its backward.

    torch runs :meth:`_Bridge.forward` before it makes the context, so the pull waits here.
    """

    def __init__(self, program: Callable[..., Any], policy: Any, name: str) -> None:
        self.program, self.policy, self.name = program, policy, name
        self.active: list[bool] = []
        self.pull: Any = None
        self.given: dict[bytes, bytes] | None = None
        """Digests of what the forward gave, by those of the arrays; under torch.func, which keeps no pull."""

    def arrays(self, tensors: Sequence[torch.Tensor]) -> list[np.ndarray]:
        """The tensors' memory, each named by its place among the tensors of the call."""
        return [read_only(t, f"tensor {k} of {self.name}") for k, t in enumerate(tensors)]

    def of_some(self, arrays: Sequence[Any], wanted: Sequence[bool]) -> Callable[..., Any]:
        """The program as a function of the arrays that are wanted; the others are constants of it."""
        places = [k for k, is_wanted in enumerate(wanted) if is_wanted]

        def of_wanted(*some: Any) -> Any:
            filled = list(arrays)
            for k, array in zip(places, some, strict=True):
                filled[k] = array
            return self.program(*filled)

        return of_wanted

    def run(self, tensors: Sequence[torch.Tensor]) -> tuple[Any, ...]:
        """The leaves of the program's result, as tensors; where one is active the pull is kept."""
        arrays = self.arrays(tensors)
        if any(self.active):
            out, self.pull = self.reverse(arrays, self.active)
            leaves, self.joined = taken_apart(out)
        else:
            leaves, self.joined = taken_apart(self.program(*arrays))
            leaves = unshared(leaves)
        if self.given is not None:
            self.given[digest(arrays)] = digest(leaves)
        leaves = [as_tensor(leaf, arrays) for leaf in leaves]
        self.others = {k: leaf for k, leaf in enumerate(leaves) if not isinstance(leaf, torch.Tensor)}
        found = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
        self.smooth = [t.is_floating_point() or t.is_complex() for t in found]
        return found

    def reverse(self, arrays: Sequence[Any], wanted: Sequence[bool]) -> tuple[Any, Any]:
        """The program's value and the pull to the arrays that are wanted, in torch's convention for complex numbers."""
        some = [array for array, is_wanted in zip(arrays, wanted, strict=True) if is_wanted]
        value, pull = pb.vjp(self.of_some(arrays, wanted), *some, policy=self.policy, conj=True)
        self.compare(arrays, value)
        return value, pull

    def compare(self, arrays: Sequence[Any], value: Any) -> None:
        """Raise ReplayError where the forward gave another value for these arrays."""
        if self.given and self.given.get(digest(arrays), b"") not in (b"", digest(taken_apart(value)[0])):
            raise self.changed("another result")

    def changed(self, what: str) -> pb.ReplayError:
        """The error of a program that gives something else when it is executed again."""
        return pb.ReplayError(
            f"{self.name} gave {what} when it was executed again for a backward that is differentiated "
            "(create_graph=True, torch.func): an array or a random generator that it reads besides its tensors has "
            "changed since the forward. Draw and compute such values outside, and pass them as tensors"
        )

    def join(self, tensors: Any) -> Any:
        """The result of the program, with these tensors as its arrays."""
        found, count = iter(tensors), len(tensors) + len(self.others)
        return self.joined([self.others[k] if k in self.others else next(found) for k in range(count)])

    def cotangent(self, of_tensors: Sequence[Any]) -> Any:
        """The structure that the pull takes, of one cotangent for each tensor of the result."""
        found, count = iter(of_tensors), len(of_tensors) + len(self.others)
        return self.joined([None if k in self.others else next(found) for k in range(count)])


class _Bridge(Function):
    """The node of torch's graph for one call."""

    @staticmethod
    def forward(call: _Call, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return call.run(tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        ctx.call, *tensors = inputs
        # Saved by torch, so that a change in place between forward and backward is its error, and a second backward
        # without retain_graph too. The pull hangs on a tensor of its own: torch frees it with the others.
        holder: Any = torch.empty(0)
        holder.pull, ctx.call.pull = ctx.call.pull, None
        ctx.save_for_backward(*tensors, holder)
        ctx.save_for_forward(*tensors)
        smooth = ctx.call.smooth
        ctx.mark_non_differentiable(*(t for t, is_smooth in zip(output, smooth, strict=True) if not is_smooth))

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor) -> tuple[Any, ...]:
        call, wanted = ctx.call, list(ctx.needs_input_grad[1:])
        *tensors, holder = ctx.saved_tensors
        pull = getattr(holder, "pull", None)  # under torch.func the holder is another tensor, without it
        if pull is None or torch.is_grad_enabled():
            found = to_torch(_pulled(call, wanted), policy=call.policy)(list(tensors), list(cotangents))
        if pull is not None:
            arrays = [read_only(t, f"cotangent {k} of {call.name}") for k, t in enumerate(cotangents)]
            answers = iter(pull(call.cotangent(arrays)))
            every = [next(answers) if is_active else None for is_active in call.active]
            of_pull = [as_tensor(g, arrays) for g, is_wanted in zip(every, wanted, strict=True) if is_wanted]
            if not torch.is_grad_enabled():
                found = of_pull
            elif not all(map(_close, found, of_pull)):
                raise call.changed("another gradient")
        some = iter(found)
        return (None, *(next(some) if is_wanted else None for is_wanted in wanted))

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Any) -> tuple[Any, ...]:
        call, tensors = ctx.call, ctx.saved_tensors
        wanted = [t is not None for t in tangents]
        found = to_torch(_pushed(call, wanted))(list(tensors), [t for t in tangents if t is not None])
        some = iter(found)
        return tuple(next(some) if is_smooth else None for is_smooth in call.smooth)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], call: _Call, *tensors: torch.Tensor) -> tuple[Any, Any]:
        each = []
        for k in range(info.batch_size):
            chosen = (t if d is None else t.select(d, k) for t, d in zip(tensors, in_dims[1:], strict=True))
            each.append(_Bridge.apply(call, *chosen))
        return tuple(torch.stack(column) for column in zip(*each, strict=True)), (0,) * len(each[0])


def _close(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two gradients are equal but for rounding."""
    bound = torch.finfo(expected.dtype).eps ** 0.5
    largest = float(expected.abs().nan_to_num(posinf=0.0).max()) if expected.numel() else 0.0
    return bool(torch.allclose(found.detach(), expected, rtol=bound, atol=bound * largest, equal_nan=True))


def _pulled(call: _Call, wanted: list[bool]) -> Callable[..., Any]:
    """The gradient itself as a NumPy program, of the arrays and the cotangents: what is differentiated again."""

    def gradient(arrays: Any, cotangents: Any) -> Any:
        _, pull = call.reverse(arrays, wanted)
        return list(pull(call.cotangent(cotangents)))

    gradient.__name__ = f"the gradient of {call.name}"
    return gradient


def _pushed(call: _Call, wanted: list[bool]) -> Callable[..., Any]:
    """The tangents of the result as a NumPy program, of the arrays and the tangents of those that are wanted."""

    def tangents_of(arrays: Any, tangents: Any) -> Any:
        some = [array for array, is_wanted in zip(arrays, wanted, strict=True) if is_wanted]
        value, tangent = pb.jvp(call.of_some(arrays, wanted), tuple(some), tuple(tangents))
        call.compare(arrays, value)
        return [leaf for leaf in taken_apart(tangent)[0] if leaf is not None]

    tangents_of.__name__ = f"the tangent of {call.name}"
    return tangents_of
