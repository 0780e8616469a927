"""``explain_stage``: what is known of a loop's body, as text: the generated functions, and why steps are recorded."""

from collections.abc import Callable, Iterable
from typing import Any

from attrs import field, frozen

from pullback.adopting.loops.loop_code import loops_in
from pullback.memory.ledger import mib
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.shelf import shelves_of
from pullback.staging.marks.known_marks import marks_in
from pullback.staging.replay.pattern_shelf import patterns_in
from pullback.staging.replay.row_reverses import rows_in
from pullback.words.errors import StructureError


@frozen
class StageTexts:
    """What is known of the steps of one body. Prints as text."""

    name: str
    """The name of the body."""
    stages: tuple[str, ...] = field(repr=False)
    """The generated functions and what they work in, for each list of operations that came again; for each loop of
    adopted code that is one record, its forward and its reverse."""
    why: tuple[str, ...]
    """Why steps were recorded that could have been staged, and why loops of adopted code were, item by item."""

    def __str__(self) -> str:
        if not self.stages and not self.why:
            return f"{self.name}: no step of it has been seen twice under a trace; a short loop is not staged by itself"
        reasons = [f"recorded, since {why}" for why in self.why]
        head = f"{self.name}: {len(self.stages)} stage{'' if len(self.stages) == 1 else 's'}"
        return "\n\n".join((head, *self.stages, *reasons))


def explain_stage(body: Callable[..., Any]) -> StageTexts:
    """What is known of the steps of a loop's body, of the calls of a staged function, or of marked steps: the generated
    functions, the bytes they work in, and why steps are recorded. Of a function of adopted code also what is known
    of its loops over items. Asked after a gradient.

    Parameters
    ----------
    body
        The function that was given to ``fori_loop``, ``scan`` or ``while_loop``, one under ``staged``, or the one in
        which marked steps or their operations stand. Functions with the same code share what is known.

    Returns
    -------
    A :class:`StageTexts`, which prints the texts.

    Raises
    ------
    StructureError
        For what is no function.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> body = lambda k, u: np.sin(u) * 0.5
    >>> gradient = pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x, staging="numpy")))(np.ones(3))
    >>> print(pb.explain_stage(body).stages[0].splitlines()[0])
    def record(inputs, captured, constants, buffers, fresh):
    """
    staged = getattr(body, "__pullback_staged__", None)
    body = body if staged is None else staged.f
    if getattr(body, "__code__", None) is None:
        raise StructureError(
            f"explain_stage takes the body of a loop, a function, got {type(body).__name__}; stages of other callables "
            "live as long as their loop"
        )
    known = [each for shelf in shelves_of(body) for each in shelf.variants]
    patterns, rows = patterns_in(body.__code__), rows_in(body.__code__)
    texts = [_text((stage.record, stage.reverse), stage.notes) for each in known for stage in each.stages]
    texts += [
        _text((stage.advance, stage.record, *(each.generated for each in stage.reverses.values())), stage.notes)
        for pattern in patterns
        for stage in pattern.stages
    ]
    texts += [_text((reverse.generated,), row.notes) for row in rows for reverse in row.reverses.values()]
    marks = marks_in(body.__code__)
    texts += [_text((stage.advance, stage.record), []) for loop in marks for _, stage in loop.stages]
    derived = [] if staged is None else list(staged.derivatives.values())
    texts += [
        _text((one.exits.stage.record, one.exits.stage.reverse), [])
        for each in derived for made in each.made.values() for one in made
    ]  # fmt: skip
    why = [f"a derivative within another cannot be, since {each.why}" for each in derived if each.why]
    why += [*(why for each in known for why in each.why), *(each.why for each in patterns if each.why)]
    why += [row.why for row in rows if row.why]
    loops, others = loops_in(body.__code__)
    written = [made for loop in loops if not loop.why for made in loop.made.values() if not isinstance(made, str)]
    texts += ["\n".join((made.text, *made.texts.values())) for made in written]
    why += others
    why += [f"the program's own run of marked steps cannot be followed: {why}" for loop in marks for why in loop.why]
    return StageTexts(body.__name__, tuple(texts), tuple(dict.fromkeys(why)))


def _text(functions: Iterable[Generated], notes: list[str]) -> str:
    lines = [f"{_with_kernels(each)}# works in {mib(each.plan.nbytes)}" for each in functions]
    return "\n".join((*lines, *(f"# {note}" for note in notes)))


def _with_kernels(generated: Generated) -> str:
    """The text of a function, and of each kernel that it calls, with the statements in whose place it stands."""
    if generated.plain is None:
        return generated.text
    texts = []
    for kernel in generated.kernels:
        ours = [generated.plan.lines[place].statement.makes for place in kernel.calls]
        texts.append(f"# {', '.join(f'v{n}' for n in ours)} of {generated.name}:\n{kernel.text}")
    return "\n".join((generated.text, *texts))
