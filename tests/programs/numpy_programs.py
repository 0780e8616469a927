"""Random NumPy programs as source text: how programs are made of the lines of ``numpy_lines``, and run.

A line is kept if NumPy takes it and its result stays small.
"""

import math
import re
import string
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from random import Random
from types import CodeType
from typing import Any

import numpy as np
from attrs import evolve, frozen
from hypothesis import strategies as st
from tests.programs.numpy_lines import CHOOSING, GROUPS, HOLES, PLAIN, WRITING

from pullback.testing.comparing.bits import twin

REFUSALS = (
    ValueError, IndexError, TypeError, AttributeError, ArithmeticError, AssertionError, Warning, NameError,
    RuntimeError,
)  # fmt: skip
"""What NumPy refuses a line with; ``LinAlgError`` and ``AxisError`` are of ValueError, what it will refuse in future
is a warning."""

SHAPES = ((3,), (2, 3), (3, 3), (), (1,), (3, 1), (2, 2), (2, 3, 2), (4,), (0, 3), (3, 2), (2, 1, 3))
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.copy,
    "F": lambda a: np.array(a, order="F"),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a.copy(),
    "reversed": lambda a: a[::-1].copy()[::-1] if a.ndim else a.copy(),
}
SMALLEST, LARGEST, MOST = 1e-12, 1e3, 80
SMALL = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


@frozen(eq=False)
class Value:
    """An input or a constant: C-ordered ``array`` (or a number), laid out as ``layout`` says whenever a program
    begins."""

    array: Any
    layout: str = "number"

    def made(self, *, wide: bool = False, plus: Any = None) -> Any:
        """Afresh, in memory of its own; ``wide`` in double precision, moved by ``plus``."""
        array = self.array
        if wide and np.asarray(array).dtype in SMALL:
            array = np.asarray(array).astype(SMALL[np.asarray(array).dtype])
            array = array[()] if self.layout == "number" else array
        if plus is not None:
            array = array + plus if isinstance(self.array, np.generic | np.ndarray) else (array + plus).item()
        return array if self.layout == "number" else LAYOUTS[self.layout](np.asarray(array))

    def __str__(self) -> str:
        if not isinstance(self.array, np.ndarray):
            return repr(self.array)
        text = f"np.array({self.array.tolist()!r}, np.{self.array.dtype.name}).reshape({self.array.shape})"
        return text if self.layout == "C" else f"{text}  # laid out: {self.layout}"


@frozen(repr=False, eq=False)
class Program:
    """``lines`` of source on named ``inputs`` and ``constants``; the arrays named in ``read`` are summed at the end."""

    inputs: dict[str, Value]
    constants: dict[str, Value]
    lines: tuple[str, ...]
    read: tuple[str, ...]
    number: int

    def run(
        self,
        *inputs: Any,
        wide: bool = False,
        mark: Callable[..., Iterable[Any]] = iter,
        after: Callable[..., None] | None = None,
    ) -> Any:
        """The program's scalar; ``mark`` goes around the lines, ``after(k, names)`` is called after line k;
        ``wide``: in double."""
        names: dict[str, Any] = {"np": np, **{k: v.made(wide=wide) for k, v in self.constants.items()}}
        names.update(zip(self.inputs, inputs, strict=True))
        for number, line in mark(tuple(enumerate(self.lines))):
            exec(compiled(line, wide), names)  # noqa: S102 - the text is drawn from the tables above
            if after is not None:
                after(number, names)
        names["loss"], names["weights"] = 0.0, weights
        for line in self.reading():
            exec(compiled(line, wide), names)  # noqa: S102 - as above
        return names["loss"]

    def reading(self) -> list[str]:
        """The last lines: a scalar of what is read."""
        return [f"loss = loss + {term}" for term in self.read]

    def __repr__(self) -> str:
        given = [f"{name} = {value}" for name, value in (*self.inputs.items(), *self.constants.items())]
        used = " ".join(self.lines)
        given = [line for line in given if line[0] == "x" or line[:2] in used]
        last = f"# inputs: {', '.join(self.inputs)}; number {self.number}"
        lines = [*given, "# the program", *self.lines, "loss = 0.0", *self.reading(), last]
        return "\n".join(["", *(f"    {line}" for line in lines), ""])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints: the source, instead of the arguments of a class."""
        printer.text(repr(self))


@lru_cache(maxsize=4096)
def compiled(line: str, wide: bool) -> CodeType:
    """The code of a line; ``wide`` with double precision wherever it names single."""
    text = line.replace("float32", "float64").replace("complex64", "complex128") if wide else line
    return compile(text, "<drawn program>", "exec")


@lru_cache(maxsize=512)
def _weights(shape: tuple[int, ...]) -> Any:
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def weights(value: Any) -> Any:
    """Numbers of the shape of ``value``, all different."""
    return _weights(np.shape(value)).copy()


def moderate(value: Any) -> bool:
    """Small in number and in size, and a number at all; neither the dust of rounding nor half precision, whose
    slopes nobody can see."""
    array = np.asarray(value)
    if array.dtype.kind not in "fciub" or array.dtype == np.float16 or array.size > MOST:
        return False
    size = np.abs(array)
    return bool(np.all((size < LARGEST) & ((size == 0) | (size > SMALLEST))))


def inexact(value: Any) -> bool:
    """Of a dtype that carries a derivative."""
    return np.asarray(value).dtype.kind in "fc"


class Draft:
    """A program while it is drawn; NumPy runs every line as it comes."""

    def __init__(self, inputs: dict[str, Value], constants: dict[str, Value]) -> None:
        self.inputs, self.constants = inputs, constants
        self.lines: list[str] = []
        self.traced: set[str] = set(inputs)
        self.begin()

    def begin(self) -> None:
        """The names and values after the lines so far, from the start."""
        self.names: dict[str, Any] = {
            "np": np,
            **{k: v.made() for k, v in (*self.inputs.items(), *self.constants.items())},
        }
        for line in self.lines:
            self.execute(line)

    def execute(self, line: str) -> None:
        """One line; whatever NumPy warns of, it refuses."""
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="Setting the shape on a NumPy array")
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            exec(compiled(line, False), self.names)  # noqa: S102 - the text is drawn from the tables above

    def known(self) -> list[str]:
        """The names that may stand in a line: what is traced first and twice."""
        values = [k for k in self.names if k[0] in "xvc" and k[1:].isdigit()]
        traced = [k for k in values if k in self.traced]
        return [*traced, *traced, *(k for k in values if k not in self.traced)]

    def writable(self) -> list[str]:
        """The names of arrays that NumPy lets us write to."""
        arrays = [k for k in self.known() if isinstance(self.names[k], np.ndarray)]
        return [k for k in arrays if self.names[k].flags.writeable and inexact(self.names[k])]

    def offer(self, line: str, name: str | None, *, traced: bool) -> bool:
        """Keep ``line`` if NumPy takes it and all stays moderate; ``name`` is what it binds, None for a write."""
        if held_back(line, self):
            return False
        before = self.names.get(name) if name else None
        try:
            self.execute(line)
            if name and not traced and isinstance(self.names[name], np.generic) and self._is_of_buffers(line):
                return self._forget(
                    name, before
                )  # plain here, as is what is made of it; an array of it cannot be written
            fine = (
                moderate(self.names[name])
                if name
                else all(moderate(v) for k, v in self.names.items() if k in self.known())
            )
        except REFUSALS:
            fine = False
        if fine:
            self.lines.append(line)
            if name:
                self.traced.discard(name)
                self.traced |= {name} if traced and inexact(self.names[name]) else set()
        elif name is None:
            self.begin()  # a refused write may be half done
        else:
            self._forget(name, before)
        return fine

    def _forget(self, name: str, before: Any) -> bool:
        if before is not None:
            self.names[name] = before
        else:
            self.names.pop(name, None)
        return False

    def _is_of_buffers(self, line: str) -> bool:
        made = line.partition(" = ")[2]
        return any(
            k in made for k in self.known() if k[0] == "v" and k not in self.traced and hasattr(self.names[k], "dtype")
        )


MASKING = ("<", ">", "==", "!=", "m0", "True")
"""What a key that is a mask has in its text."""


def held_back(line: str, draft: Draft) -> bool:
    """Lines that are not drawn, each for its reason."""
    target = line.partition("(")[2].partition(",")[0]
    return (
        (line.startswith("del ") and len(set(draft.known())) == 1)  # nothing would be left
        # NumPy returns at once where both are one array, even if the mask has a shape that does not fit.
        or (line.startswith("np.copyto(") and line.count(",") > 1 and _is_one_array(line, target, draft))
        # NumPy reads what it has just written: the result is an accident of its loops.
        or (
            (".flat" in line.partition("=")[0] or any(m in line.partition("] =")[0] for m in MASKING))
            and _overlaps(line, draft)
        )
        or (
            line.startswith("np.fill_diagonal(")
            and _overlaps(line.replace("np.fill_diagonal(", "").replace(", ", " = "), draft)
        )
        or (".at(" in line and _crashes(line, draft))
        # x % y with a quotient like 1e16: a sawtooth whose teeth are finer than any step of a difference.
        or (" % " in line and _is_fine(line, draft))
        # A plain array is not written from a traced one, also where that depends on no input yet.
        or (", out=" in line and re.split(r"[^\w]", line.partition(", out=")[2])[0] not in draft.traced)
        # The method of an ndarray, which asks nobody and refuses a tracer.
        or (".dot(" in line and "np.dot" not in line and line.partition(".dot")[0].split()[-1] not in draft.traced)
        or _is_known(line, draft)
        # What is written as x @ x.T is symmetric for matrices alone; of others these read one triangle, and the
        # gradient is symmetric.
        or (
            ("eigvalsh" in line or "cholesky" in line)
            and any(np.ndim(draft.names[k]) != 2 for k in draft.known() if k in line)
        )
        # NumPy leaves memory uninitialised.
        or ("fft." in line and any(np.size(draft.names[k]) == 0 for k in draft.known() if k in line))
    )


def _is_known(line: str, draft: Draft) -> bool:
    """Where values are known to differ from NumPy's (docs/coverage.md, "Known differences of values"); no derivative is
    concerned.

    With ``out=``, and element by element, NumPy runs other loops than into a new array: the last bit of complex numbers
    or on gaps.
    """
    named = [draft.names[k] for k in draft.known() if k in line]
    return any(mark in line for mark in (", out=", "reduceat(", ".at(")) and any(
        np.iscomplexobj(v) or (isinstance(v, np.ndarray) and not v.flags.forc) for v in named
    )


def _is_fine(line: str, draft: Draft) -> bool:
    x, _, y = (line.partition(" = ")[2] or line).partition(" % ")
    try:
        with np.errstate(all="ignore"):
            quotient = np.abs(eval(f"({x}) / ({y})", draft.names))  # noqa: S307 - as in ``execute``
        return not bool(np.all(quotient < _TEETH))
    except (*REFUSALS, SyntaxError):
        return True


_TEETH = 1e3


def _crashes(line: str, draft: Draft) -> bool:
    """Whether a ufunc's ``at`` is given values of more dimensions than ``target[key]`` has.

    NumPy 2.4 refuses them, unless the key is a tuple with a slice or an ellipsis beside an index: then it reads
    dimensions beyond those of its iterator, and dies of it:
    ``np.add.at(np.zeros((3, 2)), (Ellipsis, -1), np.ones((2, 2, 3)))``.
    """
    try:
        target, key, *values = eval(line.partition("(")[2][:-1], draft.names)  # noqa: S307 - as in ``execute``
        return bool(values) and np.ndim(values[0]) > np.ndim(target[key])
    except REFUSALS:
        return True


def _is_one_array(line: str, target: str, draft: Draft) -> bool:
    source = line.split(", ")[1]
    return source == target or draft.names.get(source) is draft.names[target]


def _overlaps(line: str, draft: Draft) -> bool:
    """Whether what is assigned shares memory with the target."""
    target, _, source = line.partition(" = ")
    written = draft.names.get(target.partition(".")[0].partition("[")[0])
    return any(k in source and np.shares_memory(draft.names[k], written) for k in draft.known())


FIELDS = {
    t: tuple(f for _, f, _, _ in string.Formatter().parse(t) if f)
    for group in (*GROUPS.values(), WRITING)
    for t in group
}
INNER = {c: tuple(f for _, f, _, _ in string.Formatter().parse(c) if f) for choices in HOLES.values() for c in choices}


def fill(rng: Random, draft: Draft, template: str) -> tuple[str, list[str]]:
    """The line of a template, and the names in it."""
    fields = FIELDS[template]
    target = rng.choice(draft.writable()) if "t" in fields else None
    pool = (
        draft.known()
        if target is None or target in draft.traced
        else [k for k in draft.known() if k not in draft.traced]
    )
    holes = {"t": target}
    used: list[str] = [target] if target else []

    def name(hole: str, *, carries: bool = True) -> str:
        if hole == "x":
            return target or name("a", carries=carries)
        if holes.get(hole) is None:
            holes[hole] = rng.choice(pool)
        if carries:
            used.append(str(holes[hole]))
        return str(holes[hole])

    for hole in fields:
        if hole in ("a", "b", "t", "x"):
            name(hole)
    filled: dict[str, Any] = {}
    for hole in fields:
        if hole in HOLES:
            choice = rng.choice(HOLES[hole])
            filled[hole] = choice.format(**{
                inner: name(inner, carries=hole not in CHOOSING) for inner in INNER[choice]
            })
    return template.format(**{**holes, **filled}), used


def drawn(number: int, most: int = 10) -> Program:
    """The program of a number, on one to three inputs, with at most ``most`` lines."""
    rng = Random(number)  # noqa: S311 - drawing, not cryptography
    inputs = {f"x{k}": _value(rng, INPUTS) for k in range(rng.randint(1, 3))}
    constants = {f"c{k}": _value(rng, CONSTANTS) for k in range(rng.randint(0, 2))}
    constants["k0"] = Value(np.array([1, 0, 1]), "C")
    constants["m0"] = Value(np.array([True, False, True]), "C")
    draft = Draft(inputs, constants)
    for _ in range(rng.randint(2, most)):
        _line(rng, draft)
    names = sorted({k for k in draft.known() if inexact(draft.names[k])})
    latest = [k for k in draft.names if k in names and k in draft.traced][-1:]
    chosen = sorted({k for k in names if rng.random() < 0.4}.union(latest))
    return Program(inputs, constants, tuple(draft.lines), tuple(_term(k, draft.names[k]) for k in chosen), number)


def programs(most: int = 10, series: int = 0) -> st.SearchStrategy[Program]:
    """Programs by number: choices of one line after the other repeat themselves, and would leave many templates out.

    So Hypothesis cannot shrink a program; :func:`smallest` does. It likes small numbers, so that two runs draw many
    alike, unless they are of different ``series``.
    """
    return st.integers(0, 2**64).map(lambda number: drawn(number + (series << 65), most))


def smallest(program: Program, fails: Callable[[Program], bool]) -> Program:
    """``program`` without the lines and the terms that it fails without."""
    changed = True
    while changed:
        changed = False
        for part in ("lines", "read"):
            for k in reversed(range(len(getattr(program, part)))):
                kept = getattr(program, part)
                less = evolve(program, **{part: kept[:k] + kept[k + 1 :]})
                if fails(less):
                    program, changed = less, True
    return program


INPUTS = ("f8", "f8", "f8", "f8", "f4", "f4", "c8", "c16", "python", "complex", "f8 scalar", "f4 scalar")
CONSTANTS = ("f8", "f8", "f4", "c8", "c16", "python", "complex", "i8", "bool", "f8 scalar", "f4 scalar")


def _term(name: str, value: Any) -> str:
    term = f"np.sum(weights({name}) * {name})"
    return f"np.real({term})" if np.asarray(value).dtype.kind == "c" else term


def _numbers(rng: Random, shape: tuple[int, ...]) -> Any:
    return np.array([rng.uniform(-1.5, 1.5) for _ in range(math.prod(shape))]).reshape(shape)


def _value(rng: Random, kinds: tuple[str, ...]) -> Value:
    kind = rng.choice(kinds)
    if kind == "python":
        return Value(float(rng.uniform(-1.5, 1.5)))
    if kind == "complex":
        return Value(complex(rng.uniform(-1.5, 1.5), rng.uniform(-1.5, 1.5)))
    if kind.endswith("scalar"):
        return Value(np.dtype(kind[:2]).type(rng.uniform(-1.5, 1.5)))
    shape = rng.choice(SHAPES)
    array = np.asarray(_numbers(rng, shape))
    if kind in ("i8", "bool"):
        array = np.floor(2 * array) if kind == "i8" else array > 0
    elif kind in ("c8", "c16"):
        array = np.asarray(array + 1j * _numbers(rng, shape))
    layout = rng.choice(sorted(LAYOUTS))
    return Value(array.astype(kind), layout)


def _line(rng: Random, draft: Draft) -> None:
    """Draw one line, and keep it if it can be."""
    writes = rng.random() < 0.35
    if writes and draft.writable():
        line, _ = fill(rng, draft, rng.choice(WRITING))
        draft.offer(line, None, traced=False)
        return
    template = rng.choice(GROUPS[rng.choice(sorted(GROUPS))])
    line, used = fill(rng, draft, template)
    again = rng.random() < 0.1  # bind a name anew
    numbers = [int(k[1:]) for k in draft.names if k[0] == "v" and k[1:].isdigit()]
    name = rng.choice(draft.known()) if again else f"v{max(numbers, default=-1) + 1}"
    plain = any(mark in template for mark in PLAIN)
    if "np.sign(" in template and any(np.iscomplexobj(draft.names[k]) for k in used):
        plain = False  # z / |z|
    traced = any(k in draft.traced for k in used) and not plain
    draft.offer(f"{name} = {line}", name, traced=traced)


def copies(names: dict[str, Any]) -> dict[str, Any]:
    """The values of a program's names at this moment, in memory of their own."""
    return {k: twin(v) for k, v in names.items() if k[0] in "xvc" and k[1:].isdigit()}
