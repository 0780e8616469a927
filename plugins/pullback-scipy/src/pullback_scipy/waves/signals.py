"""scipy.signal: convolutions, recursive filters, resampling.

A convolution is bilinear: the cotangent of one operand is the correlation of ct with the other. A recursive filter
a y = b x has the transpose of itself with time reversed; with g = a^-T ct the cotangents of its coefficients are the
correlations of g with x and with -y.
"""

from typing import Any

import numpy as np
from scipy import signal

import pullback as pb
from pullback_scipy.mirroring import as_array, derived, linear, mirror, only, primitive


# --------------------------------------------------------------------------------------------------------- convolutions
def flipped(x: Any, axes: Any = None) -> Any:
    """``x`` with its axes reversed."""
    return np.flip(x, axes)


def placed(ct: Any, shape: tuple[int, ...], starts: tuple[int, ...]) -> Any:
    """``ct`` in the midst of zeros of ``shape``."""
    if ct.shape == shape:
        return ct
    pads = [(start, n - start - m) for start, n, m in zip(starts, shape, ct.shape, strict=True)]
    return np.pad(ct, pads)


def _convolve(a: Any, b: Any, *, function: str, mode: str, options: tuple[Any, ...]) -> Any:
    return getattr(signal, function)(a, b, mode=mode, **dict(options))


def _full(ct: Any, a_shape: Any, b_shape: Any, mode: str) -> Any:
    """The cotangent of the full convolution, of which ``ct`` is that of a part."""
    shape = tuple(n + m - 1 for n, m in zip(a_shape, b_shape, strict=True))
    if mode == "full":
        return ct
    if mode == "same":
        return placed(ct, shape, tuple((n - m) // 2 for n, m in zip(shape, a_shape, strict=True)))
    return placed(ct, shape, tuple(min(n, m) - 1 for n, m in zip(a_shape, b_shape, strict=True)))


def _convolve_rule(
    ct: Any, a: Any, b: Any, function: str, mode: str, options: tuple[Any, ...], needed: frozenset[str]
) -> tuple[Any, Any]:
    full = _full(ct, a.shape, b.shape, mode)
    plain = {"function": "convolve" if function == "oaconvolve" else function, "mode": "valid", "options": options}
    of_a = convolution(full, flipped(b), **plain) if "a" in needed else None
    of_b = convolution(full, flipped(a), **plain) if "b" in needed else None
    return of_a, of_b


convolution = primitive(_convolve, name="scipy.convolve", bilinear=("a", "b"))
convolution.vjp("a", "b", fn=_convolve_rule)


def _convolved(function: str, in1: Any, in2: Any, mode: str, options: dict[str, Any]) -> Any:
    a, b = as_array(in1), as_array(in2)
    if a.ndim != b.ndim:
        raise ValueError("in1 and in2 should have the same dimensionality")
    if not a.ndim:
        return a * b
    return convolution(a, b, function=function, mode=mode, options=tuple(sorted(options.items())))


@mirror(signal.convolve, "in1 in2")
def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution."""
    return _convolved("convolve", in1, in2, mode, {"method": method})


@mirror(signal.fftconvolve, "in1 in2")
def fftconvolve(in1: Any, in2: Any, mode: str = "full") -> Any:
    """The convolution, by Fourier transforms."""
    return _convolved("fftconvolve", in1, in2, mode, {})


@mirror(signal.oaconvolve, "in1 in2")
def oaconvolve(in1: Any, in2: Any, mode: str = "full") -> Any:
    """The convolution, block by block."""
    return _convolved("oaconvolve", in1, in2, mode, {})


EXTENDED: Any = {"wrap": "wrap", "symm": "symmetric"}
"""What ``numpy.pad`` calls the ways to go on beyond the edges."""


def _by_padding(a: Any, b: Any, mode: str, boundary: str) -> Any:
    """The part of the convolution of a matrix with more around it, of which no zero is part."""
    around = np.pad(a, [(m - 1, m - 1) for m in b.shape], EXTENDED[boundary])
    full = convolution(around, b, function="convolve2d", mode="valid", options=())
    if mode == "full":
        return full
    first = [(m - 1) // 2 for m in b.shape]
    return full[tuple(slice(k, k + n) for k, n in zip(first, a.shape, strict=True))]


beyond_edges = derived(
    lambda a, b, *, mode, boundary: signal.convolve2d(a, b, mode, boundary),
    _by_padding,
    "a b",
    "mode boundary",
    name="scipy.convolve2d_extended",
    bilinear=("a", "b"),
)


@mirror(signal.convolve2d, "in1 in2")
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two matrices, with zeros around, or the matrix again, or its mirror image."""
    only("scipy.signal.convolve2d", "boundary", boundary, "fill", *EXTENDED)
    only("scipy.signal.convolve2d", "fillvalue", fillvalue, 0, 0.0)
    if boundary == "fill" or mode == "valid":
        return _convolved("convolve2d", in1, in2, mode, {})
    return beyond_edges(as_array(in1), as_array(in2), mode=mode, boundary=boundary)


def _by_convolution(a: Any, b: Any, mode: str, method: str) -> Any:
    """The correlation of a with b, as a convolution with b reversed; SciPy cuts the ``valid`` part of a shorter a from
    the other side, which is the same."""
    return convolution(a, np.conjugate(flipped(b)), function="convolve", mode=mode, options=(("method", method),))


correlation = derived(
    lambda a, b, *, mode, method: signal.correlate(a, b, mode, method),
    _by_convolution,
    "a b",
    "mode method",
    name="scipy.correlate",
)


@mirror(signal.correlate, "in1 in2")
def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation."""
    a, b = as_array(in1), as_array(in2)
    if mode == "valid" and any(n < m for n, m in zip(a.shape, b.shape, strict=True)):
        only("scipy.signal.correlate with mode='valid'", "shape of in1", a.shape, "at least that of in2")
    return correlation(a, b, mode=mode, method=method)


# ---------------------------------------------------------------------------------------------------- recursive filters
def _lagged(g: Any, x: Any, count: int) -> Any:
    """The sums of g[n] x[n - k] for k below ``count``; time is the last axis."""
    n = x.shape[-1]
    parts = [np.sum(g[..., k:] * x[..., : n - k]) if k < n else np.sum(g[..., :1] * 0.0) for k in range(count)]
    return np.stack(parts)


def _filter(b: Any, a: Any, x: Any) -> Any:
    return signal.lfilter(b, a, x)


def _filter_rule(ct: Any, b: Any, a: Any, x: Any, out: Any, needed: frozenset[str]) -> tuple[Any, Any, Any]:
    unit = np.ones(1, a.dtype)
    g = flipped(filtered(unit, a, flipped(ct, -1)), -1)
    return (
        _lagged(g, x, b.shape[0]) if "b" in needed else None,
        -_lagged(g, out, a.shape[0]) if "a" in needed else None,
        flipped(filtered(b, a, flipped(ct, -1)), -1) if "x" in needed else None,
    )


filtered = primitive(_filter, name="scipy.lfilter")
filtered.vjp("b", "a", "x", fn=_filter_rule)


def _state_filter(b: Any, a: Any, x: Any, zi: Any) -> Any:
    return signal.lfilter(b, a, x, zi=zi)


def _state_formula(b: Any, a: Any, x: Any, zi: Any) -> Any:
    """The start state adds what the filter 1 / a makes of it; the end state follows from the last samples."""
    order, n = max(b.shape[0], a.shape[0]) - 1, x.shape[-1]
    b, a = b / a[0], a / a[0]
    start = zi[..., :n]
    gap = np.zeros((*zi.shape[:-1], n - start.shape[-1]), zi.dtype)
    y = filtered(b, a, x) + filtered(np.ones(1), a, np.concatenate((start, gap), axis=-1))
    states = []
    for k in range(order):
        state: Any = zi[..., k + n] if k + n < order else 0.0
        for m in range(k + 1, min(order, k + n) + 1):
            at = n - (m - k)
            if m < b.shape[0]:
                state = state + b[m] * x[..., at]
            if m < a.shape[0]:
                state = state - a[m] * y[..., at]
        states.append(state + np.zeros(zi.shape[:-1]))
    return y, np.stack(states, axis=-1) if states else zi


state_filtered = derived(_state_filter, _state_formula, "b a x zi", name="scipy.lfilter_zi", outputs=("y", "zf"))


def lines(x: Any, axis: int) -> Any:
    """``x`` with ``axis`` as its last one."""
    return x if axis in (-1, x.ndim - 1) else np.moveaxis(x, axis, -1)


@mirror(signal.lfilter, "b a x zi")
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """What the filter b / a makes of x; with a start state, and the end state."""
    b, a = (np.reshape(as_array(c) * 1.0, (-1,)) for c in (b, a))
    x = lines(as_array(x), axis)
    if zi is None:
        return np.moveaxis(filtered(b, a, x), -1, axis)
    y, zf = state_filtered(b, a, x, lines(as_array(zi), axis))
    return np.moveaxis(y, -1, axis), np.moveaxis(zf, -1, axis)


def _sections(sos: Any, x: Any) -> Any:
    for k in range(sos.shape[0]):
        x = filtered(sos[k, :3], sos[k, 3:], x)
    return x


sections = derived(lambda sos, x: signal.sosfilt(sos, x), _sections, "sos x", name="scipy.sosfilt")  # noqa: PLW0108


@mirror(signal.sosfilt, "sos x")
def sosfilt(sos: Any, x: Any, axis: int = -1) -> Any:
    """What a chain of filters of second order makes of x."""
    return np.moveaxis(sections(as_array(sos), lines(as_array(x), axis)), -1, axis)


def extended(x: Any, padtype: Any, edge: int) -> Any:
    """``x`` with ``edge`` samples more at both ends, as filtfilt adds them."""
    if padtype is None or edge == 0:
        return x
    left, right = x[..., edge:0:-1], x[..., -2 : -(edge + 2) : -1]
    if padtype == "even":
        return np.concatenate((left, x, right), axis=-1)
    first, last = x[..., :1], x[..., -1:]
    if padtype == "odd":
        return np.concatenate((2 * first - left, x, 2 * last - right), axis=-1)
    ones = np.ones(edge)
    return np.concatenate((first * ones, x, last * ones), axis=-1)


def _there_and_back(x: Any, edge: int, padtype: Any, run: Any) -> Any:
    longer = extended(x, padtype, edge)
    there = run(longer, longer[..., :1])
    back = run(flipped(there, -1), there[..., -1:])
    y = flipped(back, -1)
    return y[..., edge : y.shape[-1] - edge] if edge and padtype is not None else y


def _filtfilt(x: Any, b: Any, a: Any, padtype: Any, padlen: Any) -> Any:
    b, a = np.array(b), np.array(a)
    edge = 3 * max(len(a), len(b)) if padlen is None else padlen
    zi = signal.lfilter_zi(b, a)
    return _there_and_back(x, edge, padtype, lambda x, first: state_filtered(b, a, x, zi * first)[0])


both_ways = linear(
    lambda x, *, b, a, padtype, padlen: signal.filtfilt(np.array(b), np.array(a), x, -1, padtype, padlen),
    _filtfilt,
    "b a padtype padlen",
    name="scipy.filtfilt",
)


@mirror(signal.filtfilt, "x")
def filtfilt(b: Any, a: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """What a filter makes of x, run there and back."""
    taps = {"b": tuple(np.atleast_1d(b)), "a": tuple(np.atleast_1d(a))}
    return np.moveaxis(both_ways(lines(as_array(x), axis), **taps, padtype=padtype, padlen=padlen), -1, axis)


def _sosfiltfilt(x: Any, sos: Any, padtype: Any, padlen: Any) -> Any:
    sos = np.array(sos)
    taps = 2 * len(sos) + 1 - min(int((sos[:, 2] == 0).sum()), int((sos[:, 5] == 0).sum()))
    edge = 3 * taps if padlen is None else padlen
    zi = signal.sosfilt_zi(sos)

    def run(x: Any, first: Any) -> Any:
        for k in range(len(sos)):
            x = state_filtered(sos[k, :3], sos[k, 3:], x, zi[k] * first)[0]
        return x

    return _there_and_back(x, edge, padtype, run)


sections_both_ways = linear(
    lambda x, *, sos, padtype, padlen: signal.sosfiltfilt(np.array(sos), x, -1, padtype, padlen),
    _sosfiltfilt,
    "sos padtype padlen",
    name="scipy.sosfiltfilt",
)


@mirror(signal.sosfiltfilt, "x")
def sosfiltfilt(sos: Any, x: Any, axis: int = -1, padtype: Any = "odd", padlen: Any = None) -> Any:
    """What a chain of filters of second order makes of x, run there and back."""
    rows = tuple(map(tuple, np.atleast_2d(sos)))
    made = sections_both_ways(lines(as_array(x), axis), sos=rows, padtype=padtype, padlen=padlen)
    return np.moveaxis(made, -1, axis)


# ----------------------------------------------------------------------------------------------------------- resampling
def _resampled(x: Any, num: int) -> Any:
    """The signal resampled by Fourier transforms: the middle frequency of an even length stands for two."""
    n = x.shape[-1]
    if np.iscomplexobj(pb.value(x)):
        return _resampled(x.real, num) + 1j * _resampled(x.imag, num)
    spectrum, least = np.fft.rfft(x), min(num, n)
    kept = spectrum[..., : least // 2 + 1]
    if least % 2 == 0 and num != n:
        middle = 2.0 if num < n else 0.5
        kept = kept * np.concatenate((np.ones(least // 2), [middle]))
    rest = num // 2 + 1 - kept.shape[-1]
    whole = np.concatenate((kept, np.zeros((*kept.shape[:-1], rest))), axis=-1) if rest else kept
    return np.fft.irfft(whole, num) * (num / n)


by_frequencies = linear(lambda x, *, num: signal.resample(x, num, axis=-1), _resampled, "num", name="scipy.resample")


@mirror(signal.resample, "x")
def resample(x: Any, num: int, axis: int = 0) -> Any:
    """The samples at ``num`` points, by its Fourier series."""
    return np.moveaxis(by_frequencies(lines(as_array(x), axis), num=int(num)), -1, axis)


def _detrended(x: Any, type: str) -> Any:
    if type == "constant":
        return x - np.mean(x, axis=-1, keepdims=True)
    t = np.linspace(-1.0, 1.0, x.shape[-1])
    slope = np.sum(x * t, axis=-1, keepdims=True) / np.sum(t * t)
    return x - np.mean(x, axis=-1, keepdims=True) - slope * t


def _without_trend(x: Any, *, type: str) -> Any:
    return signal.detrend(x, -1, type)


without_trend = linear(_without_trend, _detrended, "type", name="scipy.detrend")


@mirror(signal.detrend, "data")
def detrend(data: Any, axis: int = -1, type: str = "linear") -> Any:
    """The data without their mean, or without the line that fits them."""
    only("scipy.signal.detrend", "type", type, "linear", "l", "constant", "c")
    type = {"l": "linear", "c": "constant"}.get(type, type)
    return np.moveaxis(without_trend(lines(as_array(data), axis), type=type), -1, axis)


def _analytic(x: Any) -> Any:
    n = x.shape[-1]
    h = np.zeros(n)
    h[0] = 1
    h[1 : (n + 1) // 2] = 2
    if n % 2 == 0:
        h[n // 2] = 1
    return np.fft.ifft(np.fft.fft(x) * h)


analytic = linear(lambda x: signal.hilbert(x), _analytic, name="scipy.hilbert")  # noqa: PLW0108 - for its signature


@mirror(signal.hilbert, "x")
def hilbert(x: Any, axis: int = -1) -> Any:
    """The analytic signal."""
    return np.moveaxis(analytic(lines(as_array(x), axis)), -1, axis)
