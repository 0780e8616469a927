"""What a backend is told, and what it answers: values, calls and where these write; kernels in the place of calls."""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, Literal

import numpy as np
from attrs import field, frozen


@frozen
class Ref:
    """The value of a number, among the arguments of a call.

    Parameters
    ----------
    number
        That of the value.

    Example
    -------
    >>> Ref(3).number
    3
    """

    number: int


@frozen
class Value:
    """What is known of a value when the function is written; it holds in every call of it.

    Attributes
    ----------
    shape
        Its shape.
    dtype
        None for what is neither an array nor a number of NumPy's.
    type
        ``np.ndarray``, a scalar type of NumPy's, ``float``, ``int``, ``complex``, ...
    memory
        The name of the array in whose memory it lies, ``b0`` or ``v12``; None where that is not known, since it
        depends on what other values hold: then it may be any of those that were read. Two names are two arrays
        that do not overlap, if at least one of them is written.
    starts
        Where it begins along each axis of that array, if it is a slice of it with steps of one and as many
        axes; else None.
    whole
        The shape of that array.
    dense
        Whether it lies in C order without gaps, as each array does that is made for a kernel.

    Example
    -------
    >>> Value((4,), np.dtype(float), np.ndarray, "b0", (1,), (6,), dense=True).is_array
    True
    """

    shape: tuple[int, ...]
    dtype: Any
    type: Any
    memory: str | None
    starts: tuple[int, ...] | None
    whole: tuple[int, ...]
    dense: bool

    @property
    def is_array(self) -> bool:
        """Whether it is an array and no number."""
        return bool(issubclass(self.type, np.ndarray))


@frozen
class Write:
    """A write to part of an array: ``target[starts : starts + shape] sign value``.

    Attributes
    ----------
    target
        The value that was there before.
    sign
        What is done: set, added or subtracted.
    starts
        Along each axis of the memory; None where the part is no slice with steps of one.
    shape
        That of the part.
    value
        A number, or a :class:`Ref`.
    in_place
        Whether the target's own memory is changed; else the value made begins as a copy of the target.

    Example
    -------
    >>> Write(3, "+=", (1,), (4,), Ref(5), in_place=True).sign
    '+='
    """

    target: int
    sign: Literal["=", "+=", "-="]
    starts: tuple[int, ...] | None
    shape: tuple[int, ...]
    value: Any
    in_place: bool


@frozen
class Call:
    """One statement of the function: ``values[makes] = function(*args, **kwargs)``, or a write. What it writes to is
    the memory of the value that it makes; a view writes nothing.

    Attributes
    ----------
    kind
        What it does: one ufunc on ``args``; a copy of ``args[0]`` with the same strides; a new array of zeros;
        a view, which computes nothing; a write to part of an array; anything else, which stays as it is.
    function
        Of ``kind`` "ufunc" the ufunc, also where the program has an operator.
    args
        Its arguments, values as :class:`Ref`.
    kwargs
        Those by keyword.
    makes
        The number of the value that it makes.
    reads
        The numbers of the values among the arguments.
    write
        Where it writes to, if it is a write.
    detaches
        Values that are copied before, since they look at what is changed; such a call is to stay as it is.
    text
        As it stands in the function.
    ordered
        Whether it has an effect, or hands a value out: what stands before it is done before it, what stands
        behind it behind it, and it stands in no kernel.

    Example
    -------
    >>> call = Call("ufunc", np.add, (Ref(1), Ref(2)), {}, 3, (1, 2), None, (), ("v3 = v1 + v2",))
    >>> call.makes
    3
    """

    kind: Literal["ufunc", "copy", "zeros", "view", "write", "other"]
    function: Callable[..., Any] = field(repr=False)
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    makes: int
    reads: tuple[int, ...]
    write: Write | None
    detaches: tuple[int, ...]
    text: tuple[str, ...]
    ordered: bool = False


@frozen
class Plan:
    """A generated function before it is written: its calls in their order, and the values between them.

    Attributes
    ----------
    name
        ``record``, ``advance``, ``reverse`` or ``reverse_own``.
    calls
        Its statements, in their order.
    values
        Those that enter and those that are made, by number.
    leaves
        The values that the function returns.
    warns
        Whether NumPy's warnings have to come: the kernels then say when there would be one.

    Example
    -------
    >>> Plan("advance", (), {}, (), warns=False).checked([])
    []
    """

    name: str
    calls: tuple[Call, ...]
    values: Mapping[int, Value]
    leaves: tuple[int, ...]
    warns: bool

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

    Parameters
    ----------
    calls
        Places of the calls, in their order, with the views that they read.
    function
        What is called.
    arguments
        Names of memory (``Value.memory``), of values that are numbers (``v6``), tuples of integers, or
        ``threads``, for the number of threads; what it leaves may not depend on that.
    untouched
        Values that it keeps to itself.
    text
        What it does, for people: ``pullback.explain_stage`` shows it.

    Example
    -------
    >>> Kernel((0, 1), lambda out, threads: None, ("b0", "threads")).divides
    True
    """

    calls: tuple[int, ...]
    function: Callable[..., Any] = field(repr=False)
    arguments: tuple[Any, ...]
    untouched: frozenset[int] = frozenset()
    text: str = field(default="", repr=False)

    @property
    def divides(self) -> bool:
        """Whether it takes the number of threads among which it is to divide its work."""
        return "threads" in self.arguments


Backend = Callable[[Plan], Sequence[int | Kernel]]
"""The order in which a function does its work: each place of a call stands there once, alone or in a kernel; views may
be read again, within kernels too."""
