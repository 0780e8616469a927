"""A loop function inside steps of plain code: where these are executed again, the whole loop is run again."""

from array import array
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from pullback.loops.loop_record import LoopRecord
from pullback.memory.in_force import using
from pullback.recording.handles import twin_of


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
            again.forward()
            again.closure = closure
            results = again.results()
            if verify != "off":
                happened = "run again, the loop gave other bytes than in the first run"
                again.chain.verifier.require(wanted, results, happened, "its result")
        return results, again

    return rerun
