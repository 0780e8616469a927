"""``scipy.fftpack`` with derivatives, as far as it computes what ``scipy.fft`` does: its ``rfft`` packs real and
imaginary parts into one array. A name without a derivative is SciPy's own."""

from typing import Any

from numpy.fft import fftshift, ifftshift
from scipy import fftpack

from pullback_scipy.mirroring import fall_through, mirror
from pullback_scipy.waves import transforms

INVERSE = {2: 3, 3: 2}
"""The type of the inverse, where it is another one."""


def _line(name: str, served: Any) -> Any:
    def call(x: Any, n: Any = None, axis: int = -1) -> Any:
        return served(x, n, axis)

    return mirror(getattr(fftpack, name), "x")(call)


def _plane(name: str, axes: Any) -> Any:
    served = getattr(transforms, name)

    def call(x: Any, shape: Any = None, axes: Any = axes) -> Any:
        return served(x, shape, axes)

    return mirror(getattr(fftpack, name), "x")(call)


def _cosines(name: str) -> Any:
    """An inverse is the transform of the inverse type, not divided by the length."""
    served, types = getattr(transforms, name.removeprefix("i")), INVERSE if name[0] == "i" else {}

    def call(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return served(x, types.get(type, type), n, axis, norm)

    def several(x: Any, type: int = 2, shape: Any = None, axes: Any = None, norm: Any = None) -> Any:
        return served(x, types.get(type, type), shape, axes, norm)

    return mirror(getattr(fftpack, name), "x")(several if name[-1] == "n" else call)


fft, ifft = _line("fft", transforms.fft_), _line("ifft", transforms.ifft)
fft2, ifft2 = _plane("fft2", (-2, -1)), _plane("ifft2", (-2, -1))
fftn, ifftn = _plane("fftn", None), _plane("ifftn", None)
dct, idct, dst, idst = map(_cosines, ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = map(_cosines, ("dctn", "idctn", "dstn", "idstn"))

__getattr__, __dir__ = fall_through(fftpack, globals())
__all__ = [
    "dct", "dctn", "dst", "dstn", "fft", "fft2", "fftn", "fftshift", "idct", "idctn", "idst", "idstn", "ifft", "ifft2",
    "ifftn", "ifftshift",
]  # fmt: skip
