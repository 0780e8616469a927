"""What a body returns from a step on handles without values, of which some leaves may be plain: called, or followed
instruction by instruction where that is to prove that it may rest."""

from collections.abc import Sequence
from itertools import compress
from typing import Any

from pullback.loops.bodies.proofs import Proof
from pullback.recording.handles import twin_of
from pullback.recording.tape import NOTHING_KEPT
from pullback.staging.shadow.operations import Constant
from pullback.words.structures import LEAF, flatten, flattened


def returned_on(
    starting: Sequence[Any], steps: Any, run: Any, proof: Proof | None, k: int, state: list[Any],
    active: Sequence[bool] | None,
) -> tuple[Any, Any]:  # fmt: skip
    """What the body returns from step ``k``, followed or called, on the handles ``starting``: those of the leaves that
    are ``active``, and behind them those of rows."""
    n = len(state) if active is None else sum(active)
    row, values = steps.entered(k, starting[n:])
    entering = state if active is None else list(compress(state, active))
    run.inputs = [*entering, *values] if values else entering
    if active is not None and proof is not None:
        proof.leaves = [leaf for leaf, enters in zip(state, active, strict=True) if not enters]
    carry = steps.carry_of(starting[:n] if active is None else given(active, state, starting))
    number = k + steps.lower
    return followed(proof, run, number, carry, row) or steps.call(number, carry, row)


def given(active: Sequence[bool], state: Sequence[Any], handles: Sequence[Any]) -> list[Any]:
    """What the body gets for the leaves of a state: handles for those that enter; else the leaf, of an array a copy,
    since the body may write to it."""
    left = iter(handles)
    return [next(left) if enters else twin_of(leaf) for leaf, enters in zip(state, active, strict=True)]


def followed(proof: Proof | None, run: Any, number: int, carry: Any, row: Any) -> tuple[Any, Any] | None:
    """What the body returns from a step that is followed; None where it has to be called, which begins with nothing
    done."""
    if proof is None or not proof.follows:
        return None
    found = proof.follow(number, carry, row, run.constants)
    if found is None:
        run.pool.serves_again(run.written)
        run.stands, run.outer, run.at, run.tape.kept = {}, [], 0, NOTHING_KEPT
        run.captured, run.values, run.constants = [], [], []
    return found


def gives_back(steps: Any, carry: Any, y: Any, ending: Sequence[Any]) -> list[Any] | None:
    """The plain values that a step has returned, the other leaves and outputs being these very handles; None where it
    has returned anything else, or in another structure."""
    if steps.definition is LEAF:
        if y is None and carry is ending[0] and len(ending) == 1:
            return []
        leaves: Any = (carry,)
    else:
        leaves, definition = flattened(carry, steps.definition) if steps.flat else flatten(carry)
        if definition is not steps.definition and definition != steps.definition:
            return None
    ys = () if y is None else _outputs_in(steps, y)
    if ys is None or len(leaves) + len(ys) != len(ending):
        return None
    plain = []
    for leaf, end in zip((*leaves, *ys) if ys else leaves, ending, strict=True):
        if leaf is not end:
            if type(end) is not Constant or not end.admits(leaf):
                return None
            plain.append(leaf)
    return plain


def _outputs_in(steps: Any, y: Any) -> Sequence[Any] | None:
    """The leaves of the output of a step; None where its structure is not that of the first."""
    if steps.y_definition is LEAF:
        return (y,)
    ys, definition = flatten(y)
    return ys if definition == steps.y_definition else None
