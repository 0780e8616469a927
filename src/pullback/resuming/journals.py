"""The journal of one loop: written at safe points of its schedule, and what a killed run goes on from.

A point is safe where all that the rest of the schedule needs is on disk: no tape is in WORK, and every entry is a
snapshot in a tier on disk. So it is right after such a snapshot is saved, and right before one is loaded.
"""

from collections.abc import Sequence
from typing import Any

from attrs import define, field

from pullback.loops.bodies.reachable import GENERATORS
from pullback.loops.stepping.held_steps import Snapshot
from pullback.resuming.journal_files import KeptFolder, part_told, told_part, told_windows, windows_told
from pullback.resuming.loop_contents import note_first_run, note_passes, put_effects, put_first_run, put_passes
from pullback.resuming.parts_beside import PartsBeside
from pullback.resuming.plain_values import decoded, encoded
from pullback.resuming.run_keys import digests_of, reached_by, require_same, without_random_states
from pullback.scheduling.machine.actions import Load, Save
from pullback.scheduling.machine.machine import Machine
from pullback.words.errors import ResumeError


@define(eq=False)
class WatchedSchedule:
    """A schedule that tells the journal of safe points between its actions."""

    actions: Any
    journal: "LoopJournal"
    n_taken: int = 0
    last: Any = None

    def __iter__(self) -> "WatchedSchedule":
        return self

    def __next__(self) -> Any:
        last, self.last = self.last, None
        if type(last) is Save and last.kind == "state":  # it has been carried out
            self.journal.may_write(self.n_taken, [last.step, last.tier])
        action = next(self.actions)
        if type(action) is Load and action.kind == "state" and self.journal.record.machine.swept:
            self.journal.may_write(self.n_taken, None)
        self.n_taken, self.last = self.n_taken + 1, action
        return action

    def __repr__(self) -> str:
        return repr(self.actions)

    def skip(self, machine: Machine) -> None:
        """The next action was carried out by the run that was killed."""
        machine.apply(next(self.actions))
        self.n_taken += 1


@define(eq=False)
class LoopJournal:
    """What is on disk of a run of ``record``, a :class:`~pullback.loops.functions.loop_record.LoopRecord`."""

    session: Any
    record: Any
    beside: PartsBeside
    folders: dict[str, KeptFolder]
    """The folders of the tiers on disk."""
    told: dict[str, Any]
    """The text, as it was written last or will be next."""
    first: list[Any] = field(init=False)
    """The state that the loop began with."""
    reached: dict[str, str] = field(factory=dict, init=False)
    """What the body can reach, after step 0."""
    entries: dict[tuple[str, int], Any] = field(factory=dict, init=False)
    """What the text says of each snapshot, by tier and serial number."""

    def __attrs_post_init__(self) -> None:
        self.first = list(self.record.chain.state)

    # The hooks of the loop.
    def begin(self) -> None:
        """Make random states and effects, before step 0, what the killed run had."""
        chain = self.record.chain
        if "start_random" in self.told:
            chain.randomness.restore(decoded(self.told["start_random"]))
            chain.start_random = chain.randomness.save()
            put_effects(chain.steps.call, self.told["effects"])
        else:
            self.told |= {"start_random": encoded(chain.start_random), "position": None, "entries": [], "rows": {}}

    def go_forward(self) -> None:
        """The forward part of the schedule, or what is left of it. Step 0 has run."""
        record, chain, told = self.record, self.record.chain, self.told
        values = chain.steps.captured_values
        texts = digests_of(values[i] for i in record.known if i in values)
        captured = {f"value {k} that the body captures": text for k, text in enumerate(texts)}
        self.reached = without_random_states(reached_by(chain.steps.call))
        if "captured" in told:
            require_same(captured, told["captured"], f"the journal {self.beside.text_path}")
            record.besides = told["besides"]
        record.machine = Machine(record.n)
        if "reversed" not in told:
            record.schedule = WatchedSchedule(record.scheduled(record.n), self)
        told |= {"captured": captured, "besides": record.besides}
        if told["position"] is not None or "reversed" in told:
            chain.drop_probe()  # step 0 ran to tell what the loop captures; the schedule comes to another
            put_first_run(record, self.beside, told)
        if "passes" in told:
            self._put_results()
            return
        if told["position"] is not None:
            self._go_on()
        chain.go_forward(record.schedule, record.machine)
        self._note_first_run()
        told["results"] = [self.beside.put(list(chain.state), "the result"), encoded(chain.randomness.save())]
        self._write()

    def go_back(self, passes: Sequence[Any]) -> None:
        """The reverse part, or what is left of it."""
        self.session.require_open()
        record, chain, told = self.record, self.record.chain, self.told
        if any(each.outer is not None for each in passes):
            self.session.refuse("it is differentiated again", "take the derivative of a derivative without it")
        if any(getattr(each.sweep.told, "on_adjoint", None) for each in passes):
            self.session.refuse(
                "functions of on_adjoint= would not be called for the steps that are not reversed again",
                "take these cotangents without it",
            )
        seeds = [digests_of([*each.cts, *each.y_cts]) for each in passes]
        if "passes" in told:
            if seeds != told["seeds"]:
                raise ResumeError(
                    f"the cotangents that come to the {record.name} are not those of the run that wrote the journal "
                    f"{self.beside.text_path}: the program after the loop gave other bits. Make the same call, or "
                    "remove the directory to begin anew"
                )
            put_passes(record, passes, self.beside, told)
            if "reversed" in told:
                return
            self._go_on()
        told["seeds"] = seeds
        chain.go_back(record.schedule, record.machine, passes)
        note_passes(record, passes, record.n, self.beside, told)
        told |= {"reversed": True, "position": None, "entries": []}
        self._write()
        for folder in self.folders.values():
            folder.remove()

    def again(self) -> "LoopJournal":
        """That of one more reverse pass, which begins with a forward pass."""
        self.session.require_open()
        journal: LoopJournal = self.session.begun(self.record)
        return journal

    # Writing.
    def may_write(self, n_taken: int, live: list[Any] | None) -> None:
        """Between two actions, of which ``n_taken`` are carried out: write the journal where this is safe. ``live`` is
        the snapshot that the live state is, where it will be needed."""
        self.session.require_open()
        machine, store = self.record.machine, self.record.chain.store
        if machine.tape is not None or (not machine.swept and machine.cursor == 0):
            return
        stored = [(kind, tier) for tier, entries in machine.stored.items() for kind, _ in entries]
        if any(kind != "state" or tier not in self.folders for kind, tier in stored):
            return
        entries = self._noted_entries()
        self.told |= {
            "position": [n_taken, live],
            "entries": entries,
            "tiers": {tier: store.open[tier].n_parts for tier in self.folders if tier in store.open},
        }
        if machine.swept:
            note_passes(self.record, self.record.chain.passes, machine.n - machine.r, self.beside, self.told)
        else:
            self._note_first_run()
        self._write()

    def _note_first_run(self) -> None:
        """Raises :class:`ResumeError` where a step after the first has changed what the body reads: a run that is taken
        up would not find it so."""
        call = self.record.chain.steps.call
        now, then = without_random_states(reached_by(call)), self.reached
        names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
        if names:
            self.session.refuse(
                f"the body of the {self.record.name} changes what it can reach besides its state: "
                f"{', '.join(names[:4])}; a run that is taken up would not find that so",
                "make it part of the state, or change it in a function under pullback.effect",
            )
        note_first_run(self.record, self.beside, self.told)

    def _write(self) -> None:
        self.beside.write(self.told, self.folders.values())

    def _noted_entries(self) -> list[Any]:
        stored = {(key[2], entry.serial): (key[1], entry) for key, entry in self.record.chain.store.entries.items()}
        known, self.entries = self.entries, {}
        for key in sorted(stored):
            self.entries[key] = known.get(key) or self._noted(key[0], *stored[key])
        return list(self.entries.values())

    def _noted(self, tier: str, step: int, stored: Any) -> dict[str, Any]:
        for part in stored.parts:
            part.job.result()
        return {
            "step": step,
            "tier": tier,
            "leaves": [self._told_leaf(k, leaf) for k, leaf in enumerate(stored.shell.leaves)],
            "random": encoded(stored.shell.random),
            "windows": told_windows(stored.windows),
            "parts": [told_part(part) for part in stored.parts],
        }

    def _told_leaf(self, k: int, leaf: Any) -> Any:
        """A leaf of a state; a random generator in it is an object that stays the same."""
        return {"initial": k} if isinstance(leaf, GENERATORS) and leaf is self.first[k] else encoded(leaf)

    # Taking up.
    def _put_results(self) -> None:
        """The loop stands where its forward part ends."""
        record, chain = self.record, self.record.chain
        parts, random = self.told["results"]
        chain.state = self.beside.get(parts)
        chain.randomness.restore(decoded(random))
        if "reversed" not in self.told:
            while not record.machine.swept:
                record.schedule.skip(record.machine)

    def _go_on(self) -> None:
        """The schedule, the store and the live state stand where the journal was written."""
        record, chain = self.record, self.record.chain
        n_taken, live = self.told["position"]
        while record.schedule.n_taken < n_taken:
            record.schedule.skip(record.machine)
        for told in self.told["entries"]:
            tier, step = told["tier"], told["step"]
            leaves = [
                self.first[x["initial"]] if type(x) is dict and "initial" in x else decoded(x) for x in told["leaves"]
            ]
            parts = [part_told(part, self.folders[tier].path) for part in told["parts"]]
            place = chain.store.tier(tier)
            place.n_parts = self.told["tiers"][tier]
            shell = Snapshot(leaves, decoded(told["random"]), [])
            chain.store.entries["state", step, tier] = place.taken_up(shell, windows_told(told["windows"]), parts)
        stored = {(kind, step, tier) for tier, entries in record.machine.stored.items() for kind, step in entries}
        if stored != set(chain.store.entries):
            raise ResumeError(
                f"the journal {self.beside.text_path} was written where {sorted(chain.store.entries)} were stored, and "
                f"{record.policy!r} has now stored {sorted(stored)}: it gives other actions. Remove the directory to "
                "begin anew"
            )
        if live is not None:
            chain.load("state", *live)
