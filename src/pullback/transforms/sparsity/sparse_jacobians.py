"""``sparse_jacobian``: columns (or rows) that share no row (or column) get one colour, and one derivative serves each
colour."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from pullback.memory.in_force import policy_in_force
from pullback.policies.base import PolicyOrAuto
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle
from pullback.transforms.derivatives.argnums import chosen, function_of_chosen
from pullback.transforms.derivatives.forward import jvp, linearize
from pullback.transforms.derivatives.jacobian_blocks import Leaves, leaves_of
from pullback.transforms.derivatives.jacobian_hessian_hvp import MODES
from pullback.transforms.derivatives.jacobian_rows_and_columns import SEED_BYTES
from pullback.transforms.derivatives.reverse import vjp
from pullback.transforms.sparsity.kept_groups import Grouped, KeptGroups, count
from pullback.transforms.sparsity.pattern_groups import sparse_library
from pullback.travelling.made_functions import made
from pullback.words.call_sites import public, site_here, site_text
from pullback.words.errors import NotDifferentiableError, StructureError
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten

FEW_COLOURS = 2
"""Colours up to which it is cheaper to run ``f`` again for each than to record its derivative."""


def sparse_jacobian(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    structure: Any = None,
    mode: str = "auto",
    policy: PolicyOrAuto = None,
    check: bool = True,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``f`` as a ``scipy.sparse.csr_array``.

    Columns without a row in common are computed by one derivative.

    Parameters
    ----------
    f
        Returns an array or a structure of arrays.
    argnums, argnames
        The argument, or several, which stand side by side: as in :func:`value_and_grad`.
    structure
        Which entries may be other than 0: a matrix of ``scipy.sparse``, a pair ``(rows, columns)`` of integer arrays,
        or a dense boolean matrix. None finds it out by following each element of the arguments through one run of ``f``
        (see :func:`dependencies`). Later calls compare the operations of ``f`` with those of that run, and follow it
        anew where any differs, as in another branch.
    mode
        ``"forward"`` (a tangent for each colour of columns), ``"reverse"`` (a pull for each colour of rows, under
        ``policy``) or ``"auto"``: whichever needs fewer. Under save-all ``"reverse"``, too, takes columns, by pulls of
        the recorded pull, where rows need four times as many.
    policy
        That of the reverse mode.
    check
        J v is compared with :func:`jvp` at one random v, which finds a structure that misses an entry.

    Returns
    -------
    A function of the arguments of ``f``. The shape of its result is ``(elements of the output, elements of the
    arguments)``: leaves in the order of their structures, each in C order, those that carry no derivative left out; the
    dtype is NumPy's promotion of all of them. The entries stored are those of the structure, also where they are 0.

    Raises
    ------
    StructureError
        Where the structure misses an entry (its row and column are named), and for one of another shape.
    NotDifferentiableError
        For complex values.
    PullbackError
        Where SciPy is missing.

    Source: Curtis, Powell and Reid, On the estimation of sparse Jacobian matrices, IMA J. Appl. Math. 13 (1974).

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> jacobian = pb.sparse_jacobian(lambda u: u[1:] * u[:-1])(np.arange(4.0))
    >>> jacobian.toarray()
    array([[1., 0., 0., 0.],
           [0., 2., 1., 0.],
           [0., 0., 3., 2.]])
    """
    which = chosen(argnums, argnames)
    if mode not in MODES:
        raise StructureError(f"mode={mode!r} of sparse_jacobian; choose one of {', '.join(map(repr, MODES))}")

    kept = KeptGroups(mode)

    def derivative(*args: Any, **kwargs: Any) -> Any:
        site = site_here()
        called, args, kwargs, where = which.call(f, args, kwargs)
        for number in where:
            _require_floating(args[number], number, site_text(site))
        function, primals = function_of_chosen(called, args, kwargs, where), tuple(args[k] for k in where)
        compressed = Compressed(function, primals, policy, site_text(site))
        rows_only = not isinstance(policy_in_force(policy), SaveAll)
        if structure is None:
            groups = kept.of_program(called, args, where, kwargs, rows_only=rows_only)
        else:
            groups = kept.of_pattern(compressed.shaped(as_pattern(structure)), rows_only=rows_only)
        return compressed.jacobian(groups, check=check)

    return made(
        "sparse_jacobian", f, public(derivative, like=f), argnums=argnums, argnames=argnames, structure=structure,
        mode=mode, check=check, policy=policy,
    )  # fmt: skip


def as_pattern(structure: Any) -> Any:
    """A structure as a boolean ``csr_array`` with each entry once; ``(rows, columns)`` stays a pair, since its shape is
    not known yet."""
    sparse = sparse_library()
    if isinstance(structure, tuple) and len(structure) == 2:
        rows, columns = (np.asarray(part).reshape(-1) for part in structure)
        if rows.dtype.kind not in "iu" or columns.dtype.kind not in "iu" or rows.shape != columns.shape:
            raise StructureError(
                f"structure=(rows, columns) is {rows.dtype}{list(rows.shape)} and "
                f"{columns.dtype}{list(columns.shape)}; "
                "give two integer arrays of one length, or a matrix"
            )
        return rows.astype(np.int64), columns.astype(np.int64)
    if sparse.issparse(structure):
        entries = structure.tocoo()
        return sparse.csr_array((np.ones(entries.nnz, bool), (entries.row, entries.col)), shape=entries.shape)
    dense = np.asarray(structure)
    if dense.ndim != 2 or dense.dtype.kind != "b":
        raise StructureError(
            f"structure is {dense.dtype}{list(dense.shape)}; give a boolean matrix, a matrix of scipy.sparse, or "
            "(rows, columns)"
        )
    return sparse.csr_array(dense)


@define(eq=False)
class Compressed:
    """The sparse Jacobian of a function of the differentiated arguments alone: columns, or rows, of one colour are
    computed by one derivative, which holds their sum, and are then told apart by the pattern."""

    f: Callable[..., Any]
    primals: tuple[Any, ...]
    policy: Any
    where: str
    """The call site, for messages."""
    arguments: Leaves = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.arguments = leaves_of(self.primals)
        _refuse(self.arguments, "an argument", self.where)

    def shaped(self, pattern: Any) -> Any:
        """A given pattern, of the shape of the Jacobian where it is a pair."""
        if not isinstance(pattern, tuple):
            return pattern
        outs = leaves_of(self.f(*self.primals))
        return _from_pair(pattern, (outs.size, self.arguments.size), self.where)

    def jacobian(self, groups: Grouped, *, check: bool) -> Any:
        """The Jacobian with the entries of a pattern."""
        pattern = groups.pattern
        by = self._by_rows if groups.by_rows else self._by_columns
        data, outs = by(pattern, groups.colours)
        result = sparse_library().csr_array((data, pattern.indices.copy(), pattern.indptr.copy()), shape=pattern.shape)
        if check and self.arguments.size:
            self._require_complete(result, outs)
        return result

    def _by_columns(self, pattern: Any, colours: NDArray[np.int64]) -> tuple[NDArray[Any], Leaves]:
        """The entries by one tangent for each colour of the columns, and the leaves of the output."""
        push: Any
        if count(colours) > FEW_COLOURS:
            out, push = linearize(self.f, *self.primals)
        else:
            out, push = self.f(*self.primals), lambda several: [jvp(self.f, self.primals, one)[1] for one in several]
        outs, rows, data = self._empty(out, pattern)
        for entries, seeds in _by_colour(colours[pattern.indices], colours, outs.size + self.arguments.size):
            tangents = push([_split(seed, self.arguments) for seed in seeds])
            for places, tangent in zip(entries, tangents, strict=True):
                data[places] = joined(tangent, outs)[rows[places]]
        return data, outs

    def _by_rows(self, pattern: Any, colours: NDArray[np.int64]) -> tuple[NDArray[Any], Leaves]:
        """The entries by one pull for each colour of the rows, and the leaves of the output."""
        out, pull = vjp(self.f, *self.primals, policy=self.policy)
        outs, rows, data = self._empty(out, pattern)
        for entries, seeds in _by_colour(colours[rows], colours, pull.seed_bytes // 8):
            cotangents = pull([_split(seed, outs) for seed in seeds])
            for places, cts in zip(entries, cotangents, strict=True):
                data[places] = joined(cts, self.arguments)[pattern.indices[places]]
        pull.close()
        return data, outs

    def _empty(self, out: Any, pattern: Any) -> tuple[Leaves, NDArray[np.int64], NDArray[Any]]:
        """The leaves of the output; the row of each entry, and zeros in its place. Raises :class:`StructureError` where
        the pattern has another shape."""
        outs = leaves_of(out)
        _refuse(outs, "the output", self.where)
        if pattern.shape != (outs.size, self.arguments.size):
            raise StructureError(
                f"structure has shape {tuple(pattern.shape)}, the Jacobian at {self.where} has "
                f"{(outs.size, self.arguments.size)}: elements of the output by elements of the arguments; give one of "
                "that shape, or None to have it found"
            )
        rows = np.repeat(np.arange(pattern.shape[0]), np.diff(pattern.indptr))
        return outs, rows, np.zeros(pattern.nnz, _dtype(outs, self.arguments))

    def _require_complete(self, result: Any, outs: Leaves) -> None:
        """Compare J v with ``jvp`` along a random v. Where they differ, raise :class:`StructureError` with an entry
        that the structure misses."""
        arguments = self.arguments
        seeds = _split(np.random.default_rng(0).standard_normal(arguments.size), arguments)
        v = joined(seeds, arguments)  # as rounded to the dtypes of the arguments
        tangent = joined(jvp(self.f, self.primals, seeds)[1], outs)
        scale = abs(result) @ np.abs(v) + np.abs(tangent)
        eps = max((float(np.finfo(spec.dtype).eps) for spec in (*outs.specs, *arguments.specs)), default=0.0)
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(np.abs(result @ v - tangent) > np.sqrt(eps) * scale)
        if not len(wrong):
            return
        i = int(wrong[0])
        _, pull = vjp(self.f, *self.primals)
        row = joined(pull(_split(np.eye(1, outs.size, i)[0], outs)), arguments)
        pull.close()
        row[result.indices[result.indptr[i] : result.indptr[i + 1]]] = 0
        j = int(np.argmax(np.abs(row)))
        if row[j] == 0:
            message = (
                f"row {i} of the sparse Jacobian at {self.where} gives {(result @ v)[i]:.6g} along a random direction, "
                f"jvp gives {tangent[i]:.6g}, and the structure misses no entry of that row: f gives other values, or "
                "takes other branches, when it is run again; make it repeatable"
            )
        else:
            message = (
                f"structure misses entry (row {i}, column {j}) of the Jacobian at {self.where}, which is {row[j]:.6g} "
                f"({len(wrong)} of {result.shape[0]} rows are wrong by it); add the entry, or pass structure=None to "
                "have it found"
            )
        raise StructureError(message)


def _from_pair(pair: tuple[Any, Any], shape: tuple[int, int], where: str) -> Any:
    for name, part, extent in zip(("row", "column"), pair, shape, strict=True):
        beyond = part[(part < 0) | (part >= extent)]
        if len(beyond):
            raise StructureError(
                f"structure names {name} {beyond[0]}; the Jacobian at {where} has shape {shape}, so {name}s 0 to "
                f"{extent - 1}"
            )
    return sparse_library().csr_array((np.ones(len(pair[0]), bool), pair), shape=shape)


def _require_floating(argument: Any, number: int, where: str) -> None:
    leaves, _ = flatten(argument)
    if leaves and not any(map(carries_derivative, leaves)):
        raise NotDifferentiableError(
            f"argument {number} of sparse_jacobian at {where} is {spec_of(leaves[0])}, which carries no derivative; "
            "convert it with .astype(float), or choose another argnums"
        )


def _refuse(leaves: Leaves, what: str, where: str) -> None:
    for spec, value in zip(leaves.specs, leaves.values, strict=True):
        if isinstance(value, Handle):
            raise NotDifferentiableError(
                f"{what} of sparse_jacobian at {where} is traced; a sparse matrix holds no tracers; use jacobian or "
                "jvp in a trace"
            )
        if spec.dtype.kind == "c":
            raise NotDifferentiableError(
                f"{what} of sparse_jacobian at {where} is {spec}; write f in real and imaginary parts, or use jacobian"
            )
        if spec.dtype.char == "e":
            raise NotDifferentiableError(
                f"{what} of sparse_jacobian at {where} is {spec}, which scipy.sparse does not hold; convert it "
                "with .astype(float)"
            )


def _by_colour(
    of_entries: NDArray[np.int64], of_lines: NDArray[np.int64], n_numbers: int
) -> Iterator[tuple[list[NDArray[np.int64]], list[NDArray[np.float64]]]]:
    """The places of the entries of each colour, and a seed with 1 at each of its lines (columns or rows); so many
    colours together as :data:`SEED_BYTES` allow, where one takes so many numbers."""
    order = np.argsort(of_entries, kind="stable")
    ends = np.cumsum(np.bincount(of_entries, minlength=count(of_lines)))
    left = iter([(colour, entries) for colour, entries in enumerate(np.split(order, ends[:-1])) if len(entries)])
    while some := list(islice(left, max(1, SEED_BYTES // max(1, 8 * n_numbers)))):
        yield [entries for _, entries in some], [(of_lines == colour).astype(float) for colour, _ in some]


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


def _dtype(outs: Leaves, arguments: Leaves) -> Any:
    specs = (*outs.specs, *arguments.specs)
    return np.result_type(*(spec.dtype for spec in specs)) if specs else np.dtype(float)
