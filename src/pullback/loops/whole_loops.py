"""Loop functions that run as a whole: as the plain loops that they are, where nothing is held (outside any trace, and
in forward mode), and once more inside steps of plain code, where these are executed again."""

from array import array
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from pullback.loops.loop_record import LoopRecord
from pullback.loops.rerun import Steps, value_for, writable
from pullback.memory.in_force import using
from pullback.recording.handles import Handle, freeze, make, plain_value, twin_of
from pullback.recording.tape import Tape
from pullback.words.errors import StructureError
from pullback.words.specs import carries_derivative


def run_untraced(steps: Steps, state: list[Any], n: int | None, goes_on: Callable[[int, list[Any]], bool]) -> list[Any]:
    """The leaves of the last state and the stacked outputs, of ``n`` steps on arrays of our own, or as long as the loop
    goes on; the ledger counts them."""
    if n or (n is None and goes_on(0, state)):
        k = 0
        with steps.on_values():
            state = [twin_of(leaf) for leaf in state]
            while True:
                state = steps.plain(k, state)
                k += 1
                if k == n or (n is None and not goes_on(k, state)):
                    break
        steps.ledger.n_forward += k
    return [*state, *steps.outputs.taken()]


def run_forward_mode(
    steps: Steps,
    leaves: list[Any],
    xs: list[Any] | None,
    n: int | None,
    goes_on: Callable[[int, list[Any]], bool],
) -> list[Any]:
    """The same on handles of a forward trace: nothing of a step is held once the next has run."""
    tape = steps.enclosing
    assert tape is not None  # the forward trace
    state, ys, k = [_movable(leaf, tape) for leaf in leaves], [], 0
    steps.ledger.sweeps(n)
    try:
        while k < n if n is not None else goes_on(k, [plain_value(leaf) for leaf in state]):
            before = writable(state)
            state, y = steps.call_body(k + steps.lower, before, None if xs is None else [leaf[k] for leaf in xs])
            steps.require_same_specs([value_for(h, tape) for h in before], [value_for(h, tape) for h in state], k)
            ys.append(y)
            k += 1
            steps.ledger.n_forward += 1
    finally:
        steps.ledger.rests()
    return [*state, *(np.stack(column) for column in zip(*ys, strict=True))]


def _movable(leaf: Any, tape: Tape) -> Any:
    """A leaf of the state that a body may write to: a plain array becomes a buffer of the trace."""
    if isinstance(leaf, np.ndarray) and carries_derivative(leaf):
        return make(tape.kinds.buffer, twin_of(leaf), None, tape)
    return freeze(leaf) if isinstance(leaf, Handle) and leaf._tape is tape else leaf


def rerun_of(
    record: LoopRecord,
    anew: Callable[..., LoopRecord],
    leaves: list[Any],
    xs: list[Any] | None,
    closure: list[Any],
    wanted: "array[int]",
    verify: str,
) -> Callable[[list[Any]], tuple[list[Any], LoopRecord]]:
    """The function that runs the loop anew from the values of what entered: its results, and its new record. Between
    runs the ``closure``, handles of the body, holds no array for the loop's sake.

    Raises :class:`ReplayError` where the results have not the digests ``wanted``, unless ``verify`` is ``"off"``.
    """
    entering, x_entering, known, ambient = record.entering, record.x_entering, record.known, record.ambient
    fixed = [None if i is not None else twin_of(leaf) for i, leaf in zip(entering, leaves, strict=True)]
    fixed_xs = [None if i is not None else twin_of(leaf) for i, leaf in zip(x_entering, xs or (), strict=True)]
    has_xs = xs is not None
    randomness, random = record.chain.randomness, record.chain.start_random
    record.closure = closure
    surroundings = record.surroundings

    def rerun(values: list[Any]) -> tuple[list[Any], LoopRecord]:
        entered = iter(values)
        state = [next(entered) if i is not None else leaf for i, leaf in zip(entering, fixed, strict=True)]
        rows = [next(entered) if i is not None else leaf for i, leaf in zip(x_entering, fixed_xs, strict=True)]
        by_id = dict(zip(known, entered, strict=True))
        for handle in closure:
            if handle._id in by_id:
                handle._value = by_id[handle._id]
        # under the policy of the first run, not the one around the reverse pass, which may be another trace's
        watched = nullcontext() if surroundings is None else surroundings.put_back(lambda: True)
        with randomness.put_back(), using(ambient), watched:
            randomness.restore(random)
            again = anew(state, rows if has_xs else None, entering=entering, x_entering=x_entering)
            try:
                again.forward()
                again.closure = closure
                results = again.results()
                if verify != "off":
                    happened = "run again, the loop gave other bytes than in the first run"
                    again.chain.verifier.require(wanted, results, happened, "its result")
            except BaseException:
                again.release()
                raise
        return results, again

    return rerun


def scan_length(x_leaves: list[Any], length: int | None) -> int:
    """How many steps a ``scan`` has; raises :class:`StructureError` where its arrays do not agree."""
    if not all(map(np.ndim, map(plain_value, x_leaves))):
        raise StructureError("scan: a leaf of xs has no axis; give arrays with one slice for each step, or length=")
    lengths = {np.shape(plain_value(leaf))[0] for leaf in x_leaves}
    if length is not None:
        lengths.add(length)
    if len(lengths) != 1:
        raise StructureError(f"scan: the leading axes of xs and length= are {sorted(lengths)}; give one length")
    return int(lengths.pop())


def lasting_value(leaf: Any, value: Any) -> Any:
    """An initial value that a second reverse pass can start from: a handle's value by reference, a plain array
    copied."""
    if isinstance(leaf, Handle):
        freeze(leaf)
        return value
    return twin_of(value)
