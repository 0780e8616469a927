"""Reverse-mode transforms: ``grad``, ``value_and_grad``, ``vjp``. They compose the floors below and add no rule of
their own."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from threading import RLock
from typing import Any

import numpy as np

from pullback.loops.plain_code import PlainCode
from pullback.memory.in_force import policy_in_force, watchers
from pullback.memory.ledger import Ledger, Report
from pullback.memory.sweep import Sweep, innermost_of, release_records, sweep
from pullback.policies.save_all import SaveAll
from pullback.recording.handles import Handle
from pullback.recording.tape import Tape
from pullback.recording.traps import TRAPPED
from pullback.rules.forms import FORMS
from pullback.tracing.running import Traced, lowered, run_traced
from pullback.transforms.adjoint_fields import Adjoints, Marks, adjoints, require_marked
from pullback.transforms.argnums import Chosen, chosen
from pullback.transforms.seed_checks import checked_seed, conjugate, require_complex_linear, scalar_seed
from pullback.words.call_sites import public, site_text
from pullback.words.errors import StructureError, TracerError
from pullback.words.sniffs import HELD
from pullback.words.specs import spec_of
from pullback.words.structures import flatten, map_leaves, matched, unflatten


def value_and_grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    conj: bool = False,
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None,
) -> Callable[..., Any]:
    """A function that returns ``(f(...), gradient)``.

    ``f`` returns a real scalar (a complex one with ``holomorphic``), or ``(scalar, aux)`` with ``has_aux``; then the
    result is ``((scalar, aux), gradient)``. The gradient has the structure, shapes and dtypes of the argument at
    ``argnums`` (a tuple for several) and shares no memory with anything. ``argnames`` chooses arguments by name
    instead, given by position or by keyword: one name, or several for a dict of gradients. ``policy`` says what is kept
    between forward and reverse; it changes memory and time, never a bit of the result. For a complex argument it is
    df/dx - i df/dy, with ``conj`` df/dx + i df/dy (as torch). ``on_adjoint={"u": fn}`` calls ``fn(step, ct)`` with the
    cotangent of every value marked ``pullback.name(u, "u")``, the last first. Raises :class:`NotDifferentiableError`
    for a non-scalar output, for an integer argument unless ``allow_int``, and with ``holomorphic`` for a function that
    is not (the derivative along i is compared with i times that along 1).
    """
    told = (policy, has_aux, holomorphic, allow_int, conj, on_adjoint)
    return public(_gradient_of(f, chosen(argnums, argnames), with_value=True, told=told), like=f)


def grad(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    argnames: str | Sequence[str] | None = None,
    policy: Any = None,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    conj: bool = False,
    on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None,
) -> Callable[..., Any]:
    """A function that returns the gradient of ``f`` (``(gradient, aux)`` with ``has_aux``); see
    :func:`value_and_grad`."""
    told = (policy, has_aux, holomorphic, allow_int, conj, on_adjoint)
    return public(_gradient_of(f, chosen(argnums, argnames), with_value=False, told=told), like=f)


def _gradient_of(f: Callable[..., Any], which: Chosen, *, with_value: bool, told: Any) -> Callable[..., Any]:
    """What ``grad`` and, ``with_value``, ``value_and_grad`` return; the aux stands beside the first of the results."""
    policy, has_aux, holomorphic, allow_int, conj, on_adjoint = told

    def gradient(*args: Any, **kwargs: Any) -> Any:
        called: Any = f
        where: Sequence[int] = which.numbers
        if not 0 <= which.last < len(args):
            called, args, kwargs, where = which.call(f, args, kwargs)
        traced, ledger = traced_under(policy, called, args, kwargs, where, allow_int=allow_int, repeatable=holomorphic)
        try:
            out, aux = split_aux(traced.out, has_aux=has_aux)
            seed = scalar_seed(out, f, holomorphic=holomorphic)
        except BaseException:
            Pull(traced, ledger).close()
            raise
        if holomorphic or ledger.heard or traced.governor is not None or on_adjoint or traced.tape.marks is not None:
            cts = _pulled_once(Pull(traced, ledger), f, out, seed, (conj, holomorphic, on_adjoint))
        else:
            cts = _swept_once(traced, out, seed)
        gradients = traced.structured([conjugate(ct) for ct in cts] if conj else cts)
        found = which.structured(gradients) if which.several else gradients[0]
        aux = map_leaves(lambda leaf: lowered(leaf, traced.tape), aux) if has_aux else None
        if not with_value:
            return (found, aux) if has_aux else found
        result = lowered(out, traced.tape)
        return ((result, aux) if has_aux else result), found

    return gradient


def _pulled_once(pull: "Pull", f: Any, out: Any, seed: Any, told: Any) -> list[Any]:
    """The cotangent of every input, of a pull that is used up."""
    conj, holomorphic, on_adjoint = told
    pull.conj = conj
    pull.listen(on_adjoint, keeps=False)
    specs = pull.input_specs
    cts = pull.once([out], [seed], free=not holomorphic)
    if holomorphic:
        pull.listen(None, keeps=False)
        require_complex_linear(f, specs, cts, pull.once([out], [1j * seed], free=False))
        pull.close()
    return cts


def _swept_once(traced: Traced, out: Any, seed: Any) -> list[Any]:
    """The same of a trace that saves all, and of which nobody hears: the sweep alone, which uses up the tape."""
    traced.require_unchanged()
    tape = traced.tape
    one = _seeded(tape, (out,), (seed,))
    one.frees = True
    sweep(tape, tape.n_inputs, len(tape.records), (one,))
    return [_given_out(one.cts, k, given) for k, given in enumerate(traced.inputs)]


def _seeded(tape: Tape, outs: Sequence[Any], seeds: Sequence[Any]) -> Sweep:
    """The sweep that begins with these cotangents of the outputs."""
    cts: list[Any] = [None] * len(tape.records)
    for out, seed in zip(outs, seeds, strict=True):
        if seed is not None and isinstance(out, Handle) and out._tape is tape and out._id is not None:
            cts[out._id] = seed if cts[out._id] is None else cts[out._id] + seed
    return Sweep(cts, outer=innermost_of(tape.outer, seeds))


@public
def vjp(f: Callable[..., Any], *primals: Any, policy: Any = None, has_aux: bool = False, conj: bool = False) -> Any:
    """``(out, pull)``: the value of ``f`` and the function that takes a cotangent of it to the tuple of cotangents of
    the primals.

    ``pull(ct)`` may be called again; it keeps what that needs until ``pull.close()``. ``pull([ct, ct2])`` gives a list
    of answers, and what the policy runs again is run once for all of them. ``pull.report`` says what the reverse held.
    With ``has_aux``, ``f`` returns ``(out, aux)`` and the result is ``(out, pull, aux)``. A cotangent has the
    structure, shapes and dtypes of the output; raises :class:`StructureError` for another structure. With ``conj``
    cotangents of complex values, those given and those returned, are df/dx + i df/dy (as torch) in the place of df/dx -
    i df/dy.
    """
    traced, pull = forward(f, primals, {}, range(len(primals)), policy, allow_int=True, repeatable=True)
    out, aux = split_aux(traced.out, has_aux=has_aux)
    pull.conj = conj
    pull.out_leaves, pull.out_definition = flatten(out)
    result = unflatten(pull.out_definition, [lowered(leaf, traced.tape) for leaf in pull.out_leaves])
    if has_aux:
        return result, pull, map_leaves(lambda leaf: lowered(leaf, traced.tape), aux)
    return result, pull


class Pull:
    """What ``vjp`` returns beside the value: a function from a cotangent of the output to the cotangents of the
    primals."""

    def __init__(self, traced: Traced, ledger: Ledger) -> None:
        self.out_leaves: list[Any] = []
        self.out_definition: Any = None
        self.conj = False
        self._traced: Traced | None = traced
        self._site = traced.site
        self._adjoints: Adjoints | None = None
        self._governor: Any = traced.governor
        self.ledger = ledger
        self._lock = RLock()
        self._pulling = False

    @public
    def __call__(self, ct: Any, *, on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None = None) -> Any:
        """The tuple of the cotangents of the primals, given a cotangent of the output; for a list of cotangents a list
        of tuples.

        A list is one cotangent where it has the structure of the output. Of several, each has the bits that a call of
        its own would give it; what the policy runs again is run once for all of them, and the cotangents under way are
        held for each. ``on_adjoint={"u": fn}`` calls ``fn(step, ct)`` for every value marked ``pullback.name(u, "u")``;
        ``ct`` is a list with one for each where several are given. One thread pulls at a time; others wait for it.
        """
        with self._lock:
            if self._pulling:
                raise TracerError(
                    f"this pull is called while it pulls (of the function differentiated at {self._open().called_at}): "
                    "by a rule, a body or a function in on_adjoint; make a vjp of its own for the inner call"
                )
            self._pulling = True
            try:
                return self._pulled(ct, on_adjoint)
            finally:
                self._pulling = False

    def _pulled(self, ct: Any, on_adjoint: Mapping[str, Callable[[Any, Any], Any]] | None) -> Any:
        traced = self._open()
        one = matched(ct, self.out_definition) is not None
        if not one and type(ct) is not list:
            raise StructureError(self._misfit(ct, ""))
        given = [ct] if one else ct
        seeds = [self._seeds_of(cotangent, f" number {k}" if not one else "") for k, cotangent in enumerate(given)]
        self.listen(on_adjoint, keeps=True, several=None if one else len(given))
        found = [
            tuple(traced.structured([self._given(g) for g in cts]))
            for cts in self.each(self.out_leaves, seeds, free=False)
        ]
        return found[0] if one else found

    def _seeds_of(self, ct: Any, which: str) -> list[Any]:
        """A checked seed for each leaf of the output."""
        leaves = matched(ct, self.out_definition)
        if leaves is None:
            raise StructureError(self._misfit(ct, which))
        traced = self._open()
        return [
            self._given(checked_seed(leaf, out, traced, which))
            for leaf, out in zip(leaves, self.out_leaves, strict=True)
        ]

    def _misfit(self, ct: Any, which: str) -> str:
        where = self._open().called_at
        return (
            f"the cotangent{which} has structure {flatten(ct)[1]}, the output of the function differentiated at "
            f"{where} has {self.out_definition}; give one leaf per output leaf, None where an output is not used, or a "
            "list of such for several seeds"
        )

    def _given(self, ct: Any) -> Any:
        """A cotangent as it goes between the user and the sweep, in either direction."""
        return conjugate(ct) if self.conj else ct

    def once(self, outs: list[Any], seeds: list[Any], *, free: bool) -> list[Any]:
        """One reverse sweep: the cotangent of every input, zeros where the output does not depend on it. ``free``
        gives up the tape."""
        [cts] = self.each(outs, [seeds], free=free)
        return cts

    def each(self, outs: list[Any], seeds: Sequence[Sequence[Any]], *, free: bool) -> list[list[Any]]:
        """The same for several seeds, which share what the policy runs again: a list for each."""
        if not seeds:
            return []
        traced = self._open()
        traced.require_unchanged()
        began = time.perf_counter()
        tape = traced.tape
        told = watchers()
        plain = self.ledger.plain_bytes(tape) if told else {}  # now: a freed tape holds nothing afterwards
        runs = [_seeded(tape, outs, given) for given in seeds]
        for run in runs:
            run.frees, run.told = free, self._adjoints
        if free:
            self._traced = None
        if self._governor is not None:
            self._governor.reverse(runs)
        else:
            sweep(tape, tape.n_inputs, len(tape.records), runs)
        self.ledger.elapsed_seconds += time.perf_counter() - began
        for tell in told:
            tell(self.ledger.report(plain))
        return [[_given_out(run.cts, k, given) for k, given in enumerate(traced.inputs)] for run in runs]

    @property
    def seed_bytes(self) -> int:
        """About what the cotangents of one more seed in the same call hold."""
        traced = self._open()
        tape = traced.tape
        chains = self._governor.chains if self._governor is not None else ()
        loops = [record[2] for record in tape.records if record is not None and FORMS[record[0]].wide]
        around = sum(spec_of(leaf).nbytes for leaf in self.out_leaves if isinstance(leaf, Handle))
        around += sum(given.spec.nbytes for given in traced.inputs) + 8 * len(tape.records)
        within = [sum(loop.ct_bytes) for loop in loops] + [chain.live_bytes() for chain in chains]
        return int(around + max(within, default=0))

    def listen(self, on_adjoint: Mapping[str, Any] | None, *, keeps: bool, several: int | None = None) -> None:
        """From now on the cotangents of marked values go to the functions in ``on_adjoint``; with ``keeps`` the
        others are stored."""
        tape = self._open().tape
        marked = tape.marks is not None or on_adjoint
        self._adjoints = adjoints(tape, on_adjoint, keeps=keeps, given=self._given, several=several) if marked else None

    def adjoint(self, tag: str) -> Any:
        """The cotangent, in the last call of this pull, of the value marked ``pullback.name(u, tag)``; of several, a
        list in forward order.

        Where the call was given a list of seeds, each is a list with one for each seed. Zeros where the output does not
        depend on the value. Raises :class:`StructureError` for a tag that is not marked, and for one marked in the
        steps of a loop function, whose cotangents only ``pull(ct, on_adjoint={tag: fn})`` hands out.
        """
        if self._adjoints is None:
            tape = self._open().tape
            require_marked((tag,), tape.marks or Marks())
            raise StructureError(
                f"adjoint({tag!r}) has the cotangents of the last reverse pass, and there was none; call pull(ct) first"
            )
        return self._adjoints.of(tag)

    @property
    def input_specs(self) -> list[Any]:
        """The specs of the inputs."""
        return [given.spec for given in self._open().inputs]

    def _open(self) -> Traced:
        if self._traced is None:
            raise TracerError(
                "this pull is closed and holds nothing (of the function differentiated at "
                f"{site_text(self._site)}); call vjp again"
            )
        return self._traced

    @property
    def report(self) -> Report:
        """What was held between forward and reverse, by reason, and what the reverse did."""
        return self.ledger.report(self.ledger.plain_bytes(self._traced.tape if self._traced is not None else None))

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "_pulling"):  # an interrupt may have come while it was made
            self.close()

    def close(self) -> None:
        """Release everything held for the reverse; a pull under way in another thread ends first."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._traced is not None:
            release_records(self._traced.tape.records)
            # a loop among them knows the tape: a cycle, which would wait for the collector
            self._traced.tape.records.clear()
        self._traced, self.out_leaves, self._adjoints = None, [], None
        if self._governor is not None:
            self._governor.close()
            self._governor = None


def forward(
    f: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    argnums: Any,
    policy: Any,
    *,
    allow_int: bool,
    repeatable: bool,
) -> tuple[Traced, Pull]:
    """Run ``f`` on tracers under a policy: the finished trace, and the pull that reverses it."""
    traced, ledger = traced_under(policy, f, args, kwargs, argnums, allow_int=allow_int, repeatable=repeatable)
    return traced, Pull(traced, ledger)


def traced_under(
    policy: Any,
    f: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    argnums: Any,
    *,
    allow_int: bool,
    repeatable: bool,
) -> tuple[Traced, Ledger]:
    """Run ``f`` on tracers under a policy: the finished trace, and where what it holds is booked."""
    ledger = Ledger(heard=repeatable or bool(watchers()))
    chosen = policy_in_force(policy)
    saves_all = isinstance(chosen, SaveAll)
    governor = None if saves_all and not TRAPPED.get() else PlainCode(chosen, ledger, repeatable, marked=saves_all)
    traced = run_traced(
        f, args, kwargs, argnums,
        allow_int=allow_int, governor=governor, policy=chosen, ledger=ledger, repeatable=repeatable,
    )  # fmt: skip
    return traced, ledger


def split_aux(out: Any, *, has_aux: bool) -> tuple[Any, Any]:
    """What the function returned, and beside it the aux that it promised."""
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise StructureError(f"with has_aux=True the function returns (output, aux), got {type(out).__name__}")
    return out


def _given_out(cts: list[Any], k: int, given: Any) -> Any:
    """The cotangent of input ``k`` as the user gets it: of the primal's shape and dtype, writable, sharing memory
    with nothing."""
    ct = cts[k]
    cts[k] = None
    if ct is None:
        zero = np.zeros(given.spec.shape, given.spec.dtype)
        return zero if given.spec.shape else zero[()]
    if type(ct) is np.ndarray and not given.spec.shape:
        return ct[()]
    if type(ct) is np.ndarray:
        alone = ct.base is None and ct.flags.writeable and sys.getrefcount(ct) <= HELD
        return ct if alone else ct.copy(order="K")
    return ct
