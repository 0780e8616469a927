"""Checks of what a rule returns: that there is a rule, the count, None, shape, dtype and value of its cotangents."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from pullback.rules.unbroadcast import project
from pullback.testing.comparing.bits import describe, same_bits, twins
from pullback.testing.comparing.differences import (
    Derivative,
    Path,
    derivatives,
    flatten,
    inner,
    random_like,
    rounding_of,
    tolerance,
    widened,
)
from pullback.testing.comparing.faults import Fault
from pullback.testing.gradients.jacobian_check import TRUSTED
from pullback.testing.primitives.calls import SEED, PrimitiveCall, Use, WrongCountError, fits_shape
from pullback.words.specs import carries_derivative, spec_of

ALL_ELEMENTS = 48
"""Elements up to which every partial derivative is formed; above, six random directions."""
DIRECTIONS = 6


def missing_rules(call: PrimitiveCall) -> Iterator[Fault]:
    """An active operand without a rule."""
    prim = call.primitive
    for position in call.active:
        operand = prim.rule_name(position)
        if not prim.rules.get(operand):
            yield Fault(
                "missing rule",
                f"operand {call.name(position)} of {prim.name} carries a derivative and has no VJP rule; "
                f"declare one with @{prim.name}.vjp({operand!r}), or list it in nondiff=({operand!r},) if it has no "
                "derivative",
            )


def failing_rules(call: PrimitiveCall) -> Iterator[Fault]:
    """A rule that raises, a joint rule that returns another number of cotangents than operands."""
    for place, use in enumerate(call.uses):
        outcome = call.outcomes[place]
        if isinstance(outcome, WrongCountError):
            names = ", ".join(map(repr, use.rule.operands))
            yield Fault(
                "wrong count",
                f"{use.label} returned {outcome.number} cotangent{'s' * (outcome.number != 1)}, expected a tuple of "
                f"{len(use.rule.operands)}, one for each of {names}; return None only for an operand that is not in "
                "needed",
            )
        elif isinstance(outcome, Exception):
            yield Fault(
                "rule raised",
                f"{use.label} raised {type(outcome).__name__}: {outcome}; it gets ct as {_seed_words(call)} and the "
                f"values ({', '.join(use.rule.reads)}) of the call; see the traceback by calling rule.fn yourself",
            )


def wrong_kinds(call: PrimitiveCall) -> Iterator[Fault]:
    """None, a tuple from a rule for one operand, a wrong shape, a wrong dtype."""
    for place, use in call.ran():
        for position in use.positions:
            raw = call.outcomes[place][use.place(position)]
            if raw is None:
                yield Fault(
                    "None returned",
                    f"{use.label} returned None for {call.name(position)}, expected "
                    f"{spec_of(call.operands[position])}; return "
                    f"np.zeros_like(...) for no dependence, or list the operand in nondiff=",
                )
            elif isinstance(raw, tuple | list):
                yield Fault(
                    "wrong count",
                    f"{use.label} returned {len(raw)} cotangents, expected one for {call.name(position)}; return the "
                    f"array itself, or declare a joint rule: @{call.primitive.name}.vjp('a', 'b')",
                )
            else:
                yield from _shape_and_dtype(call, use, position, np.asarray(raw))


def _shape_and_dtype(call: PrimitiveCall, use: Use, position: int, raw: NDArray[Any]) -> Iterator[Fault]:
    spec = spec_of(call.operands[position])
    if not fits_shape(call, position, raw.shape):
        yield Fault(
            "wrong shape",
            f"{use.label} returned shape {raw.shape} for {call.name(position)}, expected {spec.shape} or a broadcast "
            f"of it, which the executor sums; ct has {_seed_words(call)}",
        )
    if raw.dtype.kind not in "fc":
        yield Fault(
            "wrong dtype",
            f"{use.label} returned {raw.dtype.name} for {call.name(position)}, expected {spec.dtype.name}; compute the "
            "cotangent from ct, which is floating or complex",
        )
        return
    values = (*call.operands, *call.first.outputs, *call.first.residuals.values())
    # Python numbers are weak and set no dtype.
    dtypes = [v.dtype for v in values if isinstance(v, np.ndarray | np.generic) and carries_derivative(v)]
    least = min(map(_precision, [spec.dtype, *_ct_dtypes(call)]))
    most = max(map(_precision, [spec.dtype, *dtypes]))
    if _precision(raw.dtype) < least:
        yield Fault(
            "wrong dtype",
            f"{use.label} returned {raw.dtype.name} for {call.name(position)}, expected {spec.dtype.name}: digits are "
            f"lost; do not cast to {raw.dtype.name}",
        )
    elif _precision(raw.dtype) > most:
        yield Fault(
            "wrong dtype",
            f"{use.label} returned {raw.dtype.name} for {call.name(position)}, expected {spec.dtype.name}: nothing in "
            "the call is that wide, and the gradient takes twice the bytes; multiply by Python numbers, not by NumPy "
            "scalars or arrays of float64",
        )


def wrong_values(call: PrimitiveCall) -> Iterator[Fault]:
    """A cotangent that differs from the transpose of the numeric Jacobian."""
    tables: dict[int, list[tuple[Any, Derivative]]] = {}
    for _, use in call.sound():
        for position in use.positions:
            if position not in tables:
                tables[position] = numeric_columns(call, position)
            alone = (evolve(use, positions=(position,)),) if len(use.positions) > 1 else ()
            faults = (_compare(call, u, position, seed, tables[position]) for u in (use, *alone) for seed in call.seeds)
            fault = next(filter(None, faults), None)
            if fault is not None:
                yield fault


def numeric_columns(call: PrimitiveCall, position: int) -> list[tuple[Any, Derivative]]:
    """(direction, J direction) for the operand at ``position``: every element where there are few, random directions
    where many."""
    x = np.asarray(call.operands[position])
    if x.size == 0 or flatten(call.first.outputs).size == 0:
        return []
    rng = np.random.default_rng(SEED + position)
    wide = x.dtype.kind == "c"
    directions = [random_like(rng, np.zeros(x.shape, np.complex128 if wide else np.float64)) for _ in range(DIRECTIONS)]
    if x.size <= ALL_ELEMENTS:
        units = list(np.eye(x.size).reshape(x.size, *x.shape))
        directions = [directions[0], *units, *([1j * unit for unit in units] if wide else [])]
    path = forward_path(call, position)
    columns = derivatives([path(v) for v in directions], rounding_of(_operands_moved(call)))
    return list(zip(directions, columns, strict=True))


def forward_path(call: PrimitiveCall, position: int) -> Any:
    """``v -> (t -> outputs at operand + t v)``, in float64 where the forward takes it: differences then see more
    digits than the rule."""
    operands = _operands_moved(call)

    def along(v: Any) -> Path:
        def phi(t: Any) -> NDArray[Any]:
            moved = list(twins(operands, writeable=True))
            moved[position] = _moved(operands[position], t, v)
            return flatten(_forward(call, tuple(moved)))

        return phi

    return along


def _operands_moved(call: PrimitiveCall) -> tuple[Any, ...]:
    return widened(call.operands, lambda values: flatten(_forward(call, twins(values, writeable=True))))


def _moved(x: Any, t: Any, v: Any) -> Any:
    if isinstance(x, np.ndarray):
        moved = x + t * v
        # A real step keeps the operand's dtype (float16 where the forward takes no other); an imaginary one makes it
        # complex.
        return moved if isinstance(t, complex) else moved.astype(x.dtype)
    moved = np.asarray(x + t * v)[()]
    return moved.item() if isinstance(x, float | complex) and not isinstance(x, np.generic) else moved


def _forward(call: PrimitiveCall, operands: tuple[Any, ...]) -> tuple[Any, ...]:
    value = call.primitive.forward(*operands, **call.params)
    value = value[0] if call.primitive.residuals else value
    return tuple(value) if call.primitive.outputs else (value,)


def _compare(
    call: PrimitiveCall, use: Use, position: int, seed: Any, table: list[tuple[Any, Derivative]]
) -> Fault | None:
    """The fault of one cotangent against the table, or None."""
    if not table:
        return None
    try:
        raw = call.results(use, seed)[use.place(position)]
        if raw is None:
            return Fault(
                "None returned",
                f"{use.label} returned None where needed names this operand alone; return its cotangent",
            )
        cotangent = project(np.asarray(raw), spec_of(call.operands[position]))
    except Exception as error:  # noqa: BLE001 - whatever a rule raises is what is reported
        words = "with None for the outputs that are not used " if isinstance(seed, tuple) else ""
        return Fault(
            "rule raised",
            f"{use.label} {words}raised {type(error).__name__}: {error}; unused outputs have the cotangent None",
        )
    tol = tolerance(call.operands[position], *(v for v in _seed_parts(seed) if v is not None), *call.first.outputs)
    rows = judge(cotangent, _flat_seed(call, seed), table)
    scale = np.array([row.scale for row in rows])
    floor = 0.01 * np.max(scale, initial=0.0) + 1e-6
    trusted = [row for row in rows if np.isfinite(row.expected) and row.error <= TRUSTED * (row.scale + floor)]
    if not trusted:
        return Fault(
            "unchecked value",
            f"no numeric derivative of {call.primitive.name} with respect to {call.name(position)} exists at these "
            f"operands, so {use.label} cannot be judged; choose operands inside the domain and away from jumps",
        )
    wrong = [r for r in trusted if not abs(r.value - r.expected) <= tol * (r.scale + floor) + 10 * r.error]
    return _value_fault(call, use, position, wrong, len(trusted), tol) if wrong else None


@frozen(eq=False)
class Comparison:
    """One comparison: <cotangent, direction> by the rule and as expected, the size of the sum's terms, the error of
    ``expected``."""

    direction: Any
    value: float
    expected: float
    scale: float
    error: float
    method: str


def judge(cotangent: Any, ct: NDArray[Any], table: list[tuple[Any, Derivative]]) -> list[Comparison]:
    """<J'ct, v> beside <ct, J v> for every column."""
    rows = []
    for v, column in table:
        active = ct != 0
        value, error, weight = column.value[active], column.error[active], ct[active]
        scale = float(np.sum(np.abs(weight) * np.abs(value)))
        rows.append(
            Comparison(
                v,
                inner(cotangent, v),
                inner(weight, value),
                scale,
                float(np.sum(np.abs(weight) * error)),
                column.method,
            )
        )
    return rows


def _value_fault(
    call: PrimitiveCall, use: Use, position: int, wrong: list[Comparison], total: int, tol: float
) -> Fault:
    units = [r for r in wrong if np.count_nonzero(r.direction) == 1]
    worst = max(units or wrong, key=lambda r: abs(r.value - r.expected) if np.isfinite(r.value) else np.inf)
    where = "along a random direction"
    if units:
        index = tuple(int(k) for k in np.argwhere(np.asarray(worst.direction))[0]) if np.ndim(worst.direction) else ()
        part = " (minus the imaginary part)" if np.iscomplexobj(worst.direction) else ""
        where = f"at element {index}{part}" if index else f"at the only element{part}"
    return Fault(
        "wrong value",
        f"{use.label} gives {worst.value:.10g} {where} of {call.name(position)}, expected {worst.expected:.10g} by "
        f"{worst.method}; "
        f"{len(wrong)} of {total} comparisons differ by more than {tol:.0e}. Correct the formula; if the operands sit "
        "at a kink or tie, move them off it",
    )


def differing_alternatives(call: PrimitiveCall) -> Iterator[Fault]:
    """Alternatives of one rule that do not give the same bits: the gradient would depend on what a policy holds."""
    reference: dict[int, tuple[Use, Any]] = {}
    for place, use in call.sound():
        for position in use.positions:
            value = project(np.asarray(call.outcomes[place][use.place(position)]), spec_of(call.operands[position]))
            before = reference.setdefault(position, (use, value))
            if not same_bits(before[1], value):
                yield Fault(
                    "differing alternatives",
                    f"{use.label} and the one that reads ({', '.join(before[0].rule.reads)}) give other bits, so the "
                    "gradient would depend on the policy; let both do the same operations, the second on a value it "
                    "computes as the forward does",
                )


def _precision(dtype: np.dtype[Any]) -> int:
    return dtype.itemsize // (2 if dtype.kind == "c" else 1)


def _seed_parts(seed: Any) -> tuple[Any, ...]:
    return seed if isinstance(seed, tuple) else (seed,)


def _ct_dtypes(call: PrimitiveCall) -> list[np.dtype[Any]]:
    return [v.dtype for v in _seed_parts(call.seeds[0]) if v is not None] or [np.dtype(np.float64)]


def _seed_words(call: PrimitiveCall) -> str:
    parts = [describe(v) for v in _seed_parts(call.seeds[0])]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _flat_seed(call: PrimitiveCall, seed: Any) -> NDArray[Any]:
    """The seed beside the flat outputs: zeros where it is None."""
    parts = zip(_seed_parts(seed), call.first.outputs, strict=True)
    return flatten(np.zeros_like(np.asarray(out)) if ct is None else ct for ct, out in parts if carries_derivative(out))
