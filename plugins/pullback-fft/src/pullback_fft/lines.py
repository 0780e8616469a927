"""The six transforms along one axis, and the transpose of each: linear, so that nothing is saved.

With w = exp(-2 pi i / n) and ct = df/dx - i df/dy, which is transposed without conjugation:

    fft     y[k] = sum_j w**(j k) x[j]                   a symmetric matrix: its own transpose
    ifft    y[j] = 1/n sum_k w**(-j k) x[k]              likewise
    rfft    y[k] = sum_j w**(j k) x[j],  k < h           h = n // 2 + 1: the others of n are conjugates of these
    hfft    y[j] = sum_k twice[k] Re(w**(j k) x[k]),  k < h twice = 1, 2, 2, ..., 2 and a last 1 where n is even
    ihfft   y[k] = 1/n sum_j w**(-j k) x[j],  k < h
    irfft   y[j] = 1/n sum_k twice[k] Re(w**(-j k) x[k]),  k < h

``twice`` counts the terms for which x[k] stands. The cotangent of a real x is Re(sum_k ct[k] w**(j k)), so rfft has the
transpose hfft(ct / twice), and hfft has twice * rfft(ct); the other two likewise. A real ct makes rfft(ct) real at k =
0 and, where n is even, at the last k: hfft and irfft do not see those imaginary parts, and their cotangents are 0.

``norm`` scales a transform and its transpose alike. A line of another length than n is cropped or padded with zeros
before the transform, hence its cotangent padded or cropped after it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import pullback as pb


def fitted(ct: Any, x_spec: Any, axis: int) -> Any:
    """``ct`` cropped, or padded with zeros, along ``axis`` to the extent of x."""
    length, wanted = ct.shape[axis], x_spec.shape[axis]
    if length == wanted:
        return ct
    whole = (slice(None),) * (axis % len(ct.shape))
    if wanted < length:
        return ct[(*whole, slice(wanted))]
    shape = list(ct.shape)
    shape[axis] = wanted - length
    return np.concatenate((ct, np.zeros(shape, ct.dtype)), axis)


def weighted(ct: Any, n: int, axis: int, weight: float) -> Any:
    """``ct`` with the terms that stand for two of ``n`` multiplied by ``weight``."""
    weights = np.full(ct.shape[axis], weight, np.finfo(ct.dtype).dtype)
    weights[0] = 1
    if n % 2 == 0:
        weights[-1] = 1
    return ct * weights.reshape((-1,) + (1,) * (len(ct.shape) - 1 - axis % len(ct.shape)))


def line_transform(function: Callable[..., Any], rule: Callable[..., Any]) -> Any:
    """The primitive of a NumPy function of one line."""
    return pb.primitive(
        lambda x, *, n, axis, norm: function(x, n, axis, norm),
        name=f"line_{function.__name__}",
        linear=("x",),
        vjps={"x": rule},
        guarded=False,
    )


line_fft = line_transform(
    np.fft.fft, lambda ct, x_spec, axis, norm: fitted(np.fft.fft(ct, None, axis, norm), x_spec, axis)
)
line_ifft = line_transform(
    np.fft.ifft, lambda ct, x_spec, axis, norm: fitted(np.fft.ifft(ct, None, axis, norm), x_spec, axis)
)
line_rfft = line_transform(
    np.fft.rfft,
    lambda ct, x_spec, n, axis, norm: fitted(np.fft.hfft(weighted(ct, n, axis, 0.5), n, axis, norm), x_spec, axis),
)
line_hfft = line_transform(
    np.fft.hfft,
    lambda ct, x_spec, n, axis, norm: fitted(weighted(np.fft.rfft(ct, n, axis, norm), n, axis, 2.0), x_spec, axis),
)
line_ihfft = line_transform(
    np.fft.ihfft,
    lambda ct, x_spec, n, axis, norm: fitted(np.fft.irfft(weighted(ct, n, axis, 0.5), n, axis, norm), x_spec, axis),
)
line_irfft = line_transform(
    np.fft.irfft,
    lambda ct, x_spec, n, axis, norm: fitted(weighted(np.fft.ihfft(ct, n, axis, norm), n, axis, 2.0), x_spec, axis),
)


# ---------------------------------------------------------------------------------------------------- NumPy's functions
def as_array(a: Any) -> Any:
    """``a`` as numpy.asarray makes it: an array, or a tracer of one; of a number, traced or not, a 0-d array."""
    if not hasattr(a, "ndim"):
        return np.asarray(a)
    return a if a.ndim or isinstance(pb.value(a), np.ndarray) else np.copy(a)


def extent(a: Any, n: Any, axis: int) -> int:
    """How many elements are transformed: ``n``, or all that there are."""
    return int(a.shape[axis] if n is None else n)


def doubled(a: Any, n: Any, axis: int) -> int:
    """How many elements hfft and irfft give: ``n``, or the even number of which ``a`` holds the half."""
    return int((a.shape[axis] - 1) * 2 if n is None else n)


@pb.composite(np.fft.fft, name="fft.fft")
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.fft."""
    a = as_array(a)
    return line_fft(a, n=extent(a, n, axis), axis=axis, norm=norm)


@pb.composite(np.fft.ifft, name="fft.ifft")
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.ifft."""
    a = as_array(a)
    return line_ifft(a, n=extent(a, n, axis), axis=axis, norm=norm)


@pb.composite(np.fft.rfft, name="fft.rfft")
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.rfft."""
    a = as_array(a)
    return line_rfft(a, n=extent(a, n, axis), axis=axis, norm=norm)


@pb.composite(np.fft.irfft, name="fft.irfft")
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.irfft."""
    a = as_array(a)
    return line_irfft(a, n=doubled(a, n, axis), axis=axis, norm=norm)


@pb.composite(np.fft.hfft, name="fft.hfft")
def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.hfft."""
    a = as_array(a)
    return line_hfft(a, n=doubled(a, n, axis), axis=axis, norm=norm)


@pb.composite(np.fft.ihfft, name="fft.ihfft")
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    """numpy.fft.ihfft."""
    a = as_array(a)
    return line_ihfft(a, n=extent(a, n, axis), axis=axis, norm=norm)


LINES = (line_fft, line_ifft, line_rfft, line_irfft, line_hfft, line_ihfft, fft, ifft, rfft, irfft, hfft, ihfft)
