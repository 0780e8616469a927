"""What a backend is told, and what it answers: values, calls and where these write; kernels in the place of calls."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from attrs import field, frozen


@frozen
class Ref:
    """The value of a number, among the arguments of a call."""

    number: int


@frozen
class Value:
    """What is known of a value when the function is written; it holds in every call of it."""

    shape: tuple[int, ...]
    dtype: Any
    """None for what is neither an array nor a number of NumPy's."""
    type: Any
    """``np.ndarray``, a scalar type of NumPy's, ``float``, ``int``, ``complex``, ..."""
    memory: str | None
    """The name of the array in whose memory it lies, ``b0`` or ``v12``; None where that is not known, since it
    depends on what other values hold: then it may be any of those that were read. Two names are two arrays that do not
    overlap, if at least one of them is written."""
    starts: tuple[int, ...] | None
    """Where it begins along each axis of that array, if it is a slice of it with steps of one and as many axes; else
    None."""
    whole: tuple[int, ...]
    """The shape of that array."""
    dense: bool
    """Whether it lies in C order without gaps, as each array does that is made for a kernel."""

    @property
    def is_array(self) -> bool:
        """Whether it is an array and no number."""
        return bool(issubclass(self.type, np.ndarray))


@frozen
class Write:
    """A write to part of an array: ``target[starts : starts + shape] sign value``."""

    target: int
    """The value that was there before."""
    sign: Literal["=", "+=", "-="]
    starts: tuple[int, ...] | None
    """Along each axis of the memory; None where the part is no slice with steps of one."""
    shape: tuple[int, ...]
    value: Any
    """A number, or a :class:`Ref`."""
    in_place: bool
    """Whether the target's own memory is changed; else the value made begins as a copy of the target."""


@frozen
class Call:
    """One statement of the function: ``values[makes] = function(*args, **kwargs)``, or a write. What it writes to is
    the memory of the value that it makes; a view writes nothing."""

    kind: Literal["ufunc", "copy", "zeros", "view", "write", "other"]
    """What it does: one ufunc on ``args``; a copy of ``args[0]`` with the same strides; a new array of zeros; a view,
    which computes nothing; a write to part of an array; anything else, which stays as it is."""
    function: Callable[..., Any] = field(repr=False)
    """Of ``kind`` "ufunc" the ufunc, also where the program has an operator."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    makes: int
    reads: tuple[int, ...]
    """The numbers of the values among the arguments."""
    write: Write | None
    detaches: tuple[int, ...]
    """Values that are copied before, since they look at what is changed; such a call is to stay as it is."""
    text: tuple[str, ...]
    """As it stands in the function."""
    ordered: bool = False
    """Whether it has an effect, or hands a value out: what stands before it is done before it, what stands behind it
    behind it, and it stands in no kernel."""


@frozen
class Plan:
    """A generated function before it is written: its calls in their order, and the values between them."""

    name: str
    """``record``, ``advance``, ``reverse`` or ``reverse_own``."""
    calls: tuple[Call, ...]
    values: Mapping[int, Value]
    """Those that enter and those that are made, by number."""
    leaves: tuple[int, ...]
    """The values that the function returns."""
    warns: bool
    """Whether NumPy's warnings have to come: the kernels then say when there would be one."""

    def checked(self, order: "Sequence[int | Kernel]") -> "list[int | Kernel]":
        """The answer of a backend, if each call stands in it once, views at least once, and none has moved past an
        ordered one; else ValueError."""
        places = [k for item in order for k in (item.calls if isinstance(item, Kernel) else (item,))]
        done = sorted(k for k in places if self.calls[k].kind != "view")
        if done != [k for k, call in enumerate(self.calls) if call.kind != "view"]:
            raise ValueError(f"a backend has to do each of the calls of {self.name} once, and has done those at {done}")
        stretch = list(accumulate(2 * call.ordered for call in self.calls))  # the ordered ones are between two
        found = [stretch[k] - self.calls[k].ordered for k in places if self.calls[k].kind != "view"]
        inside = [k for item in order if isinstance(item, Kernel) for k in item.calls]
        if found != sorted(found) or any(self.calls[k].ordered for k in inside):
            raise ValueError(f"a backend has moved a call of {self.name} past an ordered one, or that into a kernel")
        return list(order)


@frozen(eq=False)
class Kernel:
    """One call of ``function`` in the place of several calls of the plan.

    ``function(*arguments)`` has to leave in memory what these would leave, bit for bit, for every value that is read
    outside the kernel; ``untouched`` are the values that it keeps to itself. Where the plan ``warns`` it returns
    whether NumPy would have warned; then the calls are made after all, on the same memory. So such a kernel may not
    overwrite what its own calls have yet to read.
    """

    calls: tuple[int, ...]
    """Places of the calls, in their order, with the views that they read."""
    function: Callable[..., Any] = field(repr=False)
    arguments: tuple[Any, ...]
    """Names of memory (``Value.memory``), of values that are numbers (``v6``), tuples of integers, or ``threads``, for
    the number of threads; what it leaves may not depend on that."""
    untouched: frozenset[int] = frozenset()
    text: str = field(default="", repr=False)
    """What it does, for people: ``pullback.explain_stage`` shows it."""

    @property
    def divides(self) -> bool:
        """Whether it takes the number of threads among which it is to divide its work."""
        return "threads" in self.arguments


Backend = Callable[[Plan], Sequence[int | Kernel]]
"""The order in which a function does its work: each place of a call stands there once, alone or in a kernel; views may
be read again, within kernels too."""
