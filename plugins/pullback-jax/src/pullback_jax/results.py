"""What JAX must know of a result before it is computed: its structure, and the shape and dtype of each array."""

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import jax
import numpy as np

import pullback as pb


@attrs.frozen(eq=False)
class Result:
    """The structure of a result: its arrays' specs, and what else stands in it."""

    specs: tuple[jax.ShapeDtypeStruct, ...]
    others: dict[int, Any]
    """What is no array, and is handed on as it is, by place among the leaves."""
    join: Callable[[Sequence[Any]], Any]

    def joined(self, arrays: Sequence[Any]) -> Any:
        """The result, with these as its arrays."""
        found, count = iter(arrays), len(self.specs) + len(self.others)
        return self.join([self.others[k] if k in self.others else next(found) for k in range(count)])

    def leaves(self, result: Any) -> list[Any]:
        """The arrays of a result, in JAX's dtypes; raises TypeError where they are not what was told."""
        arrays = [leaf for leaf in taken_apart(result)[0] if is_array(leaf)]
        told = [spec.shape for spec in self.specs]
        if [leaf.shape for leaf in arrays] != told:
            raise TypeError(f"expected arrays of shapes {told}, got {[leaf.shape for leaf in arrays]}: correct out=")
        for leaf, spec in zip(arrays, self.specs, strict=True):
            if not np.can_cast(leaf.dtype, spec.dtype, "same_kind"):
                raise TypeError(f"expected an array of dtype {spec.dtype}, got {leaf.dtype}: correct out=")
        return [
            leaf if leaf.dtype == spec.dtype else leaf.astype(spec.dtype)
            for leaf, spec in zip(arrays, self.specs, strict=True)
        ]


def taken_apart(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of a structure as pullback sees it, and the function that puts others in their places."""
    leaves: list[Any] = []

    def place(leaf: Any) -> int:
        leaves.append(leaf)
        return len(leaves) - 1

    places = pb.map_leaves(place, tree)
    return leaves, lambda others: pb.map_leaves(lambda k: others[k], places)


def readable(array: Any, name: str) -> Any:
    """The array; ``name`` is what the TypeError calls one whose dtype NumPy does not have."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.extended) or np.dtype(array.dtype).kind not in "biufc":
        raise TypeError(
            f"{name} is of dtype {array.dtype}, which NumPy does not have: pass .astype(jax.numpy.float32) of a "
            "floating one, jax.random.key_data of a key"
        )
    return array


def is_array(leaf: Any) -> bool:
    """Whether a leaf of a result is an array, a number of NumPy's, or stands for one."""
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def result_of(
    program: Callable[..., Any], arrays: Sequence[Any], out: Any, known: dict[Any, Result], others: Sequence[Any]
) -> Result:
    """What ``program`` returns for such arrays: told by ``out``, or found by a run on shapes alone.

    ``known`` keeps what was found, by the arrays' specs and the other arguments, where these can be compared.
    """
    if out is not None:
        return _described(out)
    given = [_known_beforehand(a) for a in arrays]
    key = (*((a.shape, a.dtype) for a in arrays), *((type(other), other) for other in others))
    if any(isinstance(a, np.ndarray) for a in given) or not _is_hashable(key):
        return _found(program, given)
    if key not in known:
        known[key] = _found(program, given)
    return known[key]


def _known_beforehand(array: Any) -> Any:
    """What the run on shapes gets for an array: its spec, or the array where it is of integers and JAX has it."""
    if isinstance(array, jax.core.Tracer) or jax.numpy.issubdtype(array.dtype, jax.numpy.inexact):
        return pb.spec(array.shape, array.dtype)
    return np.asarray(array)


def _is_hashable(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def _found(program: Callable[..., Any], given: Sequence[Any]) -> Result:
    seen: list[Result] = []

    def watched(*arrays: Any) -> Any:
        result = program(*arrays)
        seen.append(_described(result))
        return result

    try:
        pb.plan(watched, *given)
    except pb.ShapesOnlyError as error:
        error.add_note(
            "In to_jax: give out=, the result's structure with jax.ShapeDtypeStruct(shape, dtype) as its arrays"
        )
        raise
    return seen[-1]


def _described(result: Any) -> Result:
    leaves, join = taken_apart(result)
    kept = {k: leaf for k, leaf in enumerate(leaves) if not is_array(leaf)}
    specs = tuple(
        jax.ShapeDtypeStruct(leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype))
        for k, leaf in enumerate(leaves)
        if k not in kept
    )
    return Result(specs, kept, join)
