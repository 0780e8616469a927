"""What a run is told by: the code of a loop's body and all that it reads, by digests. A journal is taken up by the same
run alone."""

import platform
import random
import re
import sys
from array import array
from collections import deque
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MappingProxyType, ModuleType
from typing import Any

import numpy as np
from attrs import define, field
from xxhash import xxh3_128_hexdigest

from pullback.loops.bodies.reachable import GENERATORS, Reachable
from pullback.recording.handles import Handle, plain_value
from pullback.resuming.loop_contents import cells_of
from pullback.resuming.plain_values import encoded
from pullback.rules.declaration import Composite, Primitive
from pullback.words.digests import digest
from pullback.words.errors import ResumeError

_PLAIN = (str, bytes, int, float, complex, type(None), type(...), np.generic, np.dtype, slice, range)
_COPIED = sys.stdlib_module_names | {"numpy"}
"""Packages of which it is known what copying an object does."""
_GENERATOR = "the random generator"
_SHORT = 60
"""Characters up to which a text stands for itself."""


def key_of(record: Any) -> dict[str, str]:
    """What was given to a loop and what its body is made of, each part with a name: digests, or short texts. What the
    body captures of the trace around is not known yet."""
    chain = record.chain
    steps = chain.steps
    found = {
        "the loop function": steps.name,
        "the number of steps": str(record.n),
        "the first step": str(steps.lower),
        "the policy": _policy(record.policy, steps.within),
        "verify": f"{steps.verifier.compares} {steps.verifier.compares_tapes}",
        "the machine": platform.machine(),
        "the version of Python": platform.python_version(),
        "the version of NumPy": np.__version__,
        "the version of pullback": sys.modules["pullback"].__version__,
        "the structure of the state": str(steps.definition),
    }
    found.update((f"leaf {k} of the initial state", _content(leaf)) for k, leaf in enumerate(chain.state))
    found.update((f"leaf {k} of xs", _content(leaf)) for k, leaf in enumerate(steps.xs or ()))
    return found | reached_by(steps.call)


def reached_by(call: Any) -> dict[str, str]:
    """What tells apart all that the function which runs a step can reach."""
    return told_of(_functions(call))


def told_of(roots: Iterable[tuple[str, Any]]) -> dict[str, str]:
    """What tells apart all that can be reached from objects, each with a name."""
    code = _Code()
    Reachable(told=code.tell, parts=_parts).walk(roots)
    return code.found


def without_random_states(reached: dict[str, str]) -> dict[str, str]:
    """What :func:`reached_by` has given, but for random generators: their states are put back."""
    return {name: text for name, text in reached.items() if not name.startswith(_GENERATOR)}


def _policy(policy: Any, within: Any) -> str:
    told = f"{policy!r}" if within is None else f"{policy!r}, within steps {within!r}"
    return re.sub(" at 0x[0-9a-f]+", "", told)


def require_same(given: dict[str, str], expected: dict[str, str], where: str) -> None:
    """Raise :class:`ResumeError` where a run is told by other things than the one that wrote a journal; it says by
    which."""
    names = [name for name in {**expected, **given} if given.get(name) != expected.get(name)]
    if names:
        told = [f"{name}: {expected.get(name, 'nothing')} then, {given.get(name, 'nothing')} now" for name in names[:4]]
        more = f"; and {len(names) - 4} more" if len(names) > 4 else ""
        raise ResumeError(
            f"{where} was written by another run: {'; '.join(told)}{more}. Make the same call with the same arguments "
            "and code, or remove the directory to begin anew"
        )


def digests_of(values: Any) -> list[str]:
    """Digests of each value, under whatever traces."""
    return [_content(value) for value in values]


def _functions(call: Any) -> Iterator[tuple[str, Any]]:
    """The functions of the user's that run a step, and what else the step closes over."""
    for name, cell in cells_of(call):
        if name != "effects":
            content = cell.cell_contents
            yield getattr(content, "__name__", name), content


@define(eq=False)
class _Code:
    """Functions and what they can reach, each with a name."""

    found: dict[str, str] = field(factory=dict)
    sets: set[str] = field(factory=set)
    """The names of sets, whose items come in another order in each process."""

    def tell(self, name: str, x: Any) -> None:
        """Note an object, which the walk has come to."""
        text = _text(x) if name.rpartition("[")[0] not in self.sets else None
        if isinstance(x, set | frozenset):
            self.sets.add(name)
        if text is not None:
            name, number = f"{_kind(x)} {name}", 1
            while self.found.get(name, text) != text:
                number += 1
                name = f"{name.partition(' (')[0]} ({number})"
            self.found[name] = text


def _parts(x: Any) -> Iterable[Any]:
    """What tells apart an object of a library: the rules of a primitive, the items that a proxy shows, and of what
    Python and NumPy copy by a call (a fraction, an ``itemgetter``) the arguments of that call."""
    if isinstance(x, Primitive):
        rules = [*x.jvps.values(), *(rule for alternatives in x.rules.values() for rule in alternatives)]
        return [*(rule.fn for rule in rules), x.defaults]
    if isinstance(x, Composite):
        return [x.direct]
    if isinstance(x, MappingProxyType):
        return [dict(x)]
    package = type(x).__module__.partition(".")[0]
    if package == "itertools" or package not in _COPIED:  # an iterator moves on
        return ()
    try:
        copied = x.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - a lock, a file: it says in its own way that it is not copied
        return ()
    return copied[1] if isinstance(copied, tuple) and not any(copied[2:]) else ()


def _kind(x: Any) -> str:
    if isinstance(x, FunctionType):
        return "the code of"
    return _GENERATOR if isinstance(x, GENERATORS) else "the value of"


def _text(x: Any) -> str | None:
    """What tells an object; None for one whose parts tell it, or that nobody has given."""
    if isinstance(x, Handle) or x is random:
        return None
    if isinstance(x, _PLAIN):
        return _short(f"{x!r}") if isinstance(x, str | bytes) else _content(x)
    if isinstance(x, np.ndarray | array | bytearray | memoryview):
        return _content(np.asarray(x))
    if isinstance(x, ModuleType):
        return x.__name__
    if isinstance(x, type | BuiltinFunctionType | np.ufunc):
        return f"{getattr(x, '__module__', '')}.{getattr(x, '__qualname__', x.__name__)}"
    if isinstance(x, FunctionType):
        return xxh3_128_hexdigest("\n".join(_of_code(x.__code__)).encode())
    if isinstance(x, np.random.Generator):
        return xxh3_128_hexdigest(repr(encoded(x.bit_generator.state)).encode())
    if isinstance(x, np.random.RandomState):
        return xxh3_128_hexdigest(repr(encoded(x.get_state())).encode())
    if isinstance(x, random.Random):  # noqa: S311 - no secret is drawn
        return xxh3_128_hexdigest(repr(x.getstate()).encode())
    if isinstance(x, list | dict | deque):
        return f"{len(x)} items"
    return None if not isinstance(x, set | frozenset) else _short(f"{sorted(map(repr, x))}")


def _of_code(code: CodeType) -> Iterator[str]:
    """What code does, in words: without lines and names of files."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags))
    yield repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_exceptiontable))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant)
        else:
            yield _constant(constant)


def _constant(value: Any) -> str:
    if isinstance(value, frozenset):
        return f"frozenset {sorted(map(_constant, value))}"  # whose order is another in each process
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    return f"{type(value).__name__} {value!r}"


def _content(value: Any) -> str:
    value = plain_value(value)
    if isinstance(value, np.ndarray | np.generic):
        told = digest(value)
        return f"{value.dtype!s}{list(value.shape)} {xxh3_128_hexdigest(told)[:16]}"
    if isinstance(value, _PLAIN):
        return _short(f"{value!r}")
    return type(value).__name__


def _short(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[:20]}... {xxh3_128_hexdigest(text.encode())[:16]}"
