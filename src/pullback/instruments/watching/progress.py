"""How far a gradient is: a bar for the sweep, one for what is computed again, one for the reverse, and what remains.

A call gets a :class:`TellingLedger` where progress is wanted, and no other call knows of it. It hands everything on to
the ledger behind it, and tells a :class:`Course` of each step that was executed or reversed. How much there is to do is
read from the schedule when a loop begins.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any, Final

from attrs import define, field

from pullback.memory.ledger import Item
from pullback.scheduling.machine.actions import Advance, EndForward, EndReverse, Record
from pullback.words.optional_libraries import optional_library

EACH: Final = 0.1
"""Seconds between two pictures."""
MOST: Final = 200_000
"""Actions of a schedule that are counted; of a longer one the rest is taken to be as what was done."""
SWEEP, AGAIN, REVERSE = "sweep", "recompute", "reverse"


@define(eq=False)
class CoursePart:
    """Steps of one kind: how many there are (None where nobody knows), how many are done, and the seconds of these."""

    total: int | None = 0
    done: int = 0
    seconds: float = 0.0

    @property
    def left(self) -> int:
        """How many are to be done, as far as is known."""
        return max(0, (self.total or 0) - self.done)

    @property
    def each(self) -> float | None:
        """Seconds of one; None before one was done."""
        return self.seconds / self.done if self.done else None

    def more(self, n: int | None) -> None:
        """So many come in addition."""
        self.total = None if n is None or self.total is None else self.total + n


@define(eq=False)
class Course:
    """How far a call is. ``show`` gets it, at most every tenth of a second, and at the end."""

    show: Callable[["Course"], None]
    close: Callable[[], None] = field(default=lambda: None)
    parts: dict[str, CoursePart] = field(factory=lambda: {part: CoursePart() for part in (SWEEP, AGAIN, REVERSE)})
    begun: bool = False
    """Whether it is known how much there is to do."""
    turned: bool = False
    """Whether the reverse has begun."""
    waiting: str = ""
    """What the steps wait for."""
    last: float = field(factory=perf_counter)
    shown: float = 0.0

    def begins(self, n: int | None, again: int | None, done: int = 0, *, back: int | None = None) -> None:
        """A loop of ``n`` steps begins, ``done`` of which are over; ``again`` are executed once more, and all
        reversed, or so many (``back``)."""
        self.begun = True
        sweep = None if n is None else n - done
        for name, steps in ((SWEEP, sweep), (AGAIN, again), (REVERSE, n if back is None else back)):
            self.parts[name].more(steps)
        self.last = perf_counter()

    def did(self, name: str, n: int) -> None:
        """So many steps were done since the last event."""
        now = perf_counter()
        part = self.parts[name]
        part.done += n
        part.seconds += now - self.last
        self.last = now
        if part.total is not None and part.done > part.total:
            part.total = part.done
        if now - self.shown >= EACH:
            self.shown = now
            self.show(self)

    def waits(self, why: str) -> None:
        """Nothing is done for a while; "" says that it is over. The time is that of no step."""
        self.waiting = why
        self.show(self)
        self.last = perf_counter()

    @property
    def seconds_left(self) -> float | None:
        """What remains, from the seconds of steps so far; None before that can be said. A step that is reversed is
        taken to cost twice one of the sweep, until one was."""
        sweep, again, reverse = self.parts.values()
        forward = sweep.each
        if not self.begun or forward is None or sweep.total is None:
            return None
        back = reverse.each if reverse.done else 2 * forward
        if again.total is None:  # the rest of the way back is as its beginning
            spent = (again.seconds + reverse.seconds) / reverse.done if reverse.done else None
            return None if spent is None else sweep.left * forward + reverse.left * spent
        return sweep.left * forward + again.left * (again.each or forward) + reverse.left * (back or 0.0)

    def end(self) -> None:
        """A pass is over, or has failed."""
        self.show(self)
        self.close()


class TellingLedger:
    """A ledger that tells a course, and is in all else the one behind it."""

    __slots__ = ("course", "marks", "untold")
    separates = True

    def __init__(self, untold: Any, course: Course) -> None:
        object.__setattr__(self, "untold", untold)
        object.__setattr__(self, "course", course)
        object.__setattr__(self, "marks", [])

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "untold"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "n_forward":
            n = value - self.untold.n_forward
            if n > 0:
                self.course.did(AGAIN if self.course.turned else SWEEP, n)
        setattr(self.untold, name, value)

    @property
    def heard(self) -> bool:
        """True: steps are booked one by one, by which they are told one by one."""
        return True

    @heard.setter
    def heard(self, heard: bool) -> None:
        """It stays so."""

    def begins(self, n: int | None, schedule: Any, sizes: dict[str, int], done: int = 0) -> None:
        """A loop begins; under save-all without a schedule."""
        again = 0 if schedule is None else executed_again(schedule, n, sizes)
        self.course.begins(n, again, done)

    def sweeps(self, n: int | None, *, anew: bool = True) -> None:
        """Steps are run forward, and nobody reverses them one by one: ``n`` of a loop that begins; or where it goes on
        after its policy has decided to keep every step (``anew`` False)."""
        if anew:
            self.course.begins(n, 0, back=0)
        else:
            parts = self.course.parts
            self.course.turned, parts[SWEEP].total, parts[AGAIN].total, parts[REVERSE].total = False, n, 0, 0
            parts[AGAIN].done = 0

    def marked(self, at: int) -> None:
        """A marked step of save-all begins at this record: the one before is over."""
        self.marks.append(at)

    def stretches(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """The records ``start .. stop-1`` in parts that begin at the marks, the last part first. Whoever comes for the
        next has reversed the one before."""
        self.course.turned, end = True, stop
        part = self.course.parts[REVERSE]
        if not part.left and part.total is not None:  # the pull is called again
            part.more(len(self.marks))
        for at in reversed(self.marks):
            yield at, end
            self.course.did(REVERSE, 1)
            end = at
        yield start, end

    def returns_to(self, run: Any, *agreed: Any) -> None:
        """As the ledger does; the reverse of a loop begins."""
        self.course.turned = True
        self.untold.returns_to(run, *agreed)

    def lends_no_more(self, run: Any) -> None:
        """As the ledger does; the reverse of a loop has begun, or will not come."""
        self.course.turned = True
        self.untold.lends_no_more(run)

    def reversed_one(self, items: Iterable[Item]) -> None:
        """As the ledger does."""
        self.untold.reversed_one(items)
        self.course.did(REVERSE, 1)

    def ran(self, chain: Any, start: int, stop: int) -> None:
        """As the ledger does."""
        self.untold.ran(chain, start, stop)
        self.course.did(AGAIN if self.course.turned else SWEEP, stop - start)

    def waits(self, why: str) -> None:
        """As the ledger is told."""
        if why:
            self.course.did(AGAIN if self.course.turned else SWEEP, 0)
        self.course.waits(why)

    def rests(self) -> None:
        """A pass is over."""
        self.course.end()


def executed_again(schedule: Any, n: int | None, sizes: dict[str, int]) -> int | None:
    """The forward steps in the reverse of a schedule of this kind; None where its length is unknown, or where there
    are too many to count."""
    if n is None:
        return None
    steps, swept = 0, False
    for action in islice(schedule.policy.schedule(n, **sizes), MOST):
        kind = type(action)
        if kind is EndReverse:
            return steps
        swept = swept or kind is EndForward
        if swept and kind is Advance:
            steps += action.stop - action.start
        elif swept and kind is Record:
            steps += 1
    return None


def told(ledger: Any) -> TellingLedger:
    """The ledger, with a bar on the terminal or in the notebook. Raises ``PullbackError`` where rich is missing."""
    bar = _Bar()
    return TellingLedger(ledger, Course(bar.show, bar.close))


class _Bar:
    """What rich draws, on stderr. It is drawn by who works, and by no thread of its own."""

    def __init__(self) -> None:
        self.rich = optional_library("rich.progress", "progress is drawn by rich", "cli")
        self.console = optional_library("rich.console", "progress is drawn by rich", "cli").Console(stderr=True)
        self.bars: Any = None
        self.tasks: dict[str, Any] = {}

    def show(self, course: Course) -> None:
        """Draw how far it is, where there is somebody to see it."""
        if not (self.console.is_terminal or self.console.is_jupyter):
            return
        if self.bars is None:
            rich = self.rich
            columns = rich.TextColumn("{task.description:>9}"), rich.BarColumn(24), rich.MofNCompleteColumn()
            self.bars = rich.Progress(
                *columns, rich.TextColumn("{task.fields[left]}"),
                console=self.console, auto_refresh=False, transient=True,
            )  # fmt: skip
            self.tasks = {name: self.bars.add_task(name, total=None, left="") for name in course.parts}
            self.bars.start()
        seconds = course.seconds_left
        for name, part in course.parts.items():
            left = "" if name != REVERSE or seconds is None else f"about {in_words(seconds)} left"
            left = course.waiting if name == SWEEP else left
            self.bars.update(
                self.tasks[name], completed=part.done, total=part.total, left=left,
                visible=bool(part.done or part.total or part.total is None),
            )  # fmt: skip
        self.bars.refresh()

    def close(self) -> None:
        """Take it away; the next picture begins a new one."""
        if self.bars is not None:
            self.bars.stop()
            self.bars = None


def in_words(seconds: float) -> str:
    """``2:05``, ``1:02:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
