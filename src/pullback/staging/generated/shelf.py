"""The shelf: for each body of a loop, or staged function, its stages, the steps that were seen once, and why a step was
not staged. A step that comes for the second time gets a stage."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from attrs import define, field

from pullback.backends.plans import Backend
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.recorded_steps import RecordedStep
from pullback.staging.generated.stages import Stage, stage_of
from pullback.staging.shadow.operations import Operation, same
from pullback.words import plugins

MOST_VARIANTS = 8
"""Different steps after which those of a body are recorded for good."""
MOST_KINDS = 31
"""How many older kinds of inputs keep their stages beside the newest one."""
MOST_BODIES = 256


@define(eq=False)
class Variants:
    """What is known of the steps of one body that values of one kind enter."""

    kinds: Any
    """The kinds of the leaves that enter."""
    backend: Backend | None = None
    stages: list[Stage] = field(factory=list)
    seen: list[list[Operation]] = field(factory=list)
    """The operations of steps that have come once."""
    why: list[str] = field(factory=list)
    """Why a step was not staged, the newest last."""
    n_failed: int = 0
    n_begun_otherwise: int = 0
    """How often step 0 of a loop was none of the stages."""

    @property
    def over(self) -> bool:
        """Whether steps are recorded for good."""
        return self.n_failed + len(self.stages) + len(self.seen) > MOST_VARIANTS

    def failed(self, why: str) -> None:
        """A step could not be staged."""
        self.n_failed += 1
        if why not in self.why:
            self.why.append(why)

    def learn(self, step: RecordedStep) -> Stage | None:
        """A step was recorded: a stage where it has been seen before."""
        if any(all(map(same, stage.known.operations, step.operations)) for stage in self.stages):
            self.failed("an operation of the step has failed in between")
            return None
        for operations in self.seen:
            if len(operations) == len(step.operations) and all(map(same, operations, step.operations)):
                # another list: loops in other threads may be looking at this one
                self.seen = [other for other in self.seen if other is not operations]
                break
        else:
            self.seen.append(step.operations)
            return None
        try:
            stage = stage_of(step, self.backend)
        except Exception as error:  # noqa: BLE001 - whatever a rule does with what is no array: the step is recorded
            self.failed(str(error) if isinstance(error, NotStageableError) else f"{type(error).__name__}: {error}")
            return None
        self.stages.append(stage)
        return stage


@define(eq=False)
class Shelf:
    """What is known of one body's steps, by what enters them."""

    backend: Backend | None = None
    held: bool = False
    """Whether its stages are for loops that hold all their steps: they have no functions for any other."""
    variants: list[Variants] = field(factory=list)
    n_recorded: int = 0
    """Steps so far of loops that were too short for a stage to pay, and were recorded."""

    @property
    def new(self) -> bool:
        """Whether no stage is known."""
        return not any(each.stages for each in self.variants)

    def of(self, kinds: Any) -> Variants:
        """What is known of steps that are entered so."""
        for found in self.variants:
            if found.kinds == kinds:
                return found
        made = Variants(kinds, self.backend)
        self.variants = [*self.variants[-MOST_KINDS:], made]
        return made


_ALL: list["Recent"] = []


class Recent(OrderedDict[Any, Any]):
    """Values by key, for several threads: the ``most`` that were asked for last. There is one for each module."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most, self.changing = most, Lock()
        _ALL.append(self)

    def of(self, key: Any, made: Callable[[], Any]) -> Any:
        """The value of a key, made where there is none. Asked for while ``changing`` is held."""
        if key not in self:
            self[key] = made()
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)
        return self[key]


_SHELVES = Recent(MOST_BODIES)


def shelf_of(body: Any, backend: str = "", *, held: bool = False) -> Shelf:
    """The shelf of a function's code, for NumPy's functions or those of a backend, shared by all loops over it, and by
    copies of the function that came by pickle; a new one for anything else that is called. As long as all these loops
    have ``held`` all their steps, its stages have fewer functions."""
    code = getattr(body, "__code__", None)
    arrange = plugins.backend(backend) if backend else None
    if code is None:
        return Shelf(arrange)
    with _SHELVES.changing:
        shelf: Shelf = _SHELVES.of((code, code.co_filename, backend), lambda: Shelf(arrange, held))
        if shelf.held and not held:
            shelf.held, shelf.variants = False, []
        return shelf


def shelves_of(body: Any) -> list[Shelf]:
    """The shelves of a function's code, whatever computes its stages."""
    with _SHELVES.changing:
        return [shelf for key, shelf in _SHELVES.items() if key[:2] == (body.__code__, body.__code__.co_filename)]


def forget() -> None:
    """Nothing is known of any function: for tests."""
    for each in _ALL:
        with each.changing:
            each.clear()
