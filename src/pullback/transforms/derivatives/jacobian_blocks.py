"""The blocks of a dense Jacobian, one for each pair of an output leaf and an input leaf, filled row by row or column by
column."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np
from attrs import define, field, frozen

from pullback.memory.ledger import mib
from pullback.recording.handles import Handle
from pullback.transforms.derivatives.argnums import Chosen
from pullback.words.errors import BudgetError, NotDifferentiableError
from pullback.words.foreign_operands import foreign_argument
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import flatten, unflatten


@frozen
class Leaves:
    """The leaves of a structure that carry derivatives, and their places among all of its leaves."""

    definition: Any
    values: tuple[Any, ...]
    specs: tuple[ArraySpec, ...]
    places: tuple[int | None, ...]
    """The number of each leaf of the structure among those that carry derivatives, or None."""

    @property
    def size(self) -> int:
        """Elements that carry derivatives."""
        return sum(spec.size for spec in self.specs)

    @property
    def is_complex(self) -> tuple[bool, ...]:
        """Whether each leaf is complex."""
        return tuple(spec.dtype.kind == "c" for spec in self.specs)

    def structured(self, parts: Sequence[Any]) -> Any:
        """The structure with one of the parts at each leaf that carries a derivative, and None at the others."""
        return unflatten(self.definition, [None if place is None else parts[place] for place in self.places])


def leaves_of(tree: Any) -> Leaves:
    """The leaves of a structure that carry derivatives; a Python float counts as float64."""
    leaves, definition = flatten(tree)
    for leaf in leaves:
        foreign = None if isinstance(leaf, Handle) else foreign_argument(leaf)
        if foreign is not None:
            raise NotDifferentiableError(f"an argument or output of type {foreign}")
    values = tuple(leaf for leaf in leaves if carries_derivative(leaf))
    numbers = iter(range(len(values)))
    places = tuple(next(numbers) if carries_derivative(leaf) else None for leaf in leaves)
    return Leaves(definition, values, tuple(map(spec_of, values)), places)


def by_argument(arguments: Sequence[Leaves], parts: Sequence[Any]) -> list[Any]:
    """The structure of each argument, with one of the parts at every leaf that carries a derivative."""
    rest = iter(parts)
    return [leaves.structured(list(islice(rest, len(leaves.specs)))) for leaves in arguments]


@define(eq=False)
class Block:
    """The derivative of one output leaf in one input leaf: a matrix of output elements by input elements.

    Rows (or columns) from the first traced one on are collected in a list: a plain array cannot hold tracers.
    """

    out: ArraySpec
    argument: ArraySpec
    matrix: Any = field(init=False)
    parts: list[Any] | None = field(default=None, init=False)
    by_columns: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self.matrix = np.zeros((self.out.size, self.argument.size), np.result_type(self.out.dtype, self.argument.dtype))

    def put(self, k: int, part: Any, *, column: bool) -> None:
        """Set row ``k``, or column ``k``. All of them are set, in order, from 0 on."""
        lines = self.matrix.T if column else self.matrix
        if isinstance(part, Handle) and self.parts is None:
            self.by_columns, self.parts = column, list(lines[:k])
        if self.parts is not None:
            self.parts.append(part.reshape(-1))
        else:
            lines[k] = part if np.ndim(part) == 0 else part.reshape(-1)

    def finish(self) -> Any:
        """The whole matrix, traced where a part was."""
        if self.parts is not None:
            joined = np.stack(self.parts, axis=1 if self.by_columns else 0)
            self.matrix = joined if joined.dtype == self.matrix.dtype else joined.astype(self.matrix.dtype)
            self.parts = None
        return self.matrix

    def array(self) -> Any:
        """The derivative, of shape ``out.shape + argument.shape``; a scalar where both are."""
        matrix = self.finish()
        shape = self.out.shape + self.argument.shape
        return matrix.reshape(shape) if shape or isinstance(matrix, Handle) else matrix[0, 0]


@define(eq=False)
class Blocks:
    """All blocks, by output leaf and input leaf."""

    outs: Leaves
    arguments: tuple[Leaves, ...]
    """The leaves of each argument that is differentiated."""
    rows: list[list[Block]]

    def structured(self, which: Chosen) -> Any:
        """The structure of the output; at each of its leaves the structure of the arguments."""
        return self.outs.structured([self.of_arguments(which, [block.array() for block in row]) for row in self.rows])

    def of_arguments(self, which: Chosen, parts: list[Any]) -> Any:
        """The structure of the arguments, with one of the parts at every leaf that carries a derivative."""
        return which.structured(by_argument(self.arguments, parts))

    def symmetrise(self) -> None:
        """Make a Hessian exactly symmetric: each block becomes the mean of itself and of the transposed block on the
        other side of the diagonal."""
        for i, row in enumerate(self.rows):
            for j in range(i + 1):
                block, opposite = row[j], self.rows[j][i]
                block.matrix = (block.finish() + opposite.finish().T) / 2
                if i != j:
                    opposite.matrix = block.matrix.T.copy()


def make_blocks(what: str, outs: Leaves, arguments: tuple[Leaves, ...], limit: int | None) -> Blocks:
    """Blocks of zeros. Raises :class:`BudgetError`, which calls the matrix ``what``, where they take more than
    ``limit`` bytes."""
    columns = [spec for leaves in arguments for spec in leaves.specs]
    needed = sum(a.size * b.size * np.result_type(a.dtype, b.dtype).itemsize for a in outs.specs for b in columns)
    if limit is not None and needed > limit:
        raise BudgetError(
            f"the dense {what} has {outs.size} rows and {sum(spec.size for spec in columns)} columns and takes "
            f"{mib(needed)} ({needed} bytes), chunk allows {mib(limit)} ({limit} bytes); use products instead (jvp or "
            "linearize for J v, vjp for a row, hvp for a Hessian), sparse_jacobian, or a larger chunk",
            needed,
        )
    return Blocks(outs, arguments, [[Block(out, spec) for spec in columns] for out in outs.specs])
