"""The pattern of a sparse Jacobian with its groups of columns or rows, and how these are kept from call to call."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from pullback.transforms.sparsity.followed_runs import follow, is_again
from pullback.transforms.sparsity.pattern_groups import groups_of_columns
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten

KEPT = 8
"""How many patterns, for arguments of other shapes each, are kept for one function."""
WORTH_IT = 4
"""A pull of the recorded pull costs no more than this many pulls."""


@frozen(eq=False)
class Grouped:
    """A pattern, a boolean ``csr_array``, and the colour of each of its columns, or else of its rows."""

    pattern: Any
    colours: NDArray[np.int64]
    by_rows: bool


def grouped(pattern: Any, mode: str, *, rows_only: bool) -> Grouped:
    """The pattern with the colours that ``mode`` asks for.

    With ``"reverse"``, too, these are of columns where the rows need :data:`WORTH_IT` times as many (a column that many
    rows read), unless ``rows_only``.
    """
    if mode == "reverse":
        fullest = int(np.bincount(pattern.indices, minlength=1).max())  # rows of one column have a colour each
        columns = None if rows_only else colours(pattern, limit=fullest // WORTH_IT)
        limit = None if columns is None else 0
    else:
        columns = colours(pattern, limit=None)
        limit = 0 if mode == "forward" else count(columns)
    rows = colours(pattern.T.tocsr(), limit=limit)
    chosen: Any = columns if rows is None else rows
    return Grouped(pattern, chosen, rows is not None)


def colours(pattern: Any, limit: int | None) -> Any:
    """The colour of each column; None where there are ``limit`` colours or more. A row with ``limit`` entries tells so
    without any colouring."""
    if limit is not None and (not limit or np.max(np.diff(pattern.indptr), initial=0) >= limit):
        return None
    found = groups_of_columns(pattern)
    return None if limit is not None and count(found) >= limit else found


def count(colours: Any) -> int:
    """How many colours there are."""
    return int(colours.max()) + 1 if len(colours) else 0


@define(eq=False)
class KeptGroups:
    """What was found in earlier calls of one function, by the shapes of its arguments; good for as long as the program
    is the one it was found from."""

    mode: str
    found: dict[Any, tuple[Any, Grouped]] = field(factory=dict)

    def of_program(
        self, f: Callable[..., Any], args: Sequence[Any], where: Sequence[int], kwargs: Mapping[str, Any], *,
        rows_only: bool,
    ) -> Grouped:  # fmt: skip
        """The pattern of ``f`` at these arguments: as it was found, if a run of ``f`` has the same operations."""
        key = (rows_only, *((k, *_specs(args[k])) for k in where))
        known = self.found.get(key)
        if known is not None and is_again(known[0], f, args, where, kwargs):
            return known[1]
        followed = follow(f, args, where, kwargs)
        groups = grouped(followed.pattern(), self.mode, rows_only=rows_only)
        self.found.pop(key, None)
        if followed.program is not None:
            self._keep(key, followed.program, groups)
        return groups

    def of_pattern(self, pattern: Any, *, rows_only: bool) -> Grouped:
        """A given pattern with its colours, as found for one that was equal."""
        key = (rows_only, pattern.shape)
        known = self.found.get(key)
        if known is not None and _equal(known[1].pattern, pattern):
            return known[1]
        groups = grouped(pattern, self.mode, rows_only=rows_only)
        self._keep(key, None, groups)
        return groups

    def _keep(self, key: Any, program: Any, groups: Grouped) -> None:
        for oldest in list(self.found)[: max(0, len(self.found) - KEPT + 1)]:
            self.found.pop(oldest, None)
        self.found[key] = program, groups


def _specs(argument: Any) -> tuple[Any, ...]:
    leaves, definition = flatten(argument)
    return definition, tuple(spec_of(leaf) if carries_derivative(leaf) else None for leaf in leaves)


def _equal(a: Any, b: Any) -> bool:
    return a.nnz == b.nnz and np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)
