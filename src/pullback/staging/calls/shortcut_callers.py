"""The generated caller of a shortcut that is used often: one function that makes all comparisons and calls the
generated functions.

It runs in a context of its own, in which NumPy's error state is set once. On any difference, error, warning or call
within a call it gives up, and the call is computed as without it.
"""

import sys
from _thread import _count  # of the threads besides the first
from collections.abc import Callable, Sequence
from contextvars import Context
from typing import Any

from attrs import define, field

from pullback.loops.bodies.deterministic_functions import Reads
from pullback.memory.in_force import NOTHING_SAID
from pullback.recording.copies import packed_copy
from pullback.recording.traps import TRAPPED
from pullback.rules.generated_code import compile_function
from pullback.staging.calls.hot_runs import Ready, handed_out
from pullback.staging.calls.known_functions import CARRIED
from pullback.staging.calls.shortcuts import Shortcut, Shortcuts, bits_where_shared, plain
from pullback.staging.generated.generated import Generated, errors_are_ordinary
from pullback.staging.generated.workspaces import Workspace
from pullback.words.call_sites import MISSED, states_meant
from pullback.words.sameness import same_content
from pullback.words.structures import flatten, unflatten
from pullback.words.undocumented import context_of_errors, error_state

Caller = Callable[[tuple[Any, ...]], Any]
"""A function from the arguments to the result, or ``MISSED``."""
_NOTHING = (*NOTHING_SAID, (TRAPPED.get, ()), (CARRIED.get, None), (sys.gettrace, None), (sys.getprofile, None))
"""What is asked in each call, with the answer that there has to be."""


def caller_when_it_pays(shortcuts: Shortcuts, form: str, args: tuple[Any, ...], given: Any) -> Caller | None:
    """The caller of the shortcut that has just ``given`` this; None before it pays, and where there is none."""
    if not shortcuts.kept:
        return None
    shortcut = shortcuts.kept[0]
    shortcut.n_served += 1
    if shortcut.n_served >= shortcut.pays:
        shortcut.n_served, shortcut.pays = 0, 8 * shortcut.pays
        made = caller_of(shortcut, form)
        found = MISSED if made is None else made(args)
        if found is not MISSED and same_content(plain(found), plain(given)):
            shortcut.callers[form] = made
    return shortcut.callers.get(form)


def caller_of(shortcut: Shortcut, form: str) -> Caller | None:
    """The caller of a shortcut, whose results have a ``form``: an expression of ``values`` and ``cts``. None where the
    functions are divided among threads, or have kernels, and where NumPy's error state cannot be set in a context that
    is made before."""
    stage = shortcut.ready.exits.stage
    functions = [stage.record, stage.reverse] if shortcut.inputs else [stage.record]
    told: list[Any] = []
    telling, silent = context_of_errors(lambda *_: told.append(None)), context_of_errors(None)
    if telling is None or silent is None or not errors_are_ordinary():
        return None
    if any(one.plan.divided or one.plain is not None for one in functions):
        return None
    text = _Text(Ready(shortcut.ready.exits))
    for ask, answer in _NOTHING:
        text.missed_if(f"{text.name(ask)}() is not {text.name(answer)}")
    text.missed_if(f"{text.name(error_state)}() not in {text.name(states_meant())}")
    text.compare_arguments(shortcut.definition, shortcut.kinds)
    text.compare_reads(shortcut.reads)
    entering = "".join(f"a{k}, " for k in shortcut.places)
    shared = entering + "".join(f"a{k}, " for _, k in shortcut.told)
    constants = text.constants(shortcut)
    text.lines += [
        "        idle.pop()",
        "    except (AttributeError, IndexError, KeyError, ValueError):",
        "        return missed",
        "    try:",
        f"        before = bits_where_shared(({shared})) if several() else None",
        f"        values, slots = {text.run(telling, text.ready.work, stage.record, f'({entering})', '()', constants)}",
        "        if told:",
        "            return missed",
    ]
    if shortcut.inputs:
        text.pull(shortcut, silent)
    text.lines += [
        f"        if before and bits_where_shared(({shared})) != before:",
        "            return missed",
        f"        return {form}",
        "    except Exception:",
        "        return missed",
        "    finally:",
        "        told.clear()",
        "        idle.append(None)",
    ]
    return text.function(told)


@define(eq=False)
class _Text:
    """The lines of a caller, and the names in them."""

    ready: Ready
    lines: list[str] = field(factory=lambda: ["def caller(args):", "    try:"])
    values: dict[int, Any] = field(factory=dict)
    """What each name stands for, by what is named."""

    def name(self, value: Any) -> str:
        """A name for a value."""
        self.values[id(value)] = value
        return f"n{list(self.values).index(id(value))}"

    def missed_if(self, *ways: str) -> None:
        """Where one of these holds, the caller cannot serve."""
        self.lines += [f"        if {' or '.join(ways)}:", "            return missed"]

    def compare_arguments(self, definition: Any, kinds: Sequence[Any]) -> None:
        """The arguments have to be of this structure and these kinds, as those of ``Shortcut``, and their leaves get
        names."""
        if definition is None:
            self.missed_if(f"len(args) != {len(kinds)}")
        else:
            self.lines.append(f"        args, definition = {self.name(flatten)}(args)")
            self.missed_if(f"definition != {self.name(definition)}")
        self.lines.append(f"        {''.join(f'a{k}, ' for k in range(len(kinds)))} = args")
        for k, kind in enumerate(kinds):
            if type(kind) is list:
                kept = self.name(kind[0])
                self.missed_if(f"a{k} is not {kept} and not same_content({kept}, a{k})")
                continue
            asked = zip(("shape", "dtype", "strides"), kind[1:])  # noqa: B905 - of a number nothing is asked
            differs = [
                f"a{k}.{what} {'is not' if what == 'dtype' else '!='} {self.name(value)}" for what, value in asked
            ]
            self.missed_if(f"type(a{k}) is not {self.name(kind[0])}", *differs)

    def compare_reads(self, reads: Reads) -> None:
        """What the function reads from outside has to be as it was, as ``Reads.hold`` asks."""
        for function, code, defaults in reads.functions:
            name, wanted = self.name(function), (self.name(code), self.name(defaults))
            self.missed_if(
                f"{name}.__code__ is not {wanted[0]}",
                f"{name}.__defaults__ is not {wanted[1]}",
                f"{name}.__kwdefaults__",
            )
        for names, key, value in reads.names:
            self.missed_if(f"{self.name(names)}[{key!r}] is not {self.name(value)}")
        for cell, value in reads.cells:
            self.missed_if(f"{self.name(cell)}.cell_contents is not {self.name(value)}")
        for names, key in reads.missing:
            self.missed_if(f"{key!r} in {self.name(names)}")
        for array, copy in reads.arrays:
            self.missed_if(f"not same_content({self.name(copy)}, {self.name(array)})")

    def constants(self, shortcut: Shortcut) -> str:
        """The plain operands, those that are told among them."""
        if not shortcut.told:
            return self.name(shortcut.constants)
        told = dict(shortcut.told)
        parts = [f"a{told[k]}" if k in told else self.name(x) for k, x in enumerate(shortcut.constants)]
        return f"({', '.join(parts)}, )"

    def pull(self, shortcut: Shortcut, silent: Context) -> None:
        """The lines that compute the cotangents."""
        stage = self.ready.exits.stage
        pulled = self.run(silent, self.ready.back, stage.reverse, "slots", self.name(shortcut.seeds))
        self.lines += [f"        found = list({pulled}[0])"]
        if not all(stage.entered):
            popped = ", ".join("found.pop()" if wanted else "None" for wanted in stage.entered)
            self.lines += ["        found.reverse()", f"        found = [{popped}]"]
        given = ", ".join(f"handed_out(found, {k}, {self.name(spec)}, lent)" for k, spec in enumerate(shortcut.inputs))
        self.lines += [f"        cts = ({given}, )"]
        if shortcut.parts is not None:
            self.lines += [f"        cts = ({''.join(f'{self.structured(*part)}, ' for part in shortcut.parts)})"]

    def structured(self, definition: Any, places: Sequence[int | None]) -> str:
        """The cotangents at these places as a structure; None has none."""
        parts = ["None" if place is None else f"cts[{place}]" for place in places]
        return f"{self.name(unflatten)}({self.name(definition)}, ({''.join(f'{part}, ' for part in parts)}))"

    def run(self, context: Context, work: Workspace, generated: Generated, *arguments: str) -> str:
        """The call of a generated function in a context."""
        buffers, fresh = work.of(generated)
        named = (self.name(generated.function), *arguments, self.name(buffers), self.name(fresh))
        return f"{self.name(context.run)}({', '.join(named)})"

    def function(self, told: list[Any]) -> Caller:
        """What the lines do."""
        place: dict[str, Any] = {f"n{k}": value for k, value in enumerate(self.values.values())}
        place |= {"missed": MISSED, "told": told, "idle": [None], "own": packed_copy}
        place |= {"handed_out": handed_out, "lent": self.ready.back.lent, "same_content": same_content}
        place |= {"bits_where_shared": bits_where_shared, "several": _count}
        compile_function("caller", "\n".join(self.lines) + "\n", place)
        return place.pop("caller")  # type: ignore[no-any-return]  # or it would keep itself
