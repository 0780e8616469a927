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

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from pullback.primitives.selecting.indexing import GETITEM
from pullback.recording.handles import FREE, SHARED, Handle, activate, kind_of, make, plain_value
from pullback.recording.regions import Region
from pullback.recording.results import in_form_of, inactive, wrap
from pullback.recording.tape import Tape
from pullback.rules.declaration import Primitive
from pullback.transforms.derivatives.tangents import Tangent
from pullback.transforms.sparsity.input_sets import Names, Sets
from pullback.transforms.sparsity.linear_structure import key_of, linear_map, structure_by_places, units_of
from pullback.transforms.sparsity.pattern_groups import coupled
from pullback.transforms.sparsity.programs import NotedProgram
from pullback.words.call_sites import site_here, site_text
from pullback.words.specs import carries_derivative


def is_pointwise(function: Any) -> bool:
    """Whether a forward is a ufunc of NumPy that works element by element; a product of matrices is a ufunc, too,
    with a signature."""
    return isinstance(function, np.ufunc) and function.signature is None


def by_place(prim: Primitive) -> bool:
    """Whether an element of the result depends on the elements of the operands at its own place alone."""
    return prim.elementwise or prim.reach == "place" or is_pointwise(prim.forward)


class Named(Tangent):
    """The names of one value, and the number of the operation that made it."""

    __slots__ = ("number",)

    def __init__(self, names: Names, number: Any) -> None:
        super().__init__(names)
        self.number = number


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
    program: NotedProgram = field(factory=NotedProgram)

    # As Tangents.quick.
    def quick(self, *_: Any) -> None:
        """None: names go the general way."""

    def entered(self, spec: Any) -> Named:
        """Names for the elements of an argument, each an input of its own."""
        number = self.program.note(spec.shape, spec.dtype)
        return Named(self.sets.sources(spec.size).reshape(spec.shape), number)

    def still(self, value: Any) -> Named:
        """The names of a value that no input reaches."""
        return Named(np.zeros(np.shape(value), np.int64), self.program.note("still", np.shape(value)))

    def push(
        self, prim: Primitive, operands: tuple[Any, ...], values: tuple[Any, ...], out: Any,
        residuals: Mapping[str, Any],  # noqa: ARG002
        params: Mapping[str, Any], active: tuple[int, ...],
    ) -> Any:  # fmt: skip
        """The handle, or handles, of a result, with the names of what reaches it."""
        given = {k: names_in(operands[k]) for k in active if prim.rule_name(k) not in prim.nondiff}
        if not given or not (prim.outputs or carries_derivative(out)):
            return inactive(self.tape, prim, operands, out, params)
        number = self._noted(prim, values, out, params, {k: operands[k]._id.number for k in given})
        if prim.outputs:
            handles = [
                self._part(value, Named(self.reaching(prim, values, np.shape(value), params, given), (number, k)))
                for k, value in enumerate(out)
            ]
            return in_form_of(out, handles)
        ident: Any = Named(self.reaching(prim, values, np.shape(out), params, given), number)
        return wrap(self.tape, prim, operands, params, out, ident, FREE)

    def _noted(
        self, prim: Primitive, values: tuple[Any, ...], out: Any, params: Mapping[str, Any], numbers: dict[int, Any]
    ) -> int:
        """The number of a call, noted with all that :meth:`reaching` takes from it."""
        if by_place(prim):
            return self.program.note(prim, tuple(numbers.items()), np.shape(out))
        outs = out if prim.outputs else (out,)
        return self.program.note(
            prim,
            tuple(numbers.items()),
            tuple(np.shape(one) for one in outs),
            tuple((np.shape(v), np.iscomplexobj(plain_value(v))) for v in values),
            params,
            tuple(None if k in numbers else v for k, v in enumerate(values)),
        )

    def mark(self, leaf: Any, tag: str) -> Any:
        """A value marked by ``name``: from here on its own elements are followed, too, beside what reaches them."""
        if not self.follows_named:
            return leaf
        value = leaf._value if isinstance(leaf, Handle) else leaf
        first, shape = self.sets.n_sources, np.shape(value)
        own = self.sets.sources(int(np.size(value))).reshape(shape)
        self.marks.setdefault(tag, []).append(np.arange(first, self.sets.n_sources))
        known = isinstance(leaf, Handle) and leaf._id is not None
        self.program.differs()  # what is followed for people is followed anew each time
        ident: Any = Named(self.sets.union(names_in(leaf), own) if known else own, None)
        if not isinstance(leaf, Handle):
            return make(kind_of(self.tape, value), value, ident, self.tape, SHARED)
        activate(leaf, ident)
        return leaf

    def _part(self, value: Any, ident: Any) -> Any:
        return make(kind_of(self.tape, value), value, ident, self.tape) if carries_derivative(value) else value

    def joined(self, p: Any, g: Any) -> Any:
        """The sum of two cotangents that are values here."""
        return p + g

    # As Tangents.write.
    def write(self, root: Any, region: Region, value: Any, *, add: bool, copied: bool) -> None:  # noqa: ARG002
        """The names of a root after a write: the region takes those of what was written, or besides its own where
        that was added."""
        shape = np.shape(root._value)
        numbers = [None if handle is None or handle._id is None else handle._id.number for handle in (root, value)]
        number = self.program.note("write", add, *numbers, shape, region.steps, region.key)
        activate(root, Named(self._written(root, region, value, add=add), number))

    def _written(self, root: Any, region: Region, value: Any, *, add: bool) -> Names:
        shape = np.shape(root._value)
        names = np.zeros(shape, np.int64) if root._id is None else names_in(root).copy()
        new = np.zeros((), np.int64) if value is None else names_in(value)
        if not add:
            region.write(names, new)
        elif value is not None:
            self._add(names, region, new)
        return names

    # As Tangents.solution.
    def solution(self, leaves: list[Any], given: list[Any], matvec: Any, solve: Any) -> list[Tangent]:  # noqa: ARG002
        """The names of the leaves of an implicit solution, given those of its equations: an unknown depends on what
        reaches any of the equations that it is coupled with, where ``matvec`` is the derivative of the equations by the
        unknowns.
        """
        self.program.differs()  # the pattern follows from the values at the solution
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

        of_equations, of_unknowns = coupled(structure_by_places(apply, units, len(every), len(every)), len(every))
        sets = self._gathered(of_equations, every, 2 * len(every))[of_unknowns]
        parts = zip(ends[:-1], ends[1:], shapes, strict=True)
        return [Named(sets[a:b].reshape(shape), None) for a, b, shape in parts]

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
        if by_place(prim):
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
            key_of(params),
            *(key_of(None if k in active else v) for k, v in enumerate(values)),
            tuple(given),
        )
        key += tuple(np.shape(v) for v in values)
        every = np.concatenate([names.reshape(-1) for names in given.values()])
        count = int(np.prod(shape, dtype=int))
        if key not in self.found:
            apply = linear_map(prim, values, params, tuple(given), active)
            structure = structure_by_places(apply, units_of(values, tuple(given)), len(every), count)
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
