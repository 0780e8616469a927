"""``dependencies``: which inputs and named values of a program reach which outputs, as a table with norms."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from pullback.instruments.inspect.graph_of_tape import input_labels
from pullback.instruments.inspect.tables import Column, Table
from pullback.transforms.derivatives.argnums import name_of
from pullback.transforms.derivatives.jacobian_blocks import leaves_of
from pullback.transforms.derivatives.reverse import vjp
from pullback.transforms.sparsity.followed_runs import FollowedRun, follow
from pullback.transforms.sparsity.pattern_groups import groups_of_columns
from pullback.transforms.sparsity.sparse_jacobians import sparse_jacobian
from pullback.words.call_sites import public
from pullback.words.errors import PullbackError


@frozen
class Link:
    """What one input, or named value, has to do with one output."""

    source: str
    output: str
    n_source: int
    """Elements of the source, and of the output."""
    n_output: int
    reaching: int
    """Elements of the source that reach an element of the output."""
    reached: int
    """Elements of the output that an element of the source reaches."""
    entries: int
    """Pairs of an element of the source and one of the output that it reaches."""
    norm: float | None
    """The Frobenius norm of the derivative: the square root of the sum of squares of all its entries. None where it
    was not computed."""

    @property
    def is_connected(self) -> bool:
        """Whether anything of the source reaches anything of the output."""
        return self.entries > 0


@frozen(eq=False, repr=False)
class Dependencies:
    """What :func:`dependencies` found. Iterating gives a :class:`Link` for each source and output; ``str`` is a
    table of them."""

    program: str
    links: tuple[Link, ...]
    matrix: Any
    """The sparsity pattern of the Jacobian, a boolean ``csr_array`` of output elements by elements of all arguments."""
    coarse: tuple[tuple[str, str], ...]
    """Primitive and line of each operation in which every element of the result was taken to depend on every element
    of the operands."""

    def __iter__(self) -> Iterator[Link]:
        return iter(self.links)

    def __len__(self) -> int:
        return len(self.links)

    def of(self, source: str, output: str = "") -> Link:
        """The link of a source and an output, by their names; raises ``PullbackError`` listing the pairs there are."""
        for link in self.links:
            if (link.source, link.output) == (source, output):
                return link
        pairs = ", ".join(f"({link.source!r}, {link.output!r})" for link in self.links)
        raise PullbackError(f"{self.program} has no link from {source!r} to {output!r}; there are {pairs or 'none'}")

    @property
    def unused(self) -> tuple[str, ...]:
        """Inputs and named values that reach no output."""
        used = {link.source for link in self.links if link.is_connected}
        return tuple(dict.fromkeys(link.source for link in self.links if link.source not in used))

    def _notes(self) -> Iterator[str]:
        yield from (f"{name} reaches no output" for name in self.unused)
        what = "every element of its result is taken to depend on every element of its operands"
        yield from (f"{name} at {line}: {what}" for name, line in self.coarse)

    def __str__(self) -> str:
        shown = [link for link in self.links if link.is_connected]
        norms = tuple("" if link.norm is None else f"{link.norm:.4g}" for link in shown)
        columns = (
            Column("from", tuple(link.source for link in shown), text=True),
            Column("to", tuple(link.output or "result" for link in shown), text=True),
            Column("elements|that reach", tuple(f"{link.reaching} of {link.n_source}" for link in shown)),
            Column("elements|reached", tuple(f"{link.reached} of {link.n_output}" for link in shown)),
            Column("entries", tuple(str(link.entries) for link in shown)),
            *((Column("norm of the|derivative", norms),) if any(norms) else ()),
        )
        return str(Table(f"what reaches the result of {self.program}", columns, tuple(self._notes())))

    def __repr__(self) -> str:
        return f"<Dependencies of {self.program}: {len(self.links)} links, {self.matrix.nnz} entries>"


@public
def dependencies(f: Callable[..., Any], *args: Any, norms: bool = True) -> Dependencies:
    """Which elements of the inputs, and of values marked by ``pb.name``, reach which outputs of ``f(*args)``.

    Found by following each element through one run of ``f``; never too little for the branches and indices taken in
    this run, and too much where an operation's structure is not known (``coarse`` lists those) or a derivative happens
    to be 0.

    Parameters
    ----------
    f
        Any function.
    *args
        Its arguments.
    norms
        Also by how much: the Frobenius norm of each derivative, for as many derivatives of ``f`` as a sparse Jacobian
        takes (rows only, where values are marked); None for complex programs.

    Returns
    -------
    A :class:`Dependencies`, which prints as a table.

    Raises
    ------
    PullbackError
        Where SciPy is missing.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> table = pb.dependencies(lambda u: u[1:] * u[:-1], np.ones(4))
    >>> table.coarse
    ()
    """
    followed = follow(f, args, range(len(args)), {}, named=True)
    whole = followed.pattern().tocsc()
    labels = input_labels(followed.inputs, f)
    n_inputs = sum(leaf.spec.size for leaf in followed.inputs)
    is_real = not (followed.is_complex or any(leaf.spec.dtype.kind == "c" for leaf in followed.inputs))
    sums = _squares_by_pulls if followed.marks else _squares
    squares = sums(f, args, whole, followed, labels) if norms and is_real else None
    links = tuple(_links(followed, whole, squares, labels))
    return Dependencies(name_of(f), links, whole[:, :n_inputs].tocsr(), followed.coarse)


Squares = dict[tuple[str, int], float]
"""Sums of squares of derivatives, by source and number of the output leaf."""


def _inputs(followed: FollowedRun, labels: list[str]) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """Each input leaf with its columns."""
    start = 0
    for label, leaf in zip(labels, followed.inputs, strict=True):
        yield label, np.arange(start, start + leaf.spec.size)
        start += leaf.spec.size


def _outputs(followed: FollowedRun) -> Iterator[tuple[int, str, slice]]:
    """Each output leaf: number, path, and rows."""
    start = 0
    for k, (path, names) in enumerate(followed.outputs):
        yield k, path, slice(start, start + names.size)
        start += names.size


def _squares(
    f: Callable[..., Any], args: tuple[Any, ...], whole: Any, followed: FollowedRun, labels: list[str]
) -> Squares:
    """Sums of squares from the sparse Jacobian in all arguments."""
    jacobian = sparse_jacobian(f, tuple(range(len(args))), structure=whole)(*args) if args else whole
    blocks = jacobian.tocsc()
    return {
        (label, k): float(np.sum(np.square(blocks[:, columns].tocsr()[rows].data, dtype=float)))
        for label, columns in _inputs(followed, labels)
        for k, _, rows in _outputs(followed)
    }


def _squares_by_pulls(
    f: Callable[..., Any], args: tuple[Any, ...], whole: Any, followed: FollowedRun, labels: list[str]
) -> Squares:
    """Sums of squares by reverse passes, which give the cotangents of named values too.

    Rows of one output leaf without a column in common share a pull. Their entries do not mix, so the sum of squares of
    the cotangent is the sum of squares of the entries.
    """
    squares: Squares = {}
    out, pull = vjp(f, *args)
    leaves = leaves_of(out)
    rows_of = whole.tocsr()
    for k, _, rows in _outputs(followed):

        def add(label: str, ct: Any, k: int = k) -> None:
            squares[label, k] = squares.get((label, k), 0.0) + float(np.sum(np.square(ct, dtype=float)))

        tell = {tag: lambda _step, ct, tag=tag: add(tag, ct) for tag in followed.marks}
        colours = groups_of_columns(rows_of[rows].T.tocsr())
        for colour in range(int(colours.max(initial=-1)) + 1):
            parts: list[Any] = [None] * len(leaves.specs)
            parts[k] = (colours == colour).astype(leaves.specs[k].dtype).reshape(leaves.specs[k].shape)
            cts = leaves_of(pull(leaves.structured(parts), on_adjoint=tell)).values
            for label, ct in zip(labels, cts, strict=True):
                add(label, ct)
    pull.close()
    return squares


def _links(followed: FollowedRun, whole: Any, squares: Squares | None, labels: list[str]) -> Iterator[Link]:
    marked = [(tag, np.concatenate(parts)) for tag, parts in followed.marks.items()]
    for source, columns in (*_inputs(followed, labels), *marked):
        part = whole[:, columns].tocsr()
        for k, path, rows in _outputs(followed):
            block = part[rows]
            reached: NDArray[Any] = np.diff(block.indptr) > 0
            norm = None if squares is None else float(np.sqrt(squares.get((source, k), 0.0)))
            n_reaching = len(np.unique(block.indices))
            yield Link(
                source, path, block.shape[1], block.shape[0], n_reaching, int(reached.sum()), int(block.nnz), norm
            )
