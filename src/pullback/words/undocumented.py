"""What pullback looks at though nobody promises it: reference counts, instructions, files of frames, texts of messages,
private names of NumPy and SciPy. The rest is in ``tracing.results_into_operands`` and ``rules.unbroadcast``.

Each item says what is looked at and why, which test of tests/words/test_undocumented.py fails when it no longer holds,
and what happens then: a slower way, a poorer message or a named refusal, never a wrong number.

Seen on CPython 3.11.7, 3.12.1, 3.13.0 and 3.14.10 with NumPy 2.0.2 (on 3.12), 2.4.6 (on 3.11) and 2.5.5, and SciPy
1.17.1 and 1.18.1. One of them has changed: CPython 3.14 lends a local to the function it calls without counting that
(LOAD_FAST_BORROW), so that an array that nobody else has is seen with 2, 1 and 1 references where there were 4, 4 and
2. An array that somebody has still shows one more than one that nobody has, which is all that is asked for, and it is
asked when pullback is imported. Builds without the global lock, and other interpreters, have not been tried.

What has to stand elsewhere: ``vectorize`` of pullback.numpy overrides ``numpy.vectorize._vectorize_call``. Should NumPy
call it no more, its own way meets the tracer, and that is refused (``ConversionError``).
Test: test_vectorize_calls_what_is_overridden.
"""

import ctypes
import dis
import linecache
import re
import sys
from collections.abc import Callable
from contextvars import Context
from functools import cache, lru_cache
from itertools import count, islice
from os import sep
from sys import getrefcount
from types import CodeType, FrameType
from typing import Any
from weakref import getweakrefcount

import numpy as np

# --------------------------------------------------------------------------------------------------- reference counts
# How many references to an array are there where nobody else has it: it may then be written in place, or handed out.
# Test: test_counts_tell_a_lone_array_from_a_shared_one, and those beside it for the places where the counts are asked.
# Where they do not tell them apart, the limit is 0, which no array has: sums are made anew, gradients copied.


def limit(seen: Callable[[list[Any]], int], holders: int, make: Callable[[], Any] = lambda: np.empty(1)) -> int:
    """The count that ``seen`` shows for an array that only the given list has; 0 where one that somebody else has, too,
    shows no more. Never above the number of ``holders``: a debugger adds its own while pullback is imported."""
    other = make()
    alone, shared = seen([make()]), seen([other])
    return min(alone, holders) if alone < shared else 0


def _in_join(cts: list[Any]) -> int:
    p = cts[0]
    return _below(p, None)


def _in_pull(cts: list[Any]) -> int:
    ct = cts.pop()
    return _one_below(None, ct)


def _one_below(_record: Any, ct: Any) -> int:
    return _below(ct, None)


def _below(ct: Any, _: Any) -> int:
    return getrefcount(ct)


def _in_hand(cts: list[Any]) -> int:
    ct = cts.pop()
    return getrefcount(ct)


def references(owners: list[Any], k: int) -> int:
    """How many references there are to an element of a list while this is asked."""
    owner = owners[k]
    return getrefcount(owner)


def _in_list(cts: list[Any]) -> int:
    return references(cts, 0)


JOINED = limit(_in_join, 4)
"""The limit for an element of a list, held by it, a local of the caller, a parameter, and ``getrefcount``."""
PULLED = limit(_in_pull, 4)
"""The limit for a local of a sweep that is handed to a pull, and by it to another function."""
RECORDED = limit(lambda records: _one_below(None, records[0]), 4)
"""The limit for an element of a record that a pull hands to a function, and that to another one."""
HELD = limit(_in_hand, 2)
"""The limit for a local that nothing but its own function has."""
LISTED = limit(_in_list, 3)
"""The limit for what :func:`references` is asked about, where only the list has it."""


def holders(things: list[Any]) -> list[int]:
    """How many hold each of these, weak references among them: compared with what was found when nobody else had any.
    Where that cannot be told, another list at each call. Test: test_who_holds_a_thing_is_counted."""
    return [*map(getrefcount, things), *map(getweakrefcount, things)] if LISTED else [next(_CALLS)]


_CALLS = count()


# -------------------------------------------------------------------------------------------------------- instructions
BINARY_OP = dis.opmap.get("BINARY_OP", -1)
"""The instruction of a binary operator."""
STORES = frozenset(dis.opmap.get(name, -1) for name in ("STORE_SUBSCR", "STORE_SLICE"))
"""The instructions of an assignment to an element, ``x[k] = v``; that to a slice has its own since Python 3.12."""
CACHE = dis.opmap.get("CACHE", -1)
"""Room behind an instruction, in which Python notes what it has met there."""
LOAD_GLOBAL = "LOAD_GLOBAL"


def own_offsets(code: CodeType) -> list[int]:
    """The offset of the instruction at each offset in a code object: CPython 3.11 says of a frame that it stands in the
    cache behind an instruction, once that has been specialized to call ``__getitem__`` at once. Test:
    test_an_instruction_is_one_place_however_often_it_runs. Else steps that do the same are kept twice."""
    text, offsets = code.co_code, list[int]()
    for at in range(0, len(text), 2):
        own = offsets[-1] if offsets and text[at] == CACHE else at
        offsets += [own, own]
    return offsets


def by_operator(frame: FrameType) -> bool:
    """Whether the frame is at an operator, ``s * x``, and not at a call, ``np.multiply(s, x)``: for two scalars these
    differ in their last bits. Test: test_an_operator_is_told_from_a_call. Else False: the ufunc's bits are taken, and a
    loop whose steps do not repeat bit for bit says so."""
    return frame.f_code.co_code[frame.f_lasti] == BINARY_OP


def by_assignment(frame: FrameType) -> bool:
    """Whether the frame is at ``x[k] = v``, and not at the call of a function in C that assigns, as NumPy's ``shuffle``
    does: it exchanges rows as if they were copies. Test: test_an_assignment_is_told_from_a_call. Else False: a row that
    is assigned to another row of its array is refused."""
    return frame.f_code.co_code[frame.f_lasti] in STORES


@lru_cache(256)
def global_names(code: CodeType) -> frozenset[str]:
    """The global names that a code object reads, also in functions and comprehensions within, to find the arrays and
    generators that it uses. Test: test_global_names_are_read. Where they cannot be told from names of attributes, both:
    more is refused, and more kept."""
    within = (global_names(inner) for inner in code.co_consts if isinstance(inner, CodeType))
    own = _loaded(code) if _loaded(_probe.__code__) == {"np"} else code.co_names
    return frozenset(own).union(*within)


def _probe(x: Any) -> Any:
    return np.ndim(x)


def _loaded(code: CodeType) -> set[str]:
    return {step.argval for step in dis.get_instructions(code) if step.opname == LOAD_GLOBAL}


@lru_cache(256)
def rebound_names(code: CodeType) -> frozenset[str]:
    """The names of enclosing functions that a code object binds anew, also in functions within. Test:
    test_rebound_names_are_found. Else none: such a name is frozen, and what the function binds stays its own."""
    within = (rebound_names(inner) for inner in code.co_consts if isinstance(inner, CodeType))
    own = {step.argval for step in dis.get_instructions(code) if step.opname in ("STORE_DEREF", "DELETE_DEREF")}
    return frozenset(own).union(*within).intersection(code.co_freevars)


def instruction(code: CodeType, offset: int) -> str:
    """The name of an instruction, by which a write is told from a read. Test: test_a_write_is_told_from_a_read. Else
    the advice in an error message is more general."""
    return dis.opname[code.co_code[offset]] if offset < len(code.co_code) else ""


def source(code: CodeType, offset: int) -> str:
    """The source of the expression that an instruction is part of; empty where it is not at hand, and the advice in an
    error message general. Test: test_the_expression_of_an_instruction_is_found."""
    line, end_line, column, end_column = next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))
    lines = linecache.getlines(code.co_filename)
    if line is None or end_line is None or column is None or end_column is None or end_line > len(lines):
        return ""
    parts = [part.encode() for part in lines[line - 1 : end_line]]  # columns count bytes
    parts[-1] = parts[-1][:end_column]
    parts[0] = parts[0][column:]
    return b"".join(parts).decode(errors="replace")


# ----------------------------------------------------------------------------------------------------- files of frames
_STANDARD = dis.__file__.rpartition(sep)[0] + sep
SPARSE_DISPATCH = ("_matmul_dispatch", "_rmatmul_dispatch", "multiply", "_multiply_2d_with_broadcasting", "_divide")
SPARSE_PRODUCTS = ("__matmul__", "__rmatmul__", "__mul__", "__rmul__", "__truediv__")


def is_of(package: str, filename: str) -> bool:
    """Whether a file is the source of a package that is imported. Test: test_files_are_told_by_their_package. Else
    errors name a line of that package in the place of the user's, and advise less well."""
    home = getattr(sys.modules.get(package), "__file__", None)
    return home is not None and filename.startswith(home.rpartition(sep)[0] + sep)


@lru_cache(1024)
def is_standard(filename: str) -> bool:
    """Whether a file is Python's own; installed packages may lie in a folder below. Test and else as for
    :func:`is_of`."""
    return filename.startswith(_STANDARD) and "-packages" not in filename


def by_sparse_product(frame: Any) -> bool:
    """Whether a SciPy sparse array asks for an array in ``A @ x``, ``A * x``: it leaves this to ``x`` when told that x
    is none. Test: test_a_sparse_array_leaves_the_product_to_a_tracer. Else the tracer is refused."""
    asks = frame.f_code
    while frame.f_code.co_name in SPARSE_DISPATCH:
        frame = frame.f_back
    by_product = frame.f_code is not asks and frame.f_code.co_name in SPARSE_PRODUCTS
    return by_product and is_of("scipy.sparse", asks.co_filename)


def asking_pickler(frame: FrameType) -> Any:
    """The module of cloudpickle, also of a copy of it that another library has, where the frame that asks for a pickle
    is its own; None for any other. Test: test_cloudpickle_is_known. Else what is of ``__main__`` is pickled by its
    name, and not found in another process, which says so."""
    asks = str(frame.f_globals.get("__name__", ""))
    return sys.modules[asks] if "cloudpickle" in asks else None


def is_by_value(pickler: Any, module: str) -> bool:
    """Whether such a pickler takes along what is of a module, as it was told to."""
    told: set[str] = getattr(pickler, "list_registry_pickle_by_value", set)()
    return module == "__main__" or any(f"{module}.".startswith(f"{one}.") for one in told)


# --------------------------------------------------------------------------------------------------- texts of messages
_OF_A_WRITE = (
    r"setting an array element with a sequence\.?$|Error setting single item of array|"
    "Iterator operand is flagged as writeable, but is an object"
)
_OF_A_TRACER = (
    rf"\b(Tracer|View|Buffer|Weak)\b|<(inactive )?tracer of|{_OF_A_WRITE}|"
    "Result from function call is not a proper array|Axis argument is only supported on ndarray objects"
)


def of_a_tracer(error: Exception) -> bool:
    """Whether NumPy or Python say, by themselves, that they cannot use a tracer, which they have not asked. Test:
    test_errors_about_a_tracer_are_known. Else the error goes up as it is, without advice."""
    return re.search(_OF_A_TRACER, str(error)) is not None


def of_a_write(error: Exception) -> bool:
    """Whether NumPy says that it cannot write a tracer into a plain array. Test and else as for :func:`of_a_tracer`."""
    return re.search(_OF_A_WRITE, str(error)) is not None


def of_pickles(error: Exception) -> bool:
    """Whether ``numpy.load`` refused pickled objects. Test: test_errors_about_pickles_are_known. Else the command line
    says that the file is no array's, and quotes NumPy."""
    return re.search("pickle|object arrays", str(error), re.IGNORECASE) is not None


# ------------------------------------------------------------------------------------------------------- private names
_UMATH: Any = getattr(getattr(np, "_core", None), "umath", None)

ABSENT: Any = getattr(np, "_NoValue", object())
"""The default in NumPy's own signatures; it differs from None for initial=. Test: test_absent_is_numpys_own. Else a
value of our own, which no caller can pass."""


def _clip(x: Any, low: Any, high: Any, **options: Any) -> Any:
    return np.minimum(np.maximum(x, low, **options), high, **options)


CLIP: Any = getattr(_UMATH, "clip", _clip)
"""The ufunc behind np.clip and ndarray.clip. Test: test_clip_calls_the_private_ufunc. Else the two ufuncs of which it
is made; ``clip`` of a plain array with traced bounds is then refused (``UnknownFunctionError``)."""
UNNAMED: tuple[Any, ...] = tuple(getattr(_UMATH, name) for name in ("_ones_like",) if hasattr(_UMATH, name))
"""Ufuncs without a public name whose derivative is zero. Test: test_absent_is_numpys_own. Else they are unknown, and so
refused."""


@cache
def legacy_bytes() -> int:
    """How many bytes at its address are the state of an MT19937, 624 words of 32 bits and the position among them, by
    which a loop sees at each step whether it was drawn from. Test: test_the_state_of_the_legacy_generator_is_found.
    Else 0, and the state is saved at each step."""
    bits = np.random.MT19937(0)
    state: Any = bits.state["state"]
    wanted = state["key"].astype(np.uint32).tobytes() + np.int32(state["pos"]).tobytes()
    found = ctypes.string_at(bits.ctypes.state_address, len(wanted))
    return len(wanted) if found == wanted else 0


def column_groups(load: Callable[[str], Any], pattern: Any, orders: tuple[Any, ...]) -> Any:
    """The group of each column of a sparse pattern, in rows, no row having entries in two columns of one group: by the
    function behind ``jac_sparsity=`` of ``scipy.optimize.least_squares``, whose module ``load`` imports, in the order
    of columns that takes the fewest groups. Test: test_scipy_groups_columns. Where it is gone, or its groups are none,
    each column is a group of its own, at the price of a derivative each."""
    own = np.arange(pattern.shape[1])
    try:
        group = load("scipy.optimize._numdiff").group_columns
    except (ImportError, AttributeError):
        return own
    best = min((np.asarray(group(pattern, order)) for order in orders), key=np.max)
    return best if best.shape == own.shape and _apart(pattern, best) else own


def _apart(pattern: Any, groups: Any) -> bool:
    """Whether no row of a sparse pattern has entries in two columns of one group."""
    shape = (pattern.shape[0], int(groups.max()) + 1)
    counts: list[int] = []
    for columns, extent in ((pattern.indices, pattern.shape), (groups[pattern.indices], shape)):
        entries = type(pattern)((np.ones(len(columns), bool), columns, pattern.indptr), shape=extent, copy=True)
        entries.sum_duplicates()
        counts.append(entries.nnz)
    return counts[0] == counts[1]


# ------------------------------------------------------------------------------------------ the error state of NumPy
# ``np.errstate`` makes its state anew each time that it is entered, which costs more than a small operation. That which
# ignores everything is made once; without NumPy's private names, np.errstate. Test: test_quiet_is_errstate_that_ignores


class _Quiet:
    """Within the block NumPy warns of nothing: ``np.errstate(all="ignore")``, made once."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = None if _STATE.get() is _IGNORING else _STATE.set(_IGNORING)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _STATE.reset(self._token)


class _Told:
    """Within the block, of what NumPy would warn of, ``tell`` hears."""

    __slots__ = ("_tell", "_token")

    def __init__(self, tell: Any) -> None:
        self._tell = tell

    def __enter__(self) -> None:
        state = _STATE.get()
        told = _TELLING.get(state)
        if told is None:
            if len(_TELLING) > 100:
                _TELLING.clear()
            told = _TELLING[state] = _make_extobj(call=self._tell, **_calling())
        self._token = _STATE.set(told)

    def __exit__(self, *_: object) -> None:
        _STATE.reset(self._token)


def _calling() -> dict[str, Any]:
    return {name: "call" if how in ("warn", "log") else how for name, how in np.geterr().items()}  # log: TELLING's


def _quiet_by_numpy() -> Any:
    return np.errstate(all="ignore")


def _told_by_numpy(tell: Any) -> Any:
    return np.errstate(call=tell, **_calling())


def _state_by_numpy() -> Any:
    return tuple(np.geterr().values())


def context_of_errors(tell: Any) -> Context | None:
    """A context with an error state alone: ``tell`` hears of what NumPy would warn of in that in force; of None, nobody
    does. None where it cannot be set. Test: test_a_context_has_an_error_state_of_its_own."""
    found = None if _STATE is None else Context()
    if found is not None:
        found.run(_STATE.set, _IGNORING if tell is None else _make_extobj(call=tell, **_calling()))
    return found


error_state: Any = _state_by_numpy  # the same object until somebody changes it
set_error_state: Any = id  # or nothing, where it cannot be done. Test: test_warnings_are_told_in_a_context
make_error_state: Any = None  # of what ``np.errstate`` takes


def is_quiet(state: Any) -> bool:
    """Whether an error state is that of :data:`quiet`; no other that ignores everything is."""
    return _STATE is not None and state is _IGNORING


_STATE: Any = None
_IGNORING: Any = None
_TELLING: dict[Any, Any] = {}
quiet: Any = _quiet_by_numpy
under_error_state: Any = _told_by_numpy
try:
    from numpy._core.umath import _extobj_contextvar, _make_extobj

    _STATE, _IGNORING = _extobj_contextvar, _make_extobj(all="ignore")
    quiet, under_error_state, error_state = _Quiet, _Told, _STATE.get
    set_error_state, make_error_state = _STATE.set, _make_extobj
except ImportError:
    pass
