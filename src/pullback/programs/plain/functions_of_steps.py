"""Whether the steps of a chain are executed again by generated functions, and taken back by them in a row; so are
marked steps that a trace holds."""

from collections.abc import Sequence
from typing import Any

from pullback.memory.executor import run_reverse
from pullback.memory.reverse_sweep import Sweep, sweep
from pullback.programs.replay.marked_steps import MarkedSteps
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.words.undocumented import quiet

FEWEST = 24
"""Steps of one kind from which functions for them pay."""


def functions_of(chain: Any) -> Any:
    """The functions of the steps of a chain that repeat; None where there cannot be any."""
    calls, fewest = chain.recipes.calls, FEWEST if chain.staging == "auto" else 2
    if calls is not None and calls.n >= fewest:
        fewest = 1
    if chain.staging == "off" or chain.tape.collective or len(chain.recipes.patterns) < fewest:
        return None
    # What generates functions takes a third of the import, and few programs have such steps.
    from pullback.staging.replay.staged_patterns import staged_patterns  # noqa: PLC0415

    made = staged_patterns(chain.tape, chain.recipes, chain.needs, chain.staging, fewest, chain.works, chain.threads)
    if made is not None:
        made.hands_over = bool(chain.policy.tiers)
    return made


def run_back(chain: Any) -> None:
    """The reverse pass of a chain. For several sweeps, and where somebody hears of each cotangent, it carries out every
    action by itself."""
    one = chain.sweeps[0] if len(chain.sweeps) == 1 else None
    if chain.staged is None or one is None or one.outer is not None or one.told is not None or TRAPPED.get():
        run_reverse(chain.schedule, chain.machine, chain)
        return
    from pullback.programs.plain.alike_steps_reversed import AlikeSteps  # noqa: PLC0415 - as above

    alike = AlikeSteps(chain, one)
    with quiet():
        run_reverse(chain.schedule, chain.machine, alike)
    alike.end()
    if chain.repeatable:
        chain.staged.rest()


def sweep_held(tape: Tape, start: int, stop: int, sweeps: Sequence[Sweep]) -> None:
    """As :func:`pullback.memory.reverse_sweep.sweep`, through a trace that holds everything: many marked steps go back
    by generated functions where they do the same. Where there are several seeds, or somebody hears of cotangents, all
    are swept."""
    one, heard = sweeps[0], tape.telling is not None or TRAPPED.get()
    alone = len(sweeps) == 1 and one.outer is None and one.told is None and not tape.collective
    if heard or not alone or not any(map(_may_repeat, tape.marked)):
        sweep(tape, start, stop, sweeps)
        return
    from pullback.staging.replay.row_reverses import sweep_marked  # noqa: PLC0415 - as above

    sweep_marked(tape, start, stop, one)


def _may_repeat(marked: MarkedSteps) -> bool:
    """Whether there are so many that functions for them may pay."""
    return marked.staging != "off" and len(marked.cuts) > (FEWEST if marked.staging == "auto" else 2)
