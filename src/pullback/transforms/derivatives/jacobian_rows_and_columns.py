"""How a dense Jacobian is computed: by rows, or by columns.

A row is a pull; rows are pulled together where a policy runs steps again. A column is a run of the function with a
tangent or, for a function whose record is small, one call of its recorded derivative.
"""

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from attrs import define, evolve, field

from pullback.memory.in_force import policy_in_force
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle, value
from pullback.recording.tape import Tape
from pullback.tracing.running import Purpose, lowered
from pullback.transforms.derivatives.argnums import function_of_chosen, name_of
from pullback.transforms.derivatives.forward import LinearMap, jvp, tangents_within
from pullback.transforms.derivatives.jacobian_blocks import Blocks, Leaves, by_argument, leaves_of, make_blocks
from pullback.transforms.derivatives.pulls import Pull
from pullback.transforms.derivatives.reverse import forward, split_aux
from pullback.transforms.derivatives.seed_checks import require_complex_linear
from pullback.words.digests import same_bits
from pullback.words.errors import NotDifferentiableError, ReplayError
from pullback.words.specs import ArraySpec
from pullback.words.structures import flatten, map_leaves

COLUMN_COST = 1.5
"""The cost of a column in rows, about: forward mode computes values and tangents, a pull only cotangents."""
FEW_COLUMNS = 2
"""Columns up to which it is cheaper to run the function again for each than to record its derivative."""
RECORDED_BYTES = 2**25
"""The derivative of a function is recorded only where the record of the function holds no more than this."""
SEED_BYTES = 2**26
"""About what the cotangents of rows that are pulled together may hold, unless ``chunk`` says otherwise."""

ENOUGH = 100
"""Columns computed one by one after which it pays to generate a function for many."""
ENOUGH_ROWS, MOST_RECORDS = 400, 1000
"""Rows that were pulled after which it pays to generate a function for many, of a function of so many records."""
TOGETHER = 64
"""How many columns are asked for together where the function is run for each."""
MOST_KNOWN = 64
_KNOWN: dict[Any, "KnownColumns"] = {}
"""What is known of the columns of matrices that are asked for anew."""

REPEATABLE = Purpose(repeatable=True, joins=True)

Pushes = Callable[[list[list[Any]]], list[list[Any]]]
"""A function that takes the tangents of the input leaves (None for 0), for each of several, to those of the output
leaves."""


@define(eq=False)
class KnownColumns:
    """What the calls of one Jacobian by columns leave to the next."""

    n_columns: int = 0
    """How many were computed one by one, as far as that is counted."""
    tangents: Any = None
    """What is known of the tangents of the function, once these are many."""
    n_rows: int = 0
    outs: "tuple[list[ArraySpec], Leaves, list[int]] | None" = None
    """What was differentiated by, by rows, what came out, and which of that depends on it."""
    cotangents: Any = None
    """What is known of the pull of the function, likewise."""

    @classmethod
    def of(cls, f: Any, *what: Any) -> "KnownColumns":
        """What calls of other functions of the code of ``f`` have left, too, where ``f`` has nothing of its own: no
        cells and no defaults. What was made of one that reads globals keeps these, so their id is not given again."""
        if type(f) is not FunctionType or f.__closure__ or f.__defaults__ or f.__kwdefaults__:
            return cls()
        if len(_KNOWN) > MOST_KNOWN:
            _KNOWN.clear()
        return _KNOWN.setdefault((f.__code__, id(f.__globals__), *what), cls())


@define(eq=False)
class Task:
    """One Jacobian to compute: the call, the positions of the arguments to differentiate by, what the user allows."""

    f: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Any
    where: Sequence[int]
    what: str
    """The name of the matrix, for messages."""
    limit: int | None
    has_aux: bool
    holomorphic: bool
    known: "KnownColumns | None" = None
    """What earlier calls have left."""
    arguments: tuple[Leaves, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.arguments = tuple(leaves_of(self.args[k]) for k in self.where)

    @property
    def specs(self) -> list[ArraySpec]:
        """The specs of all input leaves that carry derivatives."""
        return [spec for leaves in self.arguments for spec in leaves.specs]

    def recorded(self, policy: Any, *, rows_only: bool) -> tuple[Blocks, Any]:
        """The Jacobian and aux, from one recorded run: by rows, or by columns where there are far fewer and
        ``rows_only`` is False."""
        governing = policy_in_force(policy)
        found = self._rows_together(rows_only=rows_only) if type(governing) is SaveAll else None
        if found is not None:
            return found, None
        traced, pull = forward((self.f, self.args, self.kwargs), self.where, governing, REPEATABLE)
        try:
            out, aux = split_aux(traced.out, has_aux=self.has_aux)
            pull.out_leaves, pull.out_definition = flatten(out)
            outs = leaves_of(out)
            blocks = self._blocks(outs)
            if self._goes_by_rows(outs, rows_only=rows_only):
                self._fill_rows(blocks, pull, traced.tape)
            elif (
                type(governing) is SaveAll
                and self._columns(outs) > FEW_COLUMNS
                and pull.report.live_bytes <= RECORDED_BYTES
            ):
                linear = LinearMap(pull, outs, SaveAll())
                self._fill_columns(blocks, linear.each, self._at_once(linear.nbytes))
            else:
                before = map_leaves(lambda leaf: lowered(leaf, traced.tape), out)
                pull.close()
                self._fill_columns(blocks, lambda several: [self._pushed(one, before)[0] for one in several])
            return blocks, map_leaves(lambda leaf: lowered(leaf, traced.tape), aux)
        finally:
            pull.close()

    def _goes_by_rows(self, outs: Leaves, *, rows_only: bool) -> bool:
        return rows_only or COLUMN_COST * self._columns(outs) >= self._rows(outs)

    def _rows_together(self, *, rows_only: bool) -> Blocks | None:
        """The Jacobian by one generated function for many rows; None before that pays, and where there is none."""
        known = self.known
        if known is None or known.outs is None or known.n_rows < ENOUGH_ROWS or not self._may_go_together():
            return None
        specs, outs, reached = known.outs
        if specs != self.specs or not self._goes_by_rows(outs, rows_only=rows_only):
            return None
        rows = [(j, k) for j in reached for k in range(outs.specs[j].size)]
        if len(rows) * max((spec.nbytes for spec in (*specs, *outs.specs)), default=0) > (self.limit or SEED_BYTES):
            return None
        from pullback.staging.pulls.repeated_tangents import RepeatedTangents  # noqa: PLC0415 - as in _together

        if known.cotangents is None:
            known.cotangents = RepeatedTangents()
        function = function_of_chosen(self.f, self.args, {}, self.where)

        def pulled(leaves: Sequence[Any], seeds: Sequence[Any]) -> list[Any]:
            inputs = tuple(by_argument(self.arguments, leaves))
            traced, pull = forward((function, inputs, {}), range(len(inputs)), SaveAll(), REPEATABLE)
            pull.out_leaves, pull.out_definition = flatten(traced.out)
            [cts] = pull.each(list(leaves_of(traced.out).values), [list(seeds)], free=False, generated=False)
            pull.close()
            return cts

        def program(leaves: list[Any], seeds: Sequence[Any]) -> list[Any]:
            return [ct if isinstance(ct, Handle) else None for ct in pulled(leaves, seeds)]  # else it is 0

        values = [value for leaves in self.arguments for value in leaves.values]
        seeds = [_only(j, unit(outs.specs[j], k), len(outs.specs)) for j, k in rows]
        answers = known.cotangents.of(
            self.f, (self.args, self.where), seeds, program, lambda one: pulled(values, one), specs, outs.specs
        )
        if answers is None:
            return None
        self.f(*self.args)  # which is proved to do the same: for what NumPy warns of
        blocks = self._blocks(outs)
        for (j, k), cts in zip(rows, answers, strict=True):
            for block, ct in zip(blocks.rows[j], cts, strict=True):
                block.put(k, ct, column=False)
        return blocks

    def _may_go_together(self) -> bool:
        return not (self.kwargs or self.has_aux or self.holomorphic) and list(self.where) == sorted(self.where)

    def by_columns(self) -> tuple[Blocks, Any]:
        """The Jacobian and aux, from one run of the function for each column."""
        for number, leaves in zip(self.where, self.arguments, strict=True):
            if not leaves.specs and leaves.places:
                raise NotDifferentiableError(
                    f"argument {number}, in which the {self.what} is asked for, has no floating or complex leaf; "
                    "choose another"
                )
        specs = self.specs
        some_leaf = next((k for k, spec in enumerate(specs) if spec.size), None)
        first = [unit(spec, 0) if k == some_leaf else None for k, spec in enumerate(specs)]
        out_tangents, out, aux = self._pushed(first, None)
        outs, ready = leaves_of(out), [out_tangents]
        blocks = self._blocks(outs)

        def pushes(several: list[list[Any]]) -> list[list[Any]]:
            found = self._together(several, outs)
            if found is None:
                return [ready.pop() if ready else self._pushed(one, out)[0] for one in several]
            ready.clear()
            return found

        nbytes = sum(spec.nbytes for spec in (*outs.specs, *specs))
        self._fill_columns(blocks, pushes, min(TOGETHER, self._at_once(nbytes)))
        return blocks, aux

    def _together(self, several: list[list[Any]], outs: Leaves) -> list[list[Any]] | None:
        """The columns along these directions by one generated function; None before that pays, and where there is
        none."""
        known = self.known
        if known is None or not self._may_go_together():
            return None
        if known.n_columns < ENOUGH:
            known.n_columns += len(several)
            return None
        # As in pulls.py: few programs ask for many columns.
        from pullback.staging.pulls.repeated_tangents import RepeatedTangents  # noqa: PLC0415

        if known.tangents is None:
            known.tangents = RepeatedTangents()

        def program(leaves: list[Any], tangents: Sequence[Any]) -> list[Any]:
            function = function_of_chosen(self.f, self.args, {}, self.where)
            return tangents_within(function, lambda inputs: by_argument(self.arguments, inputs), leaves, tangents)

        return known.tangents.of(  # type: ignore[no-any-return]
            self.f, (self.args, self.where), several, program, lambda one: self._pushed(one, None)[0], outs.specs
        )

    def _blocks(self, outs: Leaves) -> Blocks:
        """Blocks of zeros. Raises :class:`NotDifferentiableError` where ``holomorphic`` does not fit the dtypes."""
        both = any(spec.dtype.kind == "c" for spec in self.specs) and any(outs.is_complex)
        if both != self.holomorphic:
            texts = [", ".join(map(str, specs)) or "nothing" for specs in (outs.specs, self.specs)]
            raise NotDifferentiableError(
                f"the {self.what} is that of {texts[0]} in {texts[1]}: complex in complex has one only where it is "
                "holomorphic; say so by holomorphic=True, or differentiate the real and the imaginary part, or use "
                "jvp and vjp, which take complex values as pairs of real ones"
                if both
                else f"holomorphic=True is a claim about complex outputs of complex arguments; the {self.what} is that "
                f"of {texts[0]} in "
                f"{texts[1]}; leave it out"
            )
        return make_blocks(self.what, outs, self.arguments, self.limit)

    def _rows(self, outs: Leaves) -> int:
        """How many pulls the rows take: two for a complex row where there are real columns."""
        mixed = any(spec.dtype.kind != "c" for spec in self.specs)
        return sum(
            spec.size * (2 if turned and mixed else 1) for spec, turned in zip(outs.specs, outs.is_complex, strict=True)
        )

    def _columns(self, outs: Leaves) -> int:
        """How many runs the columns take: two for a complex column where there are real rows."""
        mixed = not all(outs.is_complex)
        return sum(spec.size * (2 if mixed and spec.dtype.kind == "c" else 1) for spec in self.specs)

    def _fill_rows(self, blocks: Blocks, pull: Pull, tape: Tape) -> None:
        """A pull for each row; where a policy runs steps again, it does so once for as many rows as fit."""
        outs, specs = list(blocks.outs.values), blocks.outs.specs
        reached = [
            j for j, out in enumerate(outs) if isinstance(out, Handle) and out._tape is tape and out._id is not None
        ]
        rows = [(j, k) for j in reached for k in range(specs[j].size)]  # of the others: zeros
        known, is_complex = self.known, any(spec.dtype.kind == "c" for spec in (*specs, *self.specs))
        if known is not None and not is_complex and len(tape.records) <= MOST_RECORDS:
            known.n_rows, known.outs = known.n_rows + len(rows), (self.specs, evolve(blocks.outs, values=()), reached)
        at_once = self._at_once(pull.seed_bytes)
        for first in range(0, len(rows), at_once):
            batch = rows[first : first + at_once]
            seeds_of = [self._seeds(specs[j], k) for j, k in batch]
            seeds = [_only(j, seed, len(outs)) for (j, _), row in zip(batch, seeds_of, strict=True) for seed in row]
            answers = iter(pull.each(outs, seeds, free=False))
            for (j, k), row in zip(batch, seeds_of, strict=True):
                cts = [next(answers) for _ in row]
                for block, *parts in zip(blocks.rows[j], *cts, strict=True):
                    block.put(
                        k,
                        parts[0] if len(parts) == 1 or block.argument.dtype.kind == "c" else parts[0] + 1j * parts[1],
                        column=False,
                    )
        if self.holomorphic:
            self._require_complex_linear(specs, self.specs, lambda *pair: pull.each(outs, pair, free=False))

    def _at_once(self, nbytes: int) -> int:
        """How many rows, or columns, are computed together where each holds so many bytes."""
        return max(1, (SEED_BYTES if self.limit is None else self.limit) // max(1, nbytes))

    def _seeds(self, spec: ArraySpec, k: int) -> list[Any]:
        """The seeds of row ``k`` of an output. A real argument gets the real part of its cotangent, so a complex row
        takes a second seed, -i, whose real part is the imaginary part of the row."""
        seed = unit(spec, k)
        turned = spec.dtype.kind == "c" and any(argument.dtype.kind != "c" for argument in self.specs)
        return [seed, -1j * seed] if turned else [seed]

    def _fill_columns(self, blocks: Blocks, pushes: Pushes, at_once: int = 1) -> None:
        """A push for each column; so many of them are asked for together."""
        specs, real = self.specs, not all(blocks.outs.is_complex)
        columns = [(j, k) for j, spec in enumerate(specs) for k in range(spec.size)]
        for first in range(0, len(columns), at_once):
            batch = columns[first : first + at_once]
            units = [unit(specs[j], k) for j, k in batch]
            seeds_of = [[one, 1j * one] if real and one.dtype.kind == "c" else [one] for one in units]
            seeds = [
                _only(j, seed, len(specs)) for (j, _), column in zip(batch, seeds_of, strict=True) for seed in column
            ]
            answers = iter(pushes(seeds))
            for (j, k), column_seeds in zip(batch, seeds_of, strict=True):
                column, *others = [next(answers) for _ in column_seeds]
                for other in others:  # the row of a real output is df/dx - i df/dy
                    column = [
                        a if c else a - 1j * b for a, b, c in zip(column, other, blocks.outs.is_complex, strict=True)
                    ]
                for row, part in zip(blocks.rows, column, strict=True):
                    row[j].put(k, part, column=True)
        if self.holomorphic:
            self._require_complex_linear(specs, blocks.outs.specs, lambda *pair: pushes(list(pair)))

    def _require_complex_linear(
        self, from_specs: Sequence[ArraySpec], to_specs: Sequence[ArraySpec], apply: Callable[..., list[list[Any]]]
    ) -> None:
        """Raise where the linear map ``apply`` (of several vectors at once) is not complex linear along one direction
        without a pattern."""
        seeds = [without_pattern(spec) if spec.dtype.kind == "c" else None for spec in from_specs]
        turned = [None if seed is None else 1j * seed for seed in seeds]
        require_complex_linear(self.f, to_specs, *apply(seeds, turned))

    def _pushed(self, tangents: list[Any], before: Any) -> tuple[list[Any], Any, Any]:
        """The tangents of the output leaves, the output and aux, from a run of the function; ``before`` is the output
        of the run before."""
        function = function_of_chosen(self.f, self.args, self.kwargs, self.where)
        primals, parts = tuple(self.args[k] for k in self.where), tuple(by_argument(self.arguments, tangents))
        told = {"has_aux": True} if self.has_aux else {}  # a caller serves calls without keywords
        out, out_tangent, *aux = jvp(function, primals, parts, **told)
        if before is not None:
            same_again(self.f, before, out)
        return flatten(out_tangent)[0], out, aux[0] if aux else None


def unit(spec: ArraySpec, k: int) -> Any:
    """1 at the flat index ``k``, 0 elsewhere."""
    if not spec.shape:
        return spec.dtype.type(1)
    seed = np.zeros(spec.size, spec.dtype)
    seed[k] = 1
    return seed.reshape(spec.shape)


def without_pattern(spec: ArraySpec) -> Any:
    """Real values between 1/2 and 3/2 without a pattern."""
    return np.random.default_rng(0).uniform(0.5, 1.5, spec.shape).astype(spec.dtype)[()]


def _only(j: int, seed: Any, count: int) -> list[Any]:
    """The seed at leaf ``j``, None at the others."""
    return [seed if k == j else None for k in range(count)]


def same_again(f: Any, before: Any, after: Any) -> None:
    """Raise :class:`ReplayError` where two runs of ``f`` returned different bits."""
    a, b = (flatten(tree)[0] for tree in (before, after))
    for first, second in zip(a, b, strict=True):
        x, y = np.asarray(value(first)), np.asarray(value(second))
        if x.shape != y.shape or x.dtype != y.dtype or not same_bits(x, y):
            raise ReplayError(
                f"{name_of(f)} gave other values when it was run again for another direction "
                f"({x.dtype}{list(x.shape)}, then {y.dtype}{list(y.shape)}); draw random numbers outside of it and "
                "pass them in, or record it once: mode='reverse', vjp"
            )
