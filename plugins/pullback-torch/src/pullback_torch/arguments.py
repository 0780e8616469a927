"""What crosses between the two libraries: tensors as arrays over the same memory, arrays as tensors, and structures as
their leaves."""

from collections.abc import Callable, Sequence
from hashlib import blake2b
from sys import getrefcount
from typing import Any

import numpy as np
import torch

import pullback as pb


def taken_apart(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of a structure as pullback sees it, and the function that puts others in their places."""
    leaves: list[Any] = []

    def place(leaf: Any) -> int:
        leaves.append(leaf)
        return len(leaves) - 1

    places = pb.map_leaves(place, tree)
    return leaves, lambda others: pb.map_leaves(lambda k: others[k], places)


def read_only(tensor: torch.Tensor, name: str) -> np.ndarray:
    """The tensor as an array over its own memory that refuses writes; ``name`` is what errors call it.

    A function that wrote into its argument would change a parameter of the host unseen by torch's version counters.
    Raises TypeError for a tensor that NumPy cannot read: on another device, sparse, or of a dtype that NumPy lacks.
    """
    if tensor.device.type != "cpu":
        raise TypeError(f"{name} is a tensor on {tensor.device}: pullback computes on the CPU; pass {name}.cpu()")
    if tensor.layout is not torch.strided:
        raise TypeError(f"{name} is a tensor of layout {tensor.layout}: pass {name}.to_dense()")
    if tensor.dtype is torch.bfloat16:
        raise TypeError(f"{name} is a tensor of bfloat16, which NumPy does not have: pass {name}.float()")
    try:
        array: np.ndarray = tensor.detach().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError) as error:
        raise TypeError(
            f"{name} is a tensor that NumPy cannot read ({error}): pass a dense one of a dtype that NumPy has; in the "
            "place of is_grads_batched=True and vectorize=True write torch.func.vmap, jacrev and jacfwd"
        ) from error
    array.flags.writeable = False
    return array


def references(leaves: list[Any], k: int) -> tuple[int, int]:
    """How often the array at ``k`` is referred to, and the one whose memory it shows."""
    return getrefcount(leaves[k]), 0 if leaves[k].base is None else getrefcount(leaves[k].base)


def unshared(leaves: list[Any]) -> list[Any]:
    """The leaves, with copies of arrays that somebody else has, such as a buffer that the next call fills again.

    Reference counts tell, so the caller has no other reference.
    """
    for k in range(len(leaves)):
        if isinstance(leaves[k], np.ndarray):
            alone = references([np.empty(1) if leaves[k].base is None else np.empty(1)[:]], 0)
            if any(n > m for n, m in zip(references(leaves, k), alone, strict=True)):
                leaves[k] = leaves[k].copy()
    return leaves


def digest(leaves: Sequence[Any]) -> bytes:
    """A hash of the plain values of the arrays among the leaves."""
    made = blake2b(digest_size=16)
    for leaf in leaves:
        if isinstance(leaf, np.ndarray | np.generic | pb.Tracer):
            made.update(np.asarray(pb.value(leaf)).tobytes())
    return made.digest()


def as_tensor(leaf: Any, inputs: Sequence[np.ndarray]) -> Any:
    """A result as a tensor over its own memory, or over a copy where it lies in an input's or may not be written.

    What is no array and no number of NumPy's is handed on as it is.
    """
    if isinstance(leaf, np.ndarray):
        borrowed = not leaf.flags.writeable or any(np.may_share_memory(leaf, array) for array in inputs)
        reversed_axes = any(stride < 0 for stride in leaf.strides)  # torch has no negative strides
        return torch.from_numpy(leaf.copy() if borrowed or reversed_axes else leaf)
    return torch.as_tensor(leaf) if isinstance(leaf, np.generic) else leaf
