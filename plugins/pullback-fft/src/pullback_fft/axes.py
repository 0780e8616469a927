"""The transforms along several axes, which NumPy makes of those along one, in the order of NumPy, so that the bits are
its own; shifts.

An axis may be named twice: it is then transformed twice, and the second transform crops or pads what the first has
given.
"""

from collections.abc import Callable, Sequence
from functools import cache
from operator import index
from typing import Any
from warnings import warn

import numpy as np

import pullback as pb
from pullback_fft.lines import as_array

Axes = Sequence[int] | None


def stages(a: Any, s: Any, axes: Axes) -> list[tuple[int | None, int]]:
    """(length, axis) of each transform; the length is None where it is the function's own default."""
    if s is None:
        axes = range(-a.ndim, 0) if axes is None else axes
        return [(a.shape[axis], index(axis)) for axis in axes]
    s = list(s)
    if axes is None or None in s:
        missing = "axes=" if axes is None else "an element of s="
        warn(
            f"numpy.fft deprecates None for {missing} where s= is given; name every length and axis",
            DeprecationWarning,
            stacklevel=2,
        )
    axes = range(-len(s), 0) if axes is None else axes
    if len(s) != len(axes):
        message = (
            f"Shape and axes have different lengths: s={tuple(s)}, axes={tuple(axes)}; give one length for each axis"
        )
        raise ValueError(message)
    return [(a.shape[axis] if n == -1 else n, index(axis)) for n, axis in zip(s, axes, strict=True)]


def each(function: Callable[..., Any], a: Any, along: Sequence[tuple[int | None, int]], norm: Any) -> Any:
    """``function`` along one axis after the other."""
    for n, axis in along:
        a = function(a, n, axis, norm)
    return a


@pb.composite(np.fft.fftn, name="fft.fftn")
def fftn(a: Any, s: Any = None, axes: Axes = None, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.fftn."""
    a = as_array(a)
    return each(np.fft.fft, a, stages(a, s, axes)[::-1], norm)


@pb.composite(np.fft.ifftn, name="fft.ifftn")
def ifftn(a: Any, s: Any = None, axes: Axes = None, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.ifftn."""
    a = as_array(a)
    return each(np.fft.ifft, a, stages(a, s, axes)[::-1], norm)


@cache
def backwards() -> bool:
    """Whether the installed NumPy's rfftn goes through the axes but the last in reverse, as fftn does; NumPy 2.0 does
    not.

    Seen where an axis is transformed twice: the length that is left is that of the second time.
    """
    return bool(np.fft.rfftn(np.ones((2, 1)), (1, 2, 1), (0, 0, 1)).shape[0] == 1)


@pb.composite(np.fft.rfftn, name="fft.rfftn")
def rfftn(a: Any, s: Any = None, axes: Axes = None, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.rfftn: the last axis as a real line, then the others."""
    a = as_array(a)
    *others, (n, axis) = stages(a, s, axes)
    return each(np.fft.fft, np.fft.rfft(a, n, axis, norm), others[::-1] if backwards() else others, norm)


@pb.composite(np.fft.irfftn, name="fft.irfftn")
def irfftn(a: Any, s: Any = None, axes: Axes = None, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.irfftn: the last axis becomes a real line, after the others."""
    a = as_array(a)
    *others, (n, axis) = stages(a, s, axes)
    return np.fft.irfft(each(np.fft.ifft, a, others, norm), None if s is None else n, axis, norm)


@pb.composite(np.fft.fft2, name="fft.fft2")
def fft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.fft2."""
    return fftn(a, s, axes, norm)


@pb.composite(np.fft.ifft2, name="fft.ifft2")
def ifft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.ifft2."""
    return ifftn(a, s, axes, norm)


@pb.composite(np.fft.rfft2, name="fft.rfft2")
def rfft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.rfft2."""
    return rfftn(a, s, axes, norm)


@pb.composite(np.fft.irfft2, name="fft.irfft2")
def irfft2(a: Any, s: Any = None, axes: Axes = (-2, -1), norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.irfft2."""
    return irfftn(a, s, axes, norm)


# --------------------------------------------------------------------------------------------------------------- shifts
def shifted(x: Any, axes: Any, *, back: bool) -> Any:
    """``x`` rolled by half of every axis: the halves of an odd length differ by one, so the way back is another."""
    x = as_array(x)
    named = tuple(range(x.ndim)) if axes is None else (axes,) if isinstance(axes, int | np.integer) else tuple(axes)
    halves = tuple(x.shape[axis] // 2 for axis in named)
    return np.roll(x, tuple(-half for half in halves) if back else halves, named)


@pb.composite(np.fft.fftshift, name="fft.fftshift")
def fftshift(x: Any, axes: Any = None) -> Any:
    """numpy.fft.fftshift."""
    return shifted(x, axes, back=False)


@pb.composite(np.fft.ifftshift, name="fft.ifftshift")
def ifftshift(x: Any, axes: Any = None) -> Any:
    """numpy.fft.ifftshift."""
    return shifted(x, axes, back=True)


AXES = (fftn, ifftn, rfftn, irfftn, fft2, ifft2, rfft2, irfft2, fftshift, ifftshift)
