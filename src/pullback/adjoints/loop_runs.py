"""A loop that runs as one record: its values go in, its generated forward computes, and what it assigns comes out."""

from sys import getrefcount
from types import FrameType
from typing import Any, Final

import numpy as np
from attrs import define

from pullback.adjoints.compiled_runs import compiled_by
from pullback.adjoints.expressions import DeclinedError
from pullback.adjoints.generated import Callees, Written
from pullback.adjoints.kinds import ACTIVE, PLAIN, WHOLE, Kind, RefusedError
from pullback.adjoints.loop_code import LoopCode
from pullback.memory.in_force import recording_alone, staging_in_force
from pullback.recording.handles import (
    FROZEN,
    SAVED,
    WRITTEN,
    WRITTEN_SHARED,
    Handle,
    activate,
    is_array,
    over,
    resolve,
    root_of,
)
from pullback.recording.recorder import hold
from pullback.recording.results import component
from pullback.recording.writes import copied, empty_with_strides
from pullback.rules.cotangent_sums import LARGE, alone, send
from pullback.rules.forms import special_form
from pullback.rules.nan_masking import MASKED_PULLS
from pullback.words.call_sites import find_site
from pullback.words.specs import ArraySpec

COPIED: Final = 1 << 15
"""Bytes of arrays that may be copied for a loop of a single turn, and for each turn more a quarter of it."""


def _references(given: dict[str, Any], name: str) -> int:
    """How many hold the value of a name, as ``getrefcount`` counts."""
    return getrefcount(given[name])


def _measured() -> int:
    x = object()
    names = {"x": x}
    given, _handles = dict(names), dict(names)
    return _references(given, "x")


HELD: Final = _measured()
"""What is counted of a value that a local of an adopted function alone has: it is in three dicts, too."""


@define(eq=False)
class LoopRun:
    """What the record of a loop holds. ``collective`` and ``release`` are what is asked of every record that is as
    long as it likes."""

    written: Written
    stack: list[Any]
    """What the forward has pushed."""
    values: dict[str, Any]
    """What the reverse reads by name."""
    specs: dict[str, ArraySpec]
    """Of the active arrays."""
    entering: dict[str, int]
    """The ids of the active values that went in."""
    leaving: dict[str, int]
    """The places of what came out among the outputs."""
    first: int
    """The id of the first of the outputs."""
    bound: frozenset[str]
    """The names that stand for something else since the loop."""
    compiled: Any = None
    """What its backend has made of the functions, where that ran forward."""
    collective: bool = False

    def release(self) -> None:
        """Nothing of it is in a ledger."""

    @property
    def ct_bytes(self) -> tuple[int, ...]:
        """What its cotangents take."""
        return tuple(spec.nbytes for spec in self.specs.values())


def run_loop(code: LoopCode, given: dict[str, Any], frame: FrameType) -> dict[str, Any] | None:
    """Run a loop of adopted code as one record of the trace under way; ``given`` are the values of its names where it
    stands in ``frame``.

    Returns
    -------
    The values of the names that it assigns; None where it has to run the ordinary way, and nothing has been done.
    """
    tape, staging = recording_alone(), staging_in_force()
    if tape is None or not tape.joins or staging == "off":
        return None
    module = frame.f_globals
    handles = {name: resolve(x) for name, x in given.items() if isinstance(x, Handle)}
    values = {name: handles[name]._value if name in handles else x for name, x in given.items()}
    written = _written(code, values, handles, tape, module)
    if type(written) is str or not _may_write(written, given, handles, values):
        code.why = written if type(written) is str else "a view, an array with gaps, or a value with another name"
        return None
    try:
        if not _pays(written, handles, values):
            code.why = "its arrays are large: they would be copied, or cotangents of them made anew"
            return None
        own, made, stack, compiled = _computed(written, values, staging)
    except DeclinedError as why:
        code.why = str(why)
        return None
    except Exception as error:  # noqa: BLE001 - the ordinary way raises it, at the user's line
        code.why = f"it raises {type(error).__name__}"
        return None
    code.why = ""
    return _recorded(tape, written, own, made, handles, values, (stack, compiled), find_site(tape, frame))


def _computed(written: Written, values: dict[str, Any], staging: str) -> tuple[dict[str, Any], Any, Any, Any]:
    """The forward, on copies of the arrays that it writes to: these, what it gives, what it has pushed, and what a
    backend has made of the loop, where that has computed it."""
    compiled = compiled_by(staging, written) if staging != "auto" else None
    first, found = _copied(written, values), None
    if compiled is not None:
        found = compiled.run(first)
        if found is not None and "forward" in compiled.proved:
            return first, *found, compiled
    own, pushed = first if compiled is None else _copied(written, values), list[Any]()
    made = written.forward(pushed.append, *own.values())
    if compiled is not None and found is not None:
        stack, stored = np.array(pushed, float), written.code.stored
        numbers = [[said[name] for name in found[0]] for said in (found[0], made)]
        arrays = [[copies[name] for name in stored] for copies in (first, own)]
        left = [[*map(type, one), *one, *other] for one, other in zip(numbers, arrays, strict=True)]
        if compiled.compare("forward", [*left[0], found[1]], [*left[1], stack]):
            return own, made, stack, compiled
    return own, made, pushed, None


def _copied(written: Written, values: dict[str, Any]) -> dict[str, Any]:
    stored = written.code.stored
    return {name: x.copy() if name in stored and type(x) is np.ndarray else x for name, x in values.items()}


def _written(code: LoopCode, values: Any, handles: Any, tape: Any, module: Any) -> Any:
    """The functions of a loop for these values; why not, where it cannot be written backwards."""
    kinds, dtypes = {}, set()
    for name, x in values.items():
        kind = _kind_of(x, handles.get(name), tape)
        if kind is not None:
            kinds[name] = kind
            if kind.level != WHOLE and hasattr(x, "dtype"):
                dtypes.add(x.dtype.char)
    if not dtypes <= {"d"}:
        return "numbers that are not float64"
    key = tuple(kinds.items())
    if key not in code.made:
        try:
            code.made[key] = Written(code, kinds, Callees(module))
        except RefusedError as why:
            code.made[key] = str(why)
    found = code.made[key]
    if type(found) is Written and not found.callees.unchanged(module):
        return "its module means another function by a name than it did"
    return found


def _kind_of(x: Any, handle: Any, tape: Any) -> Kind | None:
    """What is known of a value; None for what no loop can compute with."""
    if handle is not None and (handle._tape is not tape or isinstance(x, Handle)):
        return None
    kind = type(x)
    if kind is int or isinstance(x, np.integer):
        return Kind(WHOLE, 0)
    level = ACTIVE if handle is not None and handle._id is not None else PLAIN
    if kind is float or kind is np.float64:
        return Kind(level, 0)
    if kind is not np.ndarray or not x.ndim:
        return None
    if x.dtype.kind in "iu":
        return Kind(WHOLE, x.ndim) if handle is None else None
    return Kind(level, x.ndim) if x.dtype.kind == "f" else None


def _may_write(written: Written, given: Any, handles: Any, values: Any) -> bool:
    """Whether what is written and bound anew is nobody else's, so that nothing is seen of it but by its name."""
    code, roots = written.code, set()
    for name in code.stored:
        handle = handles.get(name)
        if handle is None or type(handle) is handle._tape.kinds.view or handle._flag == FROZEN:
            return False
        if handle._id in handle._tape.overlapping or id(handle) in roots:
            return False
        if not (values[name].flags.c_contiguous and values[name].flags.writeable):
            return False
        roots.add(id(handle))
    if any(id(root_of(handles[name])) in roots for name in handles if name not in code.stored):
        return False
    # Two names of one value would each go on with the cotangent that the other has begun.
    idents = [handles[name]._id for name in (*written.scalars, *written.arrays) if name in handles]
    if len({ident for ident in idents if ident is not None}) < sum(ident is not None for ident in idents):
        return False
    for name in code.assigned:
        if type(values[name]) is np.ndarray:  # it may go on the stack as it is
            if name not in handles or type(handles[name]) is handles[name]._tape.kinds.view:
                return False
            hold(handles[name], values[name], handles[name]._tape)
    # Another name of the same value may get cotangents of it later than this loop.
    return all(_references(given, name) <= HELD for name in code.assigned if name in handles)


def _pays(written: Written, handles: Any, values: Any) -> bool:
    """Whether the arrays that are copied, and those that a write after the loop will copy, are small for its length.
    Loops that make large arrays do not: operation by operation the sweep writes into cotangents that die."""
    flags = (WRITTEN, WRITTEN_SHARED)
    arrays = {name: values[name] for name in written.known if type(values.get(name)) is np.ndarray}
    large = sum(
        x.nbytes
        for name, x in arrays.items()
        if name in written.code.stored or (name in handles and root_of(handles[name])._flag in flags)
    )
    makes = any(written.known[name].rank for name in written.scalars)
    if makes and max((x.nbytes for x in arrays.values()), default=0) >= LARGE:
        return False
    return bool(large <= COPIED or large <= COPIED // 4 * int(written.trips(*values.values())))


def _recorded(
    tape: Any, written: Written, own: Any, made: dict[str, Any], handles: Any, values: Any, pushed: Any, site: int
) -> dict[str, Any]:
    """Append the record of a loop that has run, and one for each of its outputs; what each name stands for then.
    ``made`` is what the forward gives."""
    code, active = written.code, (*written.scalars, *written.arrays)
    entering = {name: handles[name]._id for name in active if name in handles and handles[name]._id is not None}
    out = {name: made[name] for name in code.assigned if name in made}
    results = {name: own[name] if name in own and name in code.stored else out[name] for name in written.told(made)}
    if results:
        held = {name: _kept(handles.get(name), values[name], tape) for name in written.reads}
        specs = {name: ArraySpec(values[name].shape, values[name].dtype) for name in written.arrays}
        place = {name: k for k, name in enumerate(results)}
        ident = len(tape.records)
        bound = frozenset({*code.assigned, *results})
        run = LoopRun(written, pushed[0], held, specs, entering, place, ident + 1, bound, pushed[1])
        tape.records.append((LOOP.opcode, tuple(entering.values()), run, site))
        for name, k in place.items():
            part = component(tape, ident, k, results[name], len(place))
            if name in code.stored:
                activate(handles[name], part._id)
            else:
                part._flag, out[name] = SAVED, part  # it may be on the stack
    for name in code.stored:
        if name in results or name not in entering:  # or nothing was written
            handles[name]._value, handles[name]._flag, handles[name]._spec = own[name], WRITTEN, None
    for name in [name for name, x in out.items() if type(x) is np.ndarray]:
        if out[name] is values[name]:
            del out[name]  # it is bound to what it was
        else:
            out[name] = over(out[name], tape, SAVED)
    return out


def _kept(handle: Any, value: Any, tape: Any) -> Any:
    """A value for the reverse, which no later write reaches."""
    if handle is not None:
        return hold(handle, value, tape)
    return tape.keep(value) if type(value) is np.ndarray else value


# ------------------------------------------------------------------------------------------------------------- reverse
def _pull_loop(record: Any, ct: Any, cts: Any, sweep: Any, *, masked: bool = False) -> None:
    """The cotangents of what came out go through the reverse of the loop to what went in."""
    run: LoopRun = record[2]
    written = run.written
    begun: dict[str, Any] = {name: ct[k] for name, k in run.leaving.items()}
    for name, ident in run.entering.items():
        if name not in run.bound:
            begun[name] = cts[ident]
    on = next((g for g in begun.values() if isinstance(g, Handle)), None)
    scalars = [_number(begun.get(name), on) for name in written.scalars]
    compiled = run.compiled if on is None and not masked else None
    tried = found = None
    if compiled is not None:
        filled = [_filled(begun.get(name), run.specs[name]) for name in written.arrays]
        tried = compiled.pull(run.stack, run.values, scalars, filled)
        found = tried if "reverse" in compiled.proved else None
    if found is None:
        reads = [run.values[name] for name in sorted(written.reads)]
        arrays = [_buffer(begun.get(name), name, run, sweep, on) for name in written.arrays]
        new = [_new_of(run.specs[name], on) for name in written.arrays]
        del begun, ct
        back = written.masked_reverse if masked else written.reverse
        found = back(reversed(run.stack).__next__, *new, *reads, *scalars, *arrays)
        del arrays
        if compiled is not None and tried is not None:
            compiled.compare("reverse", tried, found)
    del scalars
    for name, g in zip((*written.scalars, *written.arrays), found, strict=True):
        if name not in run.entering or g is None:
            continue
        ident = run.entering[name]
        if name not in run.bound:
            cts[ident] = None  # it has gone in
        if name in written.arrays and cts[ident] is None:
            sweep.owned.add(ident)
        send(cts, ident, g, sweep)


def _number(g: Any, on: Any) -> Any:
    """The cotangent of a number as NumPy's."""
    if type(g) is float:
        return np.float64(g)
    return g[()] if type(g) is np.ndarray and not g.ndim else g


def _new_of(spec: ArraySpec, on: Any) -> Any:
    """What gives zeros for the cotangent of an array."""

    def new() -> Any:
        buffer = empty_with_strides(spec.shape, spec.dtype, None)
        buffer[...] = 0
        return buffer if on is None else over(buffer, on._tape)

    return new


def _filled(g: Any, spec: ArraySpec) -> tuple[Any, bool]:
    """An array that may be written to, with a cotangent or zeros, and whether it is one."""
    buffer = empty_with_strides(spec.shape, spec.dtype, None)
    buffer[...] = 0 if g is None else g
    return buffer, g is not None


def _buffer(g: Any, name: str, run: LoopRun, sweep: Any, on: Any) -> Any:
    """The cotangent of an array as one that may be written to."""
    if g is None:
        return None
    if isinstance(g, Handle) or on is not None:
        return copied(g) if isinstance(g, Handle) and is_array(g) else over(np.array(g), on._tape)
    ident = run.first + run.leaving[name] if name in run.leaving else run.entering[name]
    if type(g) is np.ndarray and (ident in sweep.owned or alone(g)) and g.flags.writeable:
        return g
    return np.array(g)


LOOP = special_form("loop", _pull_loop, wide=True)
MASKED_PULLS[LOOP.opcode] = lambda record, ct, cts, sweep: _pull_loop(record, ct, cts, sweep, masked=True)
