"""Which inputs reach which values, element by element: a forward trace that carries names of sets (``patterns.Sets``)
for tangents.

What is found is never too little for the branches and indices of this run: what is not reached has derivative 0 there.
It may be too much:

- an elementwise operation passes on what reaches its operands, even where its derivative happens to be 0;
- views, indices and what else only moves elements are followed exactly, writes too;
- what declares its ``reach``, as reductions and scans do, is followed along its axes; the structure of any other linear
  operation (sums with given weights, products with a matrix) is found by products with random vectors, with the
  constants that it has in this run;
- in any other operation every element of the result depends on every element of the operands. Where that is so is
  noted (``coarse``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from pullback.memory.in_force import Tracing, next_level
from pullback.primitives.selecting.indexing import GETITEM
from pullback.recording.handles import FREE, SHARED, Handle, activate, kind_of, make, plain_value
from pullback.recording.regions import Region
from pullback.recording.results import inactive, wrap
from pullback.recording.tape import FORWARD, Tape
from pullback.rules.declaration import Primitive
from pullback.sparsity.input_sets import Names, Sets
from pullback.sparsity.linear_structure import _key, _linear_map, _structure, _units
from pullback.sparsity.pattern_groups import coupled, sparse_library
from pullback.tracing.running import Input, run_function
from pullback.tracing.tracer import KINDS
from pullback.transforms.tangents import Tangent
from pullback.words.call_sites import site_here, site_text
from pullback.words.specs import carries_derivative, spec_of
from pullback.words.structures import flatten, paths, unflatten


def is_pointwise(function: Any) -> bool:
    """Whether a forward is a ufunc of NumPy that works element by element; a product of matrices is a ufunc, too,
    with a signature."""
    return isinstance(function, np.ufunc) and function.signature is None


@define(eq=False)
class Influence:
    """What a trace does at every call and write: its ``Tape.tangents``."""

    tape: Tape
    follows_named: bool = False
    sets: Sets = field(factory=Sets)
    coarse: dict[tuple[str, str], None] = field(factory=dict)
    """Primitive and line of each operation in which all was taken to depend on all."""
    marks: dict[str, list[Names]] = field(factory=dict)
    """The columns of each named value, if those are followed, too."""
    found: dict[Any, Any] = field(factory=dict)
    """Structures of linear operations, by what they were found from."""

    def push(
        self, prim: Primitive, operands: tuple[Any, ...], values: tuple[Any, ...], out: Any,
        residuals: Mapping[str, Any],  # noqa: ARG002
        params: Mapping[str, Any], active: tuple[int, ...],
    ) -> Any:  # fmt: skip
        """The handle, or handles, of a result, with the names of what reaches it."""
        given = {k: names_in(operands[k]) for k in active if prim.rule_name(k) not in prim.nondiff}
        if not given or not (prim.outputs or carries_derivative(out)):
            return inactive(self.tape, prim, operands, out, params)
        if prim.outputs:
            handles = [self._part(value, self.reaching(prim, values, np.shape(value), params, given)) for value in out]
            return type(out)._make(handles) if hasattr(out, "_make") else tuple(handles)
        names = self.reaching(prim, values, np.shape(out), params, given)
        ident: Any = Tangent(names)
        return wrap(self.tape, prim, operands, params, out, ident, FREE)

    def mark(self, leaf: Any, tag: str) -> Any:
        """A value marked by ``name``: from here on its own elements are followed, too, beside what reaches them."""
        if not self.follows_named:
            return leaf
        value = leaf._value if isinstance(leaf, Handle) else leaf
        first, shape = self.sets.n_sources, np.shape(value)
        own = self.sets.sources(int(np.size(value))).reshape(shape)
        self.marks.setdefault(tag, []).append(np.arange(first, self.sets.n_sources))
        known = isinstance(leaf, Handle) and leaf._id is not None
        ident: Any = Tangent(self.sets.union(names_in(leaf), own) if known else own)
        if not isinstance(leaf, Handle):
            return make(kind_of(self.tape, value), value, ident, self.tape, SHARED)
        activate(leaf, ident)
        return leaf

    def _part(self, value: Any, names: Names) -> Any:
        if not carries_derivative(value):
            return value
        ident: Any = Tangent(names)
        return make(kind_of(self.tape, value), value, ident, self.tape)

    def joined(self, p: Any, g: Any) -> Any:
        """The sum of two cotangents that are values here."""
        return p + g

    # As Tangents.write.
    def write(self, root: Any, region: Region, value: Any, *, add: bool, copied: bool) -> None:  # noqa: ARG002
        """The names of a root after a write: the region takes those of what was written, or besides its own where
        that was added."""
        shape = np.shape(root._value)
        names = np.zeros(shape, np.int64) if root._id is None else names_in(root).copy()
        new = np.zeros((), np.int64) if value is None else names_in(value)
        if not add:
            region.write(names, new)
        elif value is not None:
            self._add(names, region, new)
        activate(root, Tangent(names))

    # As Tangents.solution.
    def solution(self, leaves: list[Any], given: list[Any], matvec: Any, solve: Any) -> list[Tangent]:  # noqa: ARG002
        """The names of the leaves of an implicit solution, given those of its equations: an unknown depends on what
        reaches any of the equations that it is coupled with, where ``matvec`` is the derivative of the equations by the
        unknowns.
        """
        shapes = [np.shape(leaf) for leaf in leaves]
        reach = [
            np.zeros(shape, np.int64) if names is None else names for names, shape in zip(given, shapes, strict=True)
        ]
        every = np.concatenate([np.asarray(names, np.int64).reshape(-1) for names in reach])
        ends = np.cumsum([0, *(int(np.prod(shape, dtype=int)) for shape in shapes)])
        units = np.concatenate([np.full(np.size(leaf), 1 + 1j if np.iscomplexobj(leaf) else 1.0) for leaf in leaves])

        def apply(vector: Any) -> Any:
            parts = [np.reshape(vector[a:b], shape) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]
            found = matvec([
                part if np.iscomplexobj(leaf) else np.real(part) for part, leaf in zip(parts, leaves, strict=True)
            ])
            return np.concatenate([np.reshape(leaf, -1) for leaf in found])

        of_equations, of_unknowns = coupled(_structure(apply, units, len(every), len(every)), len(every))
        sets = self._gathered(of_equations, every, 2 * len(every))[of_unknowns]
        return [Tangent(sets[a:b].reshape(shape)) for a, b, shape in zip(ends[:-1], ends[1:], shapes, strict=True)]

    def _add(self, names: Names, region: Region, new: Names) -> None:
        if not region.repeats:
            part = np.asarray(region.read(names))
            region.write(names, self.sets.union(part, np.broadcast_to(new, part.shape)))
            return
        places = np.asarray(region.read(np.arange(names.size).reshape(names.shape)))
        rows = np.concatenate([np.arange(names.size), places.reshape(-1)])
        every = np.concatenate([names.reshape(-1), np.broadcast_to(new, places.shape).reshape(-1)])
        names[...] = self._gathered(rows, every, names.size).reshape(names.shape)

    def reaching(
        self,
        prim: Primitive,
        values: tuple[Any, ...],
        shape: tuple[int, ...],
        params: Mapping[str, Any],
        given: Mapping[int, Names],
    ) -> Names:
        """The names of the sets that reach each element of a result."""
        if prim.elementwise or prim.reach == "place" or is_pointwise(prim.forward):
            return self.sets.union(*(np.broadcast_to(names, shape) for names in given.values()))
        if prim.view:  # a view hands on elements; what is no view may have added some
            (names,) = given.values()
            part = np.asarray(prim.forward(names, **params))
            if np.may_share_memory(part, names) or prim is GETITEM:
                return part
        together = {
            k: names
            for k, names in given.items()
            if prim.reach == "moved" or prim.view or (prim.rule_name(k) in prim.linear and prim.reach != "before")
        }
        parts: list[Names | None] = []
        if together:
            parts.append(self._through_linear(prim, values, shape, params, together, set(given)))
        for k in given.keys() - together.keys():
            if prim.rule_name(k) in prim.bilinear:
                parts.append(self._through_linear(prim, values, shape, params, {k: given[k]}, set(given)))
            else:
                parts.append(self._along_axes(prim, k, shape, params, given[k]))
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            self.coarse.setdefault((prim.name, site_text(site_here())))
            every = np.unique(np.concatenate([names.reshape(-1) for names in given.values()]))
            return np.full(shape, self.sets.union_of_rows(np.array([0, len(every)]), every)[0])
        return self.sets.union(*known)

    def _gathered(self, rows: NDArray[np.int64], names: Names, count: int) -> Names:
        """Row by row the union of names that are given with their rows, in any order."""
        pairs = np.unique(rows * self.sets.count + names)
        rows, names = pairs // self.sets.count, pairs % self.sets.count
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))])
        return self.sets.union_of_rows(starts, names)

    def _along_axes(
        self, prim: Primitive, k: int, shape: tuple[int, ...], params: Mapping[str, Any], names: Names
    ) -> Names | None:
        """Through a reduction, a scan or a sort, along its axis; None for any other operation."""
        if prim.reach == "reduced":
            if k:
                return np.full(shape, names.reshape(-1)[0]) if names.size == 1 else None
            kept = np.sum(names, axis=params["axis"], keepdims=True).shape
            if np.sum(names, axis=params["axis"], keepdims=params["keepdims"]).shape == shape:
                rows = np.broadcast_to(np.arange(int(np.prod(shape, dtype=int))).reshape(kept), names.shape)
                return self._gathered(rows.reshape(-1), names.reshape(-1), int(np.prod(shape, dtype=int))).reshape(
                    shape
                )
            return None
        if k or prim.reach not in {"before", "line"} or params["axis"] is None or names.shape != shape:
            return None
        return self._along_lines(names, params["axis"], ordered=prim.reach == "before")

    def _along_lines(self, names: Names, axis: int, *, ordered: bool) -> Names:
        """Each element of a line depends on those before it and itself, or on the whole line."""
        lines = np.moveaxis(names, axis, 0)
        result = np.empty(lines.shape, np.int64)
        sofar = np.zeros(lines.shape[1:], np.int64)
        for k, line in enumerate(lines):
            sofar = result[k] = self.sets.union(sofar, line)
        if not ordered:
            result[...] = sofar
        return np.moveaxis(result, 0, axis)

    def _through_linear(
        self, prim: Primitive, values: tuple[Any, ...], shape: tuple[int, ...], params: Mapping[str, Any],
        given: Mapping[int, Names],
        active: set[int],
    ) -> Names | None:  # fmt: skip
        """Through what is linear in the given operands together, by its structure."""
        key = (
            id(prim),
            shape,
            _key(params),
            *(_key(None if k in active else v) for k, v in enumerate(values)),
            tuple(given),
        )
        key += tuple(np.shape(v) for v in values)
        every = np.concatenate([names.reshape(-1) for names in given.values()])
        count = int(np.prod(shape, dtype=int))
        if key not in self.found:
            apply = _linear_map(prim, values, params, tuple(given), active)
            structure = _structure(apply, _units(values, tuple(given)), len(every), count)
            # What the key names by its id stays alive with it.
            self.found[key] = structure, prim, params, [v for v in values if not isinstance(v, np.ndarray)]
        structure = self.found[key][0]
        if structure is None:
            return None
        rows, columns = structure
        if rows is None:
            return np.asarray(np.concatenate([[0], every])[columns + 1].reshape(shape), np.int64)
        return self._gathered(rows, every[columns], count).reshape(shape)


def names_in(handle: Any) -> Names:
    """The names of a handle of this trace, an array of its shape."""
    return np.asarray(handle._id.value, np.int64)


@define(eq=False)
class Followed:
    """A run of a function: its outputs, and names of what reaches each of their elements."""

    sets: Sets
    inputs: list[Input]
    """The differentiable leaves of the arguments, in order; their elements are the first columns of the pattern."""
    marks: dict[str, list[Names]]
    """The columns of each value that bears a name, one array for each time it was made."""
    outputs: list[tuple[str, Names]]
    """Path and names of each differentiable leaf of the result."""
    is_complex: bool
    """Whether a leaf of the result is complex."""
    coarse: tuple[tuple[str, str], ...]

    def pattern(self) -> Any:
        """The sparse boolean matrix of outputs by inputs, and by named values: a ``csr_array``."""
        from_all = np.concatenate([np.zeros(0, np.int64), *(names.reshape(-1) for _, names in self.outputs)])
        sizes, members = self.sets.of(from_all)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        shape = (len(from_all), self.sets.n_sources)
        return sparse_library().csr_array((np.ones(len(members), bool), members, starts), shape=shape)


def follow(
    f: Callable[..., Any],
    args: Sequence[Any],
    argnums: Sequence[int],
    kwargs: Mapping[str, Any],
    *,
    named: bool = False,
) -> Followed:
    """One run of ``f`` in which every element of the arguments at ``argnums``, and of ``named`` values, is followed
    to the outputs."""
    tape = Tape(next_level(), KINDS)
    tape.mode = FORWARD
    influence = Influence(tape, named)
    tape.tangents = influence
    given, inputs = _entered(args, argnums, influence)
    try:
        with Tracing(tape):
            out = run_function(f, given, dict(kwargs), tape)
    finally:
        tape.close()
        tape.tangents = None  # a cycle with the tape
    leaves, _ = flatten(out)
    outputs, is_complex = [], False
    for leaf, path in zip(leaves, paths(out), strict=True):
        if carries_derivative(leaf):
            known = isinstance(leaf, Handle) and leaf._tape is tape and leaf._id is not None
            outputs.append((path, names_in(leaf) if known else np.zeros(np.shape(leaf), np.int64)))
            is_complex |= spec_of(leaf).dtype.kind == "c"
    return Followed(influence.sets, inputs, influence.marks, outputs, is_complex, tuple(influence.coarse))


def _entered(args: Sequence[Any], argnums: Sequence[int], influence: Influence) -> tuple[list[Any], list[Input]]:
    """The arguments, those at ``argnums`` with handles whose elements are inputs of their own."""
    tape, given = influence.tape, list(args)
    inputs: list[Input] = []
    for number in argnums:
        leaves, definition = flatten(args[number])
        entered = []
        for leaf, path in zip(leaves, paths(args[number]), strict=True):
            handle = leaf
            if carries_derivative(leaf):
                value = plain_value(leaf)
                names = influence.sets.sources(int(np.size(value))).reshape(np.shape(value))
                inputs.append(Input(f"argument {number}{path}", spec_of(value), value, None))
                ident: Any = Tangent(names)
                handle = make(kind_of(tape, value), value, ident, tape, SHARED)
            entered.append(handle)
        given[number] = unflatten(definition, entered)
    return given, inputs
