"""Makes the shortcut of a warm call: finds what the function reads, and makes its derivative a stage.

The gradient of a staged function uses the function's own stage. Any other derivative, or one of a function that calls
derivatives, is carried out as a whole on handles without values (``derivative_stages``), so that all its traces become
one list of operations and one pair of functions.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate
from threading import get_ident
from typing import Any

import numpy as np
from attrs import define

from pullback.loops.bodies.deterministic_functions import Reads, reads_of
from pullback.loops.bodies.told_operands import FollowedBody
from pullback.memory.in_force import InForce, Tracing
from pullback.recording.copies import faithful, faithful_copy
from pullback.recording.handles import SHARED, Handle, make
from pullback.recording.recorder import INPUT
from pullback.recording.tape import Tape
from pullback.staging.calls.call_record import Exits
from pullback.staging.calls.derivative_stages import exits_of, pushed, swept
from pullback.staging.calls.hot_runs import Ready
from pullback.staging.calls.inlined_run import entered_as
from pullback.staging.calls.known_functions import CARRIED, function_within, staged_of
from pullback.staging.calls.shortcut_callers import caller_when_it_pays
from pullback.staging.calls.shortcuts import MOST_COMPARED, Shortcut, Shortcuts
from pullback.staging.calls.staged_functions import StagedFunction, traced_among
from pullback.staging.generated.forward_statements import NotStageableError
from pullback.staging.generated.placing import LARGE
from pullback.staging.shadow.operations import ADD, WRITE
from pullback.tracing.tracer import KINDS
from pullback.words.sameness import same_content
from pullback.words.specs import spec_of
from pullback.words.structures import LEAVES, flatten

_PAIR = "(own(values[0]), own(values[1]))"
_FLOATS = frozenset((float, np.float64, np.float32))
_SEEDED = frozenset((np.float64, np.float32))


@define(eq=False)
class Warm:
    """The shortcuts of one function: of its gradients, and of its tangents."""

    gradients: Shortcuts
    tangents: Shortcuts
    tangent_caller: Any = None
    """The caller that ``jvp`` asks first, once there is one."""

    def gradient(self, hot: Any, owner: Any, args: tuple[Any, ...], where: tuple[int, ...]) -> Any:
        """What the gradient ``hot`` of the function of ``owner`` by the arguments at ``where`` gives, as
        ``Shortcuts.called`` gives it."""
        what = ("gradient", where)
        make = partial(_of_gradient, owner, what, args)
        found = self.gradients.called(what, args, make, hot.told, lambda: hot.anew(hot.f)[0](*args))
        if found is not None:
            caller = caller_when_it_pays(self.gradients, _form_of(hot), args, found[0])
            hot.first[:] = [] if caller is None else [caller]
        return found

    def callers_of(self, hot: Any) -> list[Any]:
        """The caller that calls of gradients like this one have made, in a list; an empty one where there is none."""
        what, form = ("gradient", hot.which.numbers), _form_of(hot)
        return [one.callers[form] for one in self.gradients.kept if one.what == what and form in one.callers][:1]

    def tangent(
        self, f: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...], forward: Any, ordinary: Callable[[], Any]
    ) -> Any:
        """Value and tangent of ``f`` itself, in the same way; ``forward`` as in ``derivative_calls``."""
        args = (*primals, *tangents)
        make_it = partial(_of_tangent, f, args, forward)
        found = self.tangents.called(("tangent", len(primals)), args, make_it, tuple, ordinary)
        if found is not None:
            self.tangent_caller = caller_when_it_pays(self.tangents, _PAIR, args, found[0])
        return found


def _form_of(hot: Any) -> str:
    """The form of a gradient's results, as ``hot.told`` has it."""
    form = "cts" if hot.which.several else "cts[0]"
    return f"(values[0], {form})" if hot.with_value else form


def warm_of(owner: Any) -> Warm:
    """The shortcuts of a staged function; or those of the tangents of a gradient, and of that gradient itself."""
    staging = owner.staging if isinstance(owner, StagedFunction) else None
    return Warm(Shortcuts(staging), Shortcuts(staging))


def _of_gradient(owner: Any, what: Any, args: tuple[Any, ...]) -> Shortcut:
    where = what[1]
    if list(where) != sorted(where):
        raise NotStageableError("the arguments are chosen in another order")
    leaves, definition, places = leaves_of_call(args, where)
    reads = reads_of(owner.f, function_within)
    known = owner if isinstance(owner, StagedFunction) else None if owner.calls_staged else owner.known
    structure = definition and flatten((args, {}))[1]
    found = None if known is None else _told(known, args, leaves, structure, places)
    kinds = kinds_of_leaves(leaves, places, [] if found is None else [k for _, k in found[2]])
    try:
        if found is not None:
            exits, constants, told = found
        elif known is not None:
            exits, constants, told = _stage_of(known, leaves, structure, places)
        elif definition is not None:
            raise NotStageableError("an argument is a structure")
        else:
            whole = partial(_values, owner.f, leaves, places)
            exits, constants = _carried(whole, [leaves[k] for k in places], asked=owner.calls_staged == "staged")
            told = []
    finally:
        require_unwritten(reads, leaves, kinds)
    [spec] = exits.stage.specs
    if exits.n_outputs != 1 or spec.shape != () or spec.dtype.type not in _SEEDED:
        raise NotStageableError("it returns no number")
    shortcut = _shortcut(what, definition, kinds, places, reads, exits, constants, told)
    shortcut.seeds = (spec.dtype.type(1),)
    shortcut.inputs = [spec_of(leaves[k]) for k in places]
    shortcut.parts = None if definition is None else _parts(args, where, places)
    return shortcut


def _told(known: StagedFunction, args: tuple[Any, ...], leaves: list[Any], definition: Any, places: list[int]) -> Any:
    """As :func:`_stage_of`, of a call whose large plain arguments, or some of them, meet operations as they are and
    nothing else; None where none is such. Whoever follows the call writes to nothing."""
    firsts = [0, *accumulate(len(flatten(arg)[0]) for arg in args)]
    large = [k for k, arg in zip(firsts, args, strict=False) if k not in places and _may_be_told(arg)]

    def followed(some: list[int]) -> Any:
        tags: list[Any] = [partial(_nothing_of, k) if k in some else None for k in firsts[:-1]]
        try:
            return _stage_of(known, leaves, definition, places, tags) if some else None
        except Exception:  # noqa: BLE001 - an error of its own comes again
            return None

    return followed(large) or followed([k for k in large if len(large) > 1 and followed([k])])


def _as_they_are(followed: FollowedBody, tags: Sequence[Any]) -> list[tuple[int, Any]]:
    """The plain operands that are told, of which none may be made of an argument."""
    if not all(tag in tags for _, tag in followed.told):
        raise NotStageableError("an operand is made of an argument")
    return followed.told


def _may_be_told(arg: Any) -> bool:
    return type(arg) is np.ndarray and arg.nbytes >= LARGE and arg.dtype.kind in "fciub"


def _nothing_of(place: int, _: int) -> Any:
    """Tells the leaf of a place from what is made of it, for which nobody asks."""
    raise NotStageableError(f"of leaf {place} something is made")


def _shortcut(
    what: Any, definition: Any, kinds: list[Any], places: list[int], reads: Any, exits: Exits, constants: list[Any],
    told: list[tuple[int, int]],
) -> Shortcut:  # fmt: skip
    if exits.stage.record.reads:
        raise NotStageableError("it looks at values")
    if not reads.hold():
        raise NotStageableError("it changes what it reads")
    copies = list(map(faithful, constants))
    for place, _ in told:
        copies[place] = None
    return Shortcut(what, definition, kinds, places, reads, Ready(exits), copies, told)


def leaves_of_call(args: tuple[Any, ...], where: Sequence[int]) -> tuple[list[Any], Any, list[int]]:
    """The leaves of all arguments, their structure, None for leaves alone, and where those are that carry a
    derivative of an argument at ``where``."""
    leaves: list[Any] = []
    places: list[int] = []
    for k, arg in enumerate(args):
        own = flatten(arg)[0]
        for leaf in own:
            if k in where:
                is_float = type(leaf) is np.ndarray and leaf.dtype.char in "fd" and leaf.dtype.isnative
                if not is_float and type(leaf) not in _FLOATS:
                    raise NotStageableError("an argument is of no common kind")
                places.append(len(leaves))
            leaves.append(leaf)
    if all(type(arg) in LEAVES for arg in args):
        return leaves, None, places
    if not all(map(_is_plain_structure, args)):
        raise NotStageableError("an argument is of a class whose methods may read anything")
    return leaves, flatten(args)[1], places


def _is_plain_structure(arg: Any) -> bool:
    """Whether tuples, lists and dicts alone hold the leaves: a class of the user's has members that nobody has looked
    at, and the body may ask for them."""
    if type(arg) is dict:
        return all(map(_is_plain_structure, arg.values()))
    if type(arg) in (tuple, list):
        return all(map(_is_plain_structure, arg))
    return arg is None or type(arg) in LEAVES


def kinds_of_leaves(leaves: list[Any], places: list[int], told: Sequence[int] = ()) -> list[Any]:
    """What each leaf of a later call is compared with, as ``Shortcut.kinds``."""
    kinds: list[Any] = []
    for k, leaf in enumerate(leaves):
        if k in places or k in told:
            is_array = type(leaf) is np.ndarray
            kinds.append((np.ndarray, leaf.shape, leaf.dtype, leaf.strides) if is_array else (type(leaf),))
        elif type(leaf) is np.ndarray:
            if leaf.nbytes > MOST_COMPARED or leaf.dtype.hasobject:
                raise NotStageableError("a large plain argument")
            kinds.append([faithful_copy(leaf)])
        elif type(leaf) in LEAVES or type(leaf) is str:
            kinds.append([leaf])
        else:
            raise NotStageableError("a plain argument of no common kind")
    return kinds


def require_unwritten(reads: Reads, leaves: Sequence[Any], kinds: list[Any]) -> None:
    """The body has run once more than the program says: what it has written, as by ``out=``, is put back."""
    arrays = reads.arrays + [
        (leaf, kind[0]) for leaf, kind in zip(leaves, kinds, strict=True) if type(kind) is list
    ]  # fmt: skip
    written = [(array, copy) for array, copy in arrays if not same_content(copy, array)]
    for array, copy in written:
        array[...] = copy
    if written:
        raise NotStageableError("it writes to an array that it reads from outside")


def _parts(args: tuple[Any, ...], where: Sequence[int], places: list[int]) -> list[Any]:
    found, n = [], 0
    for k in where:
        leaves, definition = flatten(args[k])
        found.append((definition, list(range(n, n + len(leaves)))))
        n += len(leaves)
    assert n == len(places)
    return found


def _stage_of(
    known: StagedFunction, leaves: list[Any], definition: Any, places: list[int], tags: Sequence[Any] = ()
) -> tuple[Exits, list[Any], list[tuple[int, int]]]:
    """The stage that a call of a staged function follows, and what it has for constants then: it is called once more,
    in a trace of its own. Also where constants are leaves as they are: of arguments with ``tags`` nothing else may be
    asked, or :class:`NotTheSameError` is raised."""
    tape, taken = Tape(1, KINDS), list(leaves)
    for k in places:
        kind = KINDS.weak if type(leaves[k]) is float else KINDS.tracer
        taken[k] = make(kind, leaves[k], len(tape.records), tape, SHARED)
        tape.records.append((INPUT.opcode, 0))
    tape.n_inputs = len(places)
    with Tracing(tape):
        found = traced_among(taken, tape)
        if found is None:
            raise NotStageableError("an argument is of no common kind")
        given, variants = found[0], known.variants(found[1])
        run, works = known.taken()
        run.tape.thread = get_ident()
        stages = [stage for stage in variants.stages if not stage.record.reads]
        run.enters(tape, 2, [stage.known for stage in stages], given)
        try:
            for handle in given:
                run.stands[handle._id] = run.enter(handle._value, entered_as(handle))
            own = {id(handle): run.stands[handle._id] for handle in given}
            with Tracing(run.tape):
                followed = FollowedBody(run.constants)
                call = (lambda *args: followed.call(known.f, args, tags)) if tags else known.f
                returned = known.returned_by([own.get(id(leaf), leaf) for leaf in taken], definition, run, call)
            if run.following is None or run.captured or returned[1] is not None:
                raise NotStageableError("it is not followed")
            if any(op.what in (WRITE, ADD) for op in run.following.operations):
                raise NotStageableError("it writes to an array")
            told: list[tuple[int, int]] = [(place, tag.args[0]) for place, tag in _as_they_are(followed, tags)]
            if not all(same_content(leaves[k], run.constants[place]) for place, k in told):
                raise NotStageableError("an operand is no argument")
            return known.exits_of(run, variants), list(run.constants), told
        finally:
            known.ended(run, variants, whole=False)
            known.put_back(run, works)
            tape.close()


def _of_tangent(f: Any, args: tuple[Any, ...], forward: Any) -> Shortcut:
    """The shortcut of a tangent, of arrays and numbers."""
    n, (tangents, kind) = len(args) // 2, forward
    for x, t in zip(args[:n], args[n:], strict=True):
        spec = spec_of(x)
        if type(x) is not type(t) or spec != spec_of(t) or spec.dtype.char not in "fd" or type(x) is float:
            raise NotStageableError("an argument is of no common kind")
        if type(t) is np.ndarray and not t.flags.c_contiguous:
            raise NotStageableError("a tangent is laid out in another way")
    reads, places = reads_of(f, function_within), list(range(2 * n))
    kinds = kinds_of_leaves(list(args), places)
    inner = pushed(tangents, kind, lambda given, _, __: [f(*given)])
    try:
        exits, constants = _carried(lambda xs: inner(xs, [], []), list(args), asked=staged_of(f) is not None)
    finally:
        require_unwritten(reads, args, kinds)
    if exits.n_outputs != 2:
        raise NotStageableError("it returns no single value")
    return _shortcut(("tangent", n), None, kinds, places, reads, exits, constants, [])


def _values(f: Callable[..., Any], leaves: list[Any], places: list[int], xs: list[Any]) -> list[Any]:
    taken = list(leaves)
    for k, x in zip(places, xs, strict=True):
        taken[k] = x
    return [f(*taken)]


def _carried(
    program: Callable[[list[Any]], list[Any]], inputs: list[Any], *, asked: bool
) -> tuple[Exits, list[Any]]:
    """The stage of a program that computes derivatives."""
    if any(type(x) is float for x in inputs):
        raise NotStageableError("an argument is a number of Python's")
    with carried():
        return exits_of(program, inputs, asked=asked)


@contextmanager
def carried() -> Iterator[None]:
    """Within the block gradients are computed as parts of a program that becomes a stage."""
    token = CARRIED.set(carried_gradient)
    try:
        with InForce(None, None, "off"):
            yield
    finally:
        CARRIED.reset(token)


def carried_gradient(f: Callable[..., Any], args: tuple[Any, ...], where: Sequence[int]) -> tuple[Any, list[Any]]:
    """Value and cotangents of a function within such a program."""

    def compute(_: Tape, given: list[Any]) -> Any:
        taken = list(args)
        for k, x in zip(where, given, strict=True):
            taken[k] = x
        return f(*taken)

    xs = [args[k] for k in where]
    for x in xs:
        if not isinstance(x, Handle) and type(x) is not np.ndarray and type(x) not in _SEEDED:
            raise NotStageableError("a gradient by another kind of argument")
    value, cts = swept(xs, compute)
    if any(ct is None for ct in cts):
        raise NotStageableError("a gradient that is 0")
    return value, [ct[()] if type(ct) is np.ndarray and not ct.shape else ct for ct in cts]
