"""What a loop holds besides its state and its snapshots, as a journal tells it: what its first run has given, and the
cotangents on the way back.

A ``record`` is a :class:`~pullback.loops.functions.loop_record.LoopRecord`, ``told`` the text of its journal.
"""

from array import array
from collections.abc import Iterator, Sequence
from inspect import unwrap
from typing import Any

import numpy as np

from pullback.resuming.parts_beside import PartsBeside
from pullback.resuming.plain_values import decoded, encoded
from pullback.words.errors import ResumeError


def cells_of(call: Any) -> Iterator[tuple[str, Any]]:
    """What the function that runs the steps of a loop closes over, in its first run or in another one."""
    step = unwrap(call)
    return zip(step.__code__.co_freevars, step.__closure__ or (), strict=True)


def effects_of(call: Any) -> Any:
    """What the effects of a loop have given, from the function that runs its steps."""
    return dict(cells_of(call))["effects"].cell_contents


def told_effects(call: Any) -> Any:
    """What the effects of a loop have given, as text."""
    effects = effects_of(call)
    return encoded((list(effects.firsts), list(effects.lasts), list(effects.counts), effects.results))


def put_effects(call: Any, told: Any) -> None:
    """The effects that the killed run has called will not be called again."""
    effects, (firsts, lasts, counts, results) = effects_of(call), decoded(told)
    effects.firsts, effects.lasts, effects.counts = array("q", firsts), array("q", lasts), array("q", counts)
    effects.results = results


def note_first_run(record: Any, beside: PartsBeside, told: dict[str, Any]) -> None:
    """Per-step outputs so far, what a re-run is compared with, what effects have given."""
    steps = record.chain.steps
    outputs, verifier = steps.outputs, steps.verifier
    for k, stack in enumerate(outputs.stacks):
        beside.extend(f"y{k}", stack, outputs.n_written)
    if verifier.n_leaves:
        found = np.array(verifier.digests, np.uint64).reshape(-1, verifier.n_leaves)
        for name in [name for name in beside.rows if name.startswith("digests") and name != _digests(verifier.stride)]:
            del beside.rows[name]  # of every step, where now every second one has some
        beside.extend(_digests(verifier.stride), found, len(found), n_rows=max(len(found), record.n // verifier.stride))
    told["verifier"] = [verifier.n_seen, verifier.stride, verifier.n_leaves]
    told["effects"] = told_effects(steps.call)


def put_first_run(record: Any, beside: PartsBeside, told: dict[str, Any]) -> None:
    """Put the first run back. Step 0 has run: raises :class:`ResumeError` where it gave something else than then."""
    steps = record.chain.steps
    outputs, verifier = steps.outputs, steps.verifier
    own = list(verifier.digests[: verifier.n_leaves])
    verifier.n_seen, verifier.stride, verifier.n_leaves = told["verifier"]
    for name, rows, filled in beside.read_rows(told):
        if name.startswith("y") and outputs.stacks:
            outputs.stacks[int(name[1:])], outputs.n_written = filled, rows.n_done
        elif name.startswith("digests"):
            found = filled[: rows.n_done].ravel().tolist()
            if verifier.stride == 1 and own and found[: len(own)] != own:
                raise ResumeError(
                    f"step 0 of the {record.name} gave other bytes than in the run that wrote the journal "
                    f"{beside.text_path}. The body reads something that the journal does not know: make it an argument "
                    "or part of the state, or remove the directory to begin anew"
                )
            verifier.digests = array("Q", found)


def _digests(stride: int) -> str:
    return f"digests{stride}"


def note_passes(record: Any, passes: Sequence[Any], n_done: int, beside: PartsBeside, told: dict[str, Any]) -> None:
    """The cotangents on the way back, of each seed, after the last ``n_done`` steps."""
    at = {ident: k for k, ident in enumerate(record.known)}
    noted = []
    for number, each in enumerate(passes):
        gathered = [[at[ident], ct] for ident, ct in each.gathered.items()]
        parts = beside.put([list(each.cts), gathered], "cotangents")
        noted.append({**parts, "own": [at[ident] for ident in each.own_gathered]})
        for k, rows in enumerate(each.x_cts):
            if rows is not None:
                beside.extend(f"x{k} of {number}", rows, n_done, downward=True)
    told["passes"] = noted


def put_passes(record: Any, passes: Sequence[Any], beside: PartsBeside, told: dict[str, Any]) -> None:
    """Put the passes back."""
    for each, noted in zip(passes, told["passes"], strict=True):
        each.cts, gathered = beside.get(noted)
        each.gathered.update((record.known[k], ct) for k, ct in gathered)
        each.own_gathered.update(record.known[k] for k in noted["own"])
    for name, _, filled in beside.read_rows(told):
        if name.startswith("x"):
            k, _, number = name[1:].partition(" of ")
            passes[int(number)].x_cts[int(k)] = filled
