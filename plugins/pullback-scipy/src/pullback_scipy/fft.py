"""``scipy.fft`` with derivatives; a name without one is SciPy's own."""

from numpy.fft import fftshift, ifftshift
from scipy import fft as scipy_fft

from pullback_scipy.mirroring import fall_through
from pullback_scipy.waves.transforms import (
    dct,
    dctn,
    dst,
    dstn,
    fft2,
    fftn,
    hfft,
    idct,
    idctn,
    idst,
    idstn,
    ifft,
    ifft2,
    ifftn,
    ihfft,
    irfft,
    irfft2,
    irfftn,
    rfft,
    rfft2,
    rfftn,
)
from pullback_scipy.waves.transforms import fft_ as fft

__getattr__, __dir__ = fall_through(scipy_fft, globals())
__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fftshift", "hfft", "idct", "idctn", "idst", "idstn", "ifft",
    "ifft2", "ifftn", "ifftshift", "ihfft", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftn",
]  # fmt: skip
