"""A schedule drawn, as text and as a picture. As text: one row per stretch of forward work, one column per step."""

from collections.abc import Iterable

from pullback.scheduling.machine.actions import Action, Advance, Delete, EndReverse, Load, Record, Reverse, Save
from pullback.scheduling.machine.picture import Drawing, Lines
from pullback.scheduling.machine.simulator import machine_for, play

MAX_STEPS = 200

LEGEND = "S state saved  L loaded  X loaded for the last time  : held  . advanced  r recorded  < recorded and reversed"


def draw(actions: Iterable[Action], n: int) -> Drawing:
    """The picture of a schedule: text, which is printed, and an SVG, which a notebook shows and ``.save(path)`` writes.

    In the text, of at most 200 steps, time goes downwards, and step k has two characters: the left one its snapshot
    x_k, the right one what was done with the step. A row ends where a state is loaded, or where a step would be drawn
    over. In the picture, of any length, work goes downwards, and a snapshot is a line from where it is saved to where
    it is deleted.

    Parameters
    ----------
    actions
        Those of a schedule.
    n
        The number of steps of the loop.

    Returns
    -------
    A :class:`Drawing`.

    Raises
    ------
    ScheduleError
        Where an action does not fit.

    Example
    -------
    >>> from pullback import Binomial, schedules
    >>> drawing = schedules.draw(Binomial(2).schedule(6), 6)
    >>> drawing.svg.startswith("<svg")
    True
    """
    rows, lines = _Rows(n if n <= MAX_STEPS else 0), Lines()
    for action in play(actions, n, machine_for(actions, n)):
        lines.add(action)
        if n <= MAX_STEPS:
            rows.add(action)
    title = f"{getattr(actions, 'policy', 'schedule')!s}: {n} steps, {lines.time} executed forward and back"
    if n > MAX_STEPS:
        text = f"{title}; text shows at most {MAX_STEPS} steps: .save('schedule.svg') writes the picture"
        return Drawing(text, lines.svg(title, n))
    ruler = "".join(f"{k:<10}" for k in range(0, n, 5)) if n else "no steps"
    return Drawing("\n".join([ruler.rstrip(), *rows.lines, LEGEND]), lines.svg(title, n))


class _Rows:
    """The rows drawn so far and the row in the making."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.lines: list[str] = []
        self.snapshots: set[int] = set()
        self.clear()

    def clear(self) -> None:
        self.states = [":" if k in self.snapshots else " " for k in range(self.n)]
        self.steps = [" "] * self.n
        self.marked = False

    def flush(self) -> None:
        if self.marked:
            self.lines.append(
                "".join(state + step for state, step in zip(self.states, self.steps, strict=True)).rstrip()
            )
        self.clear()

    def mark(self, step: int, character: str, over: str = " ") -> None:
        if self.steps[step] not in over:
            self.flush()
        self.steps[step] = character
        self.marked = True

    def add(self, action: Action) -> None:
        match action:
            case Advance(start, stop):
                for step in range(start, stop):
                    self.mark(step, ".")
            case Record(step):
                self.mark(step, "r", over=" .")
            case Reverse(step):
                self.mark(step, "<", over=" r")
            case Save("state", step):
                self.snapshots.add(step)
                self.state(step, "S")
            case Load("state", step):
                self.flush()
                self.state(step, "L")
            case Delete("state", step):
                self.snapshots.discard(step)
                self.state(step, "X" if self.states[step] == "L" else " ")
            case EndReverse():
                self.flush()
            case _:  # tapes moving in and out of tiers are not drawn
                pass

    def state(self, step: int, character: str) -> None:
        if step < self.n:  # x_n has no column
            self.states[step] = character
            self.marked = True
