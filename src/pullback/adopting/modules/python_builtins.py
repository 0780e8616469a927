"""What Python's own functions mean in adopted code, while a trace is under way: ``float(t)`` of a traced number is that
number, ``isinstance`` asks what a handle stands for. And whether a loop runs as a whole."""

from functools import partial
from sys import _getframe
from types import FrameType
from typing import Any

import numpy as np

from pullback.adopting.kinds.dispatching import is_instance
from pullback.adopting.kinds.iterators import nditer
from pullback.adopting.loops.loop_code import LOOPS, UNBOUND
from pullback.adopting.loops.loop_runs import joining, run_loop
from pullback.adopting.modules.arrays_as_handles import NOTEBOOK, fresh, note_call, of_module
from pullback.adopting.modules.numpy_calls import as_scalar_type
from pullback.primitives.shaping.nested_lists import as_operand, holds_tracer
from pullback.primitives.shaping.reshaping import python_number
from pullback.recording.handles import Handle, type_of, value
from pullback.recording.recorder import LISTS
from pullback.recording.tape import RECORDING, Tape
from pullback.words.errors import AdoptionError
from pullback.words.structures import map_leaves


def called(function: Any) -> Any:
    """What ``function`` means on tracers."""
    asks = function is isinstance or function is hasattr or isinstance(function, type)
    return partial(_called, function) if asks else function


def _called(function: Any, *args: Any) -> Any:
    """``function(*args)`` for one of the builtins ``float``, ``int``, ``complex``, ``type``, ``isinstance`` and
    ``hasattr``, or of NumPy's types of numbers; any other is called as it is."""
    if isinstance(function, type) and issubclass(function, np.generic) and holds_tracer(args):
        return as_scalar_type(function, *args)
    if function is complex and len(args) == 2 and holds_tracer(args):
        return _number(args[0], complex) + 1j * args[1] if issubclass(type(args[0]), Handle) else args[0] + 1j * args[1]
    if not args or not issubclass(type(args[0]), Handle):
        if args and hasattr(type(args[0]), "holds_tracer"):
            meant = getattr(args[0], "stands_for", type(args[0]))
            if function is type and len(args) == 1:
                return meant
            if function is isinstance and len(args) == 2:
                return isinstance(*args) or issubclass(meant, classes(args[1]))
        return function(*args)
    if function is isinstance:
        return is_instance(*args)
    if function is hasattr:
        return hasattr(type_of(args[0]), args[1])
    if len(args) > 1:
        return function(*args)
    if function is type:
        return type_of(args[0])
    if function is int:  # piecewise constant, as numpy.trunc
        return int(value(args[0]))
    if function is float or function is complex:
        return _number(args[0], function)
    return function(*args)


def classes(given: Any) -> Any:
    """The class, or the tuple of classes, that a type is compared with: that of a library, where a plugin's stands for
    it."""
    if isinstance(given, tuple | list):
        return type(given)(map(classes, given))
    return given if isinstance(given, type) else getattr(given, "stands_for", given)


def reads_source(where: str, function: str) -> None:
    """Raises: the source is not what the copy runs."""
    raise AdoptionError(
        f"{where} reads source code ({function}), which is not what the copy runs; adopt the module that computes, or "
        "mark buffers by hand (pullback port FILE.py)"
    )


def with_lists(function: Any) -> Any:
    """``function`` of NumPy, which is given nested lists with tracers as one tracer each; a list for ``nditer`` is
    several operands."""
    return function if function is nditer else partial(_with_lists, function)


def _with_lists(function: Any, /, *args: Any, **kwargs: Any) -> Any:
    if not LISTS.isdisjoint(map(type, args)):
        args = tuple(map(as_operand, args))
    if kwargs and not LISTS.isdisjoint(map(type, kwargs.values())):
        kwargs = {name: given if name == "out" else as_operand(given) for name, given in kwargs.items()}
    return function(*args, **kwargs)


def _number(handle: Any, kind: Any) -> Any:
    """A handle of one element as a number of Python's."""
    if handle._id is None:
        return kind(value(handle))
    note_call(kind.__name__)
    kind(value(handle))  # raises what Python raises: for more than one element, and for float of a complex number
    number = handle.reshape(()) if handle.shape else handle
    return python_number(number)


def formatted(text: str, values: Any) -> str:
    """``text % values``, of the values behind tracers."""
    return str(text % map_leaves(value, values))


def fresh_attribute(owner: Any, name: str) -> None:
    """As :func:`arrays_as_handles.fresh`, of an attribute that was set just now."""
    held = getattr(owner, "__dict__", None)
    if type(held) is dict and name in held:  # that of a class cannot be written
        made, held[name] = held[name], None  # what is in its place keeps the order of the attributes
        made = fresh(made)
        held[name] = made


def whole_loop(number: int, names: dict[str, Any]) -> dict[str, Any] | None:
    """What the names stand for that a loop assigns, when it has run as a whole; None where it has to run as it stands.
    ``names`` are the locals of the function."""
    code, tape = LOOPS[number], joining()
    if type(tape) is not Tape:
        code.why = tape or code.why
        return None
    if NOTEBOOK.get() is not None or not code.called.isdisjoint(names):
        return None
    # a step that is recorded again has to do what it did, and a program what its plan has found
    again = tape.captures is not None or tape.mode != RECORDING or tape.repeatable
    if not again and code.rests():
        return None
    frame = _getframe(1)
    given = {name: names[name] if name in names else _elsewhere(name, frame) for name in code.names}
    out = run_loop(code, tape, given, frame)
    if not again:
        code.has_run(out is not None)
    return out


def _elsewhere(name: str, frame: FrameType) -> Any:
    """The value in its module of a name that is no local of a function, or is one without a value."""
    code = frame.f_code
    own = name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
    return UNBOUND if own else of_module(frame.f_globals.get(name, UNBOUND))
