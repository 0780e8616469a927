"""A Jacobian as blocks, one for each pair of an output leaf and an input leaf, filled one row or one column at a
time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.memory.ledger import mib
from pullback.recording.handles import Handle
from pullback.transforms.arguments import Chosen
from pullback.words.errors import BudgetError
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import flatten, unflatten


@frozen
class Leaves:
    """The leaves of a structure that carry derivatives, and where they stand among all of its leaves."""

    definition: Any
    values: tuple[Any, ...]
    specs: tuple[ArraySpec, ...]
    places: tuple[int | None, ...]
    """For each leaf of the structure its number among those that carry derivatives, or None."""

    @property
    def size(self) -> int:
        """Elements that carry derivatives."""
        return sum(spec.size for spec in self.specs)

    @property
    def is_complex(self) -> tuple[bool, ...]:
        """Which of them are complex."""
        return tuple(spec.dtype.kind == "c" for spec in self.specs)

    def structured(self, parts: Sequence[Any]) -> Any:
        """The structure with these in the place of the leaves that carry derivatives, and None in the place of the
        others."""
        return unflatten(self.definition, [None if place is None else parts[place] for place in self.places])


def leaves_of(tree: Any) -> Leaves:
    """The leaves of a structure; a Python float counts as float64."""
    leaves, definition = flatten(tree)
    values = tuple(leaf for leaf in leaves if carries_derivative(leaf))
    numbers = iter(range(len(values)))
    places = tuple(next(numbers) if carries_derivative(leaf) else None for leaf in leaves)
    return Leaves(definition, values, tuple(map(spec_of, values)), places)


@define(eq=False)
class Block:
    """The derivative of one output leaf in one input leaf: a matrix of output elements by input elements.

    From the first traced row (or column) on, the parts are gathered in a list, since a plain array cannot hold them.
    """

    out: ArraySpec
    given: ArraySpec
    matrix: Any = field(init=False)
    parts: list[Any] | None = field(default=None, init=False)
    by_columns: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.matrix = np.zeros((self.out.size, self.given.size), np.result_type(self.out.dtype, self.given.dtype))

    def put(self, k: int, part: Any, *, column: bool) -> None:
        """Row ``k``, or column ``k``; they come in order, from 0 on, and all of them."""
        if isinstance(part, Handle) and self.parts is None:
            self.by_columns = column
            self.parts = list((self.matrix.T if column else self.matrix)[:k])
        if self.parts is not None:
            self.parts.append(part.reshape(-1))
        elif column:
            self.matrix[:, k] = part if np.ndim(part) == 0 else part.reshape(-1)
        else:
            self.matrix[k] = part if np.ndim(part) == 0 else part.reshape(-1)

    def finish(self) -> Any:
        """The whole matrix, traced where a part was."""
        if self.parts is not None:
            joined = np.stack(self.parts, axis=1 if self.by_columns else 0)
            self.matrix, self.parts = (
                joined if joined.dtype == self.matrix.dtype else joined.astype(self.matrix.dtype),
                None,
            )
        return self.matrix

    def array(self) -> Any:
        """The derivative, of shape ``out.shape + given.shape``; a scalar where both are."""
        matrix = self.finish()
        shape = self.out.shape + self.given.shape
        return matrix.reshape(shape) if shape or isinstance(matrix, Handle) else matrix[0, 0]


@define(eq=False)
class Blocks:
    """All blocks, by output leaf and input leaf."""

    outs: Leaves
    given: tuple[Leaves, ...]
    """For each differentiated argument its leaves."""
    rows: list[list[Block]]

    @property
    def specs(self) -> list[ArraySpec]:
        """Of every input leaf."""
        return [spec for leaves in self.given for spec in leaves.specs]

    def structured(self, which: Chosen) -> Any:
        """The structure of the output, with that of the arguments at each of its leaves."""
        return self.outs.structured([self.of_arguments(which, [block.array() for block in row]) for row in self.rows])

    def of_arguments(self, which: Chosen, parts: list[Any]) -> Any:
        """The structure of the arguments, with one of the parts at every leaf that carries a derivative."""
        structures, first = [], 0
        for leaves in self.given:
            structures.append(leaves.structured(parts[first : first + len(leaves.specs)]))
            first += len(leaves.specs)
        return which.structured(structures)

    def symmetrise(self) -> None:
        """For square blocks of blocks, as in a Hessian: the mean of each and the transpose of the one opposite, so
        that they are equal."""
        for i, row in enumerate(self.rows):
            for j in range(i + 1):
                block, opposite = row[j], self.rows[j][i]
                block.matrix = (block.finish() + opposite.finish().T) / 2
                if i != j:
                    opposite.matrix = block.matrix.T.copy()


def make_blocks(what: str, outs: Leaves, given: tuple[Leaves, ...], limit: int | None) -> Blocks:
    """Blocks of zeros. Raises :class:`BudgetError` where they would take more than ``limit`` bytes; ``what`` they
    are is for its text."""
    columns = [spec for leaves in given for spec in leaves.specs]
    needed = sum(a.size * b.size * np.result_type(a.dtype, b.dtype).itemsize for a in outs.specs for b in columns)
    if limit is not None and needed > limit:
        message = (
            f"the dense {what} has {outs.size} rows and {sum(spec.size for spec in columns)} columns and takes "
            f"{mib(needed)} ({needed} bytes), chunk allows {mib(limit)} ({limit} bytes); use products instead (jvp or "
            "linearize for J v, vjp for a row, hvp for a Hessian), sparse_jacobian, or a larger chunk"
        )
        raise BudgetError(message, needed)
    return Blocks(outs, given, [[Block(out, spec) for spec in columns] for out in outs.specs])
