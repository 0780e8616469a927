"""``sparse_jacobian``: a Jacobian from as many derivatives as its columns, or rows, have colours, and not as many as
there are."""

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any

import numpy as np
from attrs import define
from numpy.typing import NDArray

from pullback.recording.handles import Handle
from pullback.sparsity.influence import follow
from pullback.sparsity.name_sets import groups_of_columns, sparse_library
from pullback.transforms.arguments import chosen
from pullback.transforms.blocks import Leaves, leaves_of
from pullback.transforms.forward import jvp, linearize
from pullback.transforms.reverse import vjp
from pullback.words.call_sites import site_here, site_text
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten

MODES = ("auto", "forward", "reverse")
FEW_COLOURS = 2
"""Up to here running ``f`` again for each colour is cheaper than recording its derivative."""


def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    structure: Any = None,
    mode: str = "auto",
    policy: Any = None,
    check: bool = True,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``f`` as a ``scipy.sparse.csr_array``.

    Shape ``(elements of the output, elements of the arguments)``: leaves in the order of their structures, each in C
    order, those that carry no derivative left out; several arguments stand side by side. dtype by NumPy's promotion of
    all of them. The entries stored are those of the structure, also where they are 0.

    ``structure`` says which entries may be other than 0: a matrix of ``scipy.sparse``, a pair ``(rows, columns)`` of
    integer arrays, or a dense boolean matrix. None finds it out by following each element of the arguments through one
    run of ``f`` (see ``dependencies``), at every call, since branches may differ. Columns without a row in common are
    then computed by one derivative (Curtis, Powell and Reid, IMA J. Appl. Math. 13, 1974). ``mode`` is ``"forward"`` (a
    tangent for each colour of columns), ``"reverse"`` (a pull for each colour of rows, under ``policy``) or ``"auto"``:
    whichever needs fewer.

    With ``check``, J v is compared with :func:`jvp` at one random v: a structure that misses an entry raises
    :class:`StructureError` with its row and column. :class:`StructureError` too for a structure of another shape,
    :class:`NotDifferentiableError` for complex values. ``PullbackError`` where SciPy is missing.
    """
    which = chosen(argnums, argnames)
    if mode not in MODES:
        message = f"mode={mode!r} of sparse_jacobian; choose one of {', '.join(map(repr, MODES))}"
        raise StructureError(message)

    @wraps(f)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        site = site_here()
        called, args, kwargs, where = which.call(f, args, kwargs)
        for number in where:
            _require_floating(args[number], number, site_text(site))
        pattern = follow(called, args, where, kwargs).pattern() if structure is None else as_pattern(structure)
        work = Compressed(
            lambda *given: called(*_filled(args, where, given), **kwargs),
            tuple(args[k] for k in where),
            site_text(site),
        )
        return work.jacobian(pattern, mode, policy, check=check)

    return derivative


def _filled(args: tuple[Any, ...], where: Sequence[int], given: Sequence[Any]) -> list[Any]:
    filled = list(args)
    for k, value in zip(where, given, strict=True):
        filled[k] = value
    return filled


def as_pattern(structure: Any) -> Any:
    """A structure as a boolean ``csr_array`` each entry once; ``(rows, columns)`` stay a pair until the shape is
    known."""
    sparse = sparse_library()
    if isinstance(structure, tuple) and len(structure) == 2:
        rows, columns = (np.asarray(part).reshape(-1) for part in structure)
        if rows.dtype.kind not in "iu" or columns.dtype.kind not in "iu" or rows.shape != columns.shape:
            message = (
                f"structure=(rows, columns) is {rows.dtype}{list(rows.shape)} and "
                f"{columns.dtype}{list(columns.shape)}; "
                "give two integer arrays of one length, or a matrix"
            )
            raise StructureError(message)
        return rows.astype(np.int64), columns.astype(np.int64)
    if sparse.issparse(structure):
        entries = structure.tocoo()
        return sparse.csr_array((np.ones(entries.nnz, bool), (entries.row, entries.col)), shape=entries.shape)
    dense = np.asarray(structure)
    if dense.ndim != 2 or dense.dtype.kind != "b":
        message = (
            f"structure is {dense.dtype}{list(dense.shape)}; give a boolean matrix, a matrix of scipy.sparse, or "
            "(rows, columns)"
        )
        raise StructureError(message)
    return sparse.csr_array(dense)


@define(eq=False)
class Compressed:
    """A function of the arguments that are differentiated, where its Jacobian is asked for."""

    f: Callable[..., Any]
    primals: tuple[Any, ...]
    where: str

    def jacobian(self, pattern: Any, mode: str, policy: Any, *, check: bool) -> Any:
        """The Jacobian with the entries of a pattern."""
        given = leaves_of(self.primals)
        _refuse(given, "an argument", self.where)
        if mode != "reverse" and not isinstance(pattern, tuple):
            columns = _colours(pattern, limit=None)
            rows = None if mode == "forward" else _colours(pattern.T.tocsr(), limit=_count(columns))
            if rows is None:
                return self._by_columns(pattern, given, columns, check=check)
            return self._by_rows(pattern, given, rows, policy, check=check)
        return self._later(pattern, mode, given, policy, check=check)

    def _later(self, pattern: Any, mode: str, given: Leaves, policy: Any, *, check: bool) -> Any:
        """As :meth:`jacobian`, where the number of rows must be learnt from a run, or rows are asked for."""
        if isinstance(pattern, tuple):
            out = leaves_of(self.f(*self.primals))
            pattern = _from_pair(pattern, (out.size, given.size), self.where)
            if mode != "reverse":
                return self.jacobian(pattern, mode, policy, check=check)
        return self._by_rows(pattern, given, _colours(pattern.T.tocsr(), limit=None), policy, check=check)

    def _by_columns(self, pattern: Any, given: Leaves, colours: NDArray[np.int64], *, check: bool) -> Any:
        """One tangent for each colour of the columns."""
        if _count(colours) > FEW_COLOURS:
            out, push = linearize(self.f, *self.primals)
        else:
            out, push = self.f(*self.primals), lambda *tangents: jvp(self.f, self.primals, tangents)[1]
        outs = self._checked(out, pattern, given)
        data = np.zeros(pattern.nnz, _dtype(outs, given))
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        for entries, members in _by_colour(colours[pattern.indices], colours):
            seed = np.zeros(given.size)
            seed[members] = 1.0
            data[entries] = joined(push(*_split(seed, given)), outs)[rows[entries]]
        return self._finished(data, pattern, given, outs, check=check)

    def _by_rows(self, pattern: Any, given: Leaves, colours: NDArray[np.int64], policy: Any, *, check: bool) -> Any:
        """One pull for each colour of the rows."""
        out, pull = vjp(self.f, *self.primals, policy=policy)
        outs = self._checked(out, pattern, given)
        data = np.zeros(pattern.nnz, _dtype(outs, given))
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        for entries, members in _by_colour(colours[rows], colours):
            seed = np.zeros(outs.size)
            seed[members] = 1.0
            data[entries] = joined(pull(_split(seed, outs)), given)[pattern.indices[entries]]
        pull.close()
        return self._finished(data, pattern, given, outs, check=check)

    def _checked(self, out: Any, pattern: Any, given: Leaves) -> Leaves:
        outs = leaves_of(out)
        _refuse(outs, "the output", self.where)
        if pattern.shape != (outs.size, given.size):
            message = (
                f"structure has shape {tuple(pattern.shape)}, the Jacobian at {self.where} has "
                f"{(outs.size, given.size)}: elements of the "
                "output by elements of the arguments; give one of that shape, or None to have it found"
            )
            raise StructureError(message)
        return outs

    def _finished(self, data: Any, pattern: Any, given: Leaves, outs: Leaves, *, check: bool) -> Any:
        found = sparse_library().csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
        if check and given.size:
            self._require_complete(found, given, outs)
        return found

    def _require_complete(self, found: Any, given: Leaves, outs: Leaves) -> None:
        """Compare J v with the derivative along v; find the entry that the structure misses where they differ."""
        v = np.random.default_rng(0).standard_normal(given.size)
        seeds = _split(v, given)
        v = joined(seeds, given)  # as rounded to the dtypes of the arguments
        tangent = joined(jvp(self.f, self.primals, seeds)[1], outs)
        scale = abs(found) @ np.abs(v) + np.abs(tangent)
        eps = max((float(np.finfo(spec.dtype).eps) for spec in (*outs.specs, *given.specs)), default=0.0)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(found @ v - tangent) > np.sqrt(eps) * scale)
        if not len(wrong):
            return
        i = int(wrong[0])
        _, pull = vjp(self.f, *self.primals)
        row = joined(pull(_split(np.eye(1, outs.size, i)[0], outs)), given)
        pull.close()
        row[found.indices[found.indptr[i] : found.indptr[i + 1]]] = 0
        j = int(np.argmax(np.abs(row)))
        if row[j] == 0:
            message = (
                f"row {i} of the sparse Jacobian at {self.where} gives {(found @ v)[i]:.6g} along a random direction, "
                f"jvp gives {tangent[i]:.6g}, and the structure misses no entry of that row: f gives other values, or "
                "takes other branches, when it is run again; make it repeatable"
            )
        else:
            message = (
                f"structure misses entry (row {i}, column {j}) of the Jacobian at {self.where}, which is {row[j]:.6g} "
                f"({len(wrong)} of {found.shape[0]} rows are wrong by it); add the entry, or pass structure=None to "
                "have it found"
            )
        raise StructureError(message)


def _from_pair(pair: tuple[Any, Any], shape: tuple[int, int], where: str) -> Any:
    for name, part, extent in zip(("row", "column"), pair, shape, strict=True):
        beyond = part[(part < 0) | (part >= extent)]
        if len(beyond):
            message = (
                f"structure names {name} {beyond[0]}; the Jacobian at {where} has shape {shape}, so {name}s 0 to "
                f"{extent - 1}"
            )
            raise StructureError(message)
    return sparse_library().csr_array((np.ones(len(pair[0]), bool), pair), shape=shape)


def _require_floating(argument: Any, number: int, where: str) -> None:
    leaves, _ = flatten(argument)
    if leaves and not any(map(carries_derivative, leaves)):
        message = (
            f"argument {number} of sparse_jacobian at {where} is {spec_of(leaves[0])}, which carries no derivative; "
            "convert it with .astype(float), or choose another argnums"
        )
        raise NotDifferentiableError(message)


def _refuse(leaves: Leaves, what: str, where: str) -> None:
    for spec, value in zip(leaves.specs, leaves.values, strict=True):
        if isinstance(value, Handle):
            message = (
                f"{what} of sparse_jacobian at {where} is traced; a sparse matrix holds no tracers; use jacobian or "
                "jvp in a trace"
            )
            raise NotDifferentiableError(message)
        if spec.dtype.kind == "c":
            message = (
                f"{what} of sparse_jacobian at {where} is {spec}; write f in real and imaginary parts, or use jacobian"
            )
            raise NotDifferentiableError(message)
        if spec.dtype.char == "e":
            message = (
                f"{what} of sparse_jacobian at {where} is {spec}, which scipy.sparse does not hold; convert it "
                "with .astype(float)"
            )
            raise NotDifferentiableError(message)


def _colours(pattern: Any, limit: int | None) -> Any:
    """The group of each column; None where they take ``limit`` groups or more, which is known at once where a row is
    as full as that."""
    if limit is not None and pattern.shape[0] and np.max(np.diff(pattern.indptr)) >= limit:
        return None
    colours = groups_of_columns(pattern)
    return None if limit is not None and _count(colours) >= limit else colours


def _count(colours: NDArray[np.int64]) -> int:
    return int(colours.max()) + 1 if len(colours) else 0


def _by_colour(
    of_entries: NDArray[np.int64], of_lines: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """For each colour the places of its entries, and its lines; in all as long as there are entries and lines."""
    count = _count(of_lines)
    entries, lines = np.argsort(of_entries, kind="stable"), np.argsort(of_lines, kind="stable")
    ends = (np.cumsum(np.bincount(of, minlength=count)) for of in (of_entries, of_lines))
    for some, members in zip(
        *(np.split(order, end[:-1]) for order, end in zip((entries, lines), ends, strict=True)), strict=True
    ):
        if len(some):
            yield some, members


def _split(vector: NDArray[Any], leaves: Leaves) -> Any:
    """A vector as the structure of the leaves, each of its own shape and dtype."""
    parts, start = [], 0
    for spec in leaves.specs:
        part = vector[start : start + spec.size].reshape(spec.shape).astype(spec.dtype)
        parts.append(part if spec.shape else part[()])
        start += spec.size
    return leaves.structured(parts)


def joined(tree: Any, leaves: Leaves) -> NDArray[Any]:
    """The derivatives at the leaves of a structure as one vector."""
    parts = [np.reshape(value, -1) for value in leaves_of(tree).values]
    return np.concatenate(parts) if parts else np.zeros(0)


def _dtype(outs: Leaves, given: Leaves) -> Any:
    return (
        np.result_type(*(spec.dtype for spec in (*outs.specs, *given.specs)))
        if outs.specs or given.specs
        else np.dtype(float)
    )
