"""A schedule as text: one row per stretch of forward work, one column per step."""

from collections.abc import Iterable

from pullback.policies.actions import Action, Advance, Delete, EndReverse, Load, Record, Reverse, Save
from pullback.policies.simulator import machine_for, play
from pullback.words.errors import ScheduleError

MAX_STEPS = 200

LEGEND = "S state saved  L loaded  X loaded for the last time  : held  . advanced  r recorded  < recorded and reversed"


def draw(actions: Iterable[Action], n: int) -> str:
    """A diagram of ``actions`` over the ``n`` steps of the loop (at most 200), time downwards, ending with its legend.

    Step k has two characters: the left one its snapshot x_k, the right one what was done with the step. A row ends
    where a state is loaded, or where a step would be drawn over. Raises ``ScheduleError`` where an action does not fit.
    """
    if n > MAX_STEPS:
        raise ScheduleError(
            f"{n} steps do not fit a diagram: {MAX_STEPS} are the most. Draw fewer, or print simulate(actions, n)."
        )
    rows = _Rows(n)
    for action in play(actions, n, machine_for(actions, n)):
        rows.add(action)
    ruler = "".join(f"{k:<10}" for k in range(0, n, 5)) if n else "no steps"
    return "\n".join([ruler.rstrip(), *rows.lines, LEGEND])


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
