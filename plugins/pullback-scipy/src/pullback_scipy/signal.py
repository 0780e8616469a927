"""``scipy.signal`` with derivatives; a name without one is SciPy's own."""

from scipy import signal

from pullback_scipy.mirroring import fall_through
from pullback_scipy.waves.signals import (
    convolve,
    convolve2d,
    correlate,
    detrend,
    fftconvolve,
    filtfilt,
    hilbert,
    lfilter,
    oaconvolve,
    resample,
    sosfilt,
    sosfiltfilt,
)

__getattr__, __dir__ = fall_through(signal, globals())
__all__ = [
    "convolve", "convolve2d", "correlate", "detrend", "fftconvolve", "filtfilt", "hilbert", "lfilter", "oaconvolve",
    "resample", "sosfilt", "sosfiltfilt",
]  # fmt: skip
