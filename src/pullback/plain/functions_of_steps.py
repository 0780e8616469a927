"""Whether the steps of a chain are executed again by generated functions, and taken back by them in a row."""

from typing import Any

from pullback.memory.executor import run_reverse
from pullback.recording.traps import TRAPPED
from pullback.words.sniffs import quiet

FEWEST = 24
"""Steps of one kind from which functions for them pay."""


def functions_of(chain: Any) -> Any:
    """The functions of the steps of a chain that repeat; None where there cannot be any."""
    calls, fewest = chain.entries.calls, FEWEST if chain.staging == "auto" else 2
    if calls is not None and calls.n >= fewest:
        fewest = 1
    if chain.staging == "off" or len(chain.entries.patterns) < fewest:
        return None
    # What generates functions takes a third of the import, and few programs have such steps.
    from pullback.patterns.staged_patterns import staged_patterns  # noqa: PLC0415

    return staged_patterns(chain.tape, chain.entries, chain.needs, chain.staging, fewest, chain.works, chain.threads)


def run_back(chain: Any) -> None:
    """The reverse pass of a chain. For several sweeps, and where somebody hears of each cotangent, it carries out every
    action by itself."""
    one = chain.sweeps[0] if len(chain.sweeps) == 1 else None
    if chain.staged is None or one is None or one.outer is not None or one.told is not None or TRAPPED.get():
        run_reverse(chain.schedule, chain.machine, chain)
        return
    from pullback.plain.alike_steps import AlikeSteps  # noqa: PLC0415 - as above

    alike = AlikeSteps(chain, one)
    with quiet():
        run_reverse(chain.schedule, chain.machine, alike)
    alike.end()
    if chain.repeatable:
        chain.staged.rest()
