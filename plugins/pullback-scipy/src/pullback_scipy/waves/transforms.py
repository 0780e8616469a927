"""Fourier, cosine and sine transforms: linear, so nothing is held for the reverse pass.

The transposes of the Fourier transforms are those of pullback-fft. With C2 and C3 the cosine transforms of types 2 and
3, unscaled, C2 = C3^T D, where D doubles the first element; the sine transforms have the last in its place; the types 1
are symmetric but for the ends, the types 4 symmetric (Makhoul, "A fast cosine transform in one and two dimensions",
1980; SciPy's documentation of ``dct`` and ``dst`` for the factors).
"""

from operator import index
from typing import Any

import numpy as np
from scipy import fft

from pullback_fft import lines
from pullback_fft.lines import fitted
from pullback_scipy.mirroring import as_array, linear, mirror, only, primitive


# -------------------------------------------------------------------------------------------------------------- Fourier
def _line(name: str) -> Any:
    """The counterpart of a transform along one axis, with the rule of NumPy's."""
    function = getattr(fft, name)
    made = primitive(
        lambda x, *, n, axis, norm: function(x, n, axis, norm),
        name=f"scipy.{name}",
        linear=("x",),
        vjps={"x": getattr(lines, f"line_{name}").rules["x"][0].fn},
    )

    def call(x: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        x = as_array(x)
        if n is None:
            n = 2 * (x.shape[axis] - 1) if name in ("irfft", "hfft") else x.shape[axis]
        return made(x, n=n, axis=axis, norm=norm)

    return mirror(function, "x")(call)


def _plane(name: str, axes: Any) -> Any:
    """The counterpart of a transform along several axes."""
    function, formula = getattr(fft, name), getattr(np.fft, name)

    def along(x: Any, s: Any, axes: Any, norm: Any) -> Any:
        s, axes = (each if each is None else tuple(np.atleast_1d(each).tolist()) for each in (s, axes))
        if s is not None and axes is None:
            axes = tuple(range(-len(s), 0))
        return formula(x, s, axes, norm)

    made = linear(function, along, "s axes norm", name=f"scipy.{name}")

    def call(x: Any, s: Any = None, axes: Any = axes, norm: Any = None) -> Any:
        return made(as_array(x), s=s, axes=axes, norm=norm)

    return mirror(function, "x")(call)


fft_, ifft, rfft, irfft = _line("fft"), _line("ifft"), _line("rfft"), _line("irfft")
hfft, ihfft = _line("hfft"), _line("ihfft")
fft2, ifft2, rfft2, irfft2 = (_plane(name, (-2, -1)) for name in ("fft2", "ifft2", "rfft2", "irfft2"))
fftn, ifftn, rfftn, irfftn = (_plane(name, None) for name in ("fftn", "ifftn", "rfftn", "irfftn"))


# ------------------------------------------------------------------------------------------------------ cosine and sine
def _transform(x: Any, *, kind: str, type: int, axes: Any, norm: Any, lengths: Any) -> Any:
    return getattr(fft, kind)(x, type, lengths, axes, norm)


def _scaled(ct: Any, axis: int, ends: tuple[int, ...], factor: float) -> Any:
    """``ct`` with the elements at some places of an axis multiplied by a factor."""
    weights = np.ones(ct.shape[axis], ct.dtype)
    for end in ends:
        weights[end] = factor
    shape = [1] * len(ct.shape)
    shape[axis] = -1
    return ct * weights.reshape(shape)


def transposed_line(ct: Any, kind: str, type: int, axis: int, norm: Any) -> Any:
    """The transpose of ``dct``, ``idct``, ``dst`` or ``idst`` along one axis."""
    if norm == "ortho":  # orthogonal: the transpose is the inverse
        other = kind[1:] if kind.startswith("i") else f"i{kind}"
        return line(ct, other, type, axis, norm)
    if kind.startswith("i"):  # the inverse is the other type, scaled the other way
        flipped = {None: "forward", "backward": "forward", "forward": "backward"}[norm]
        return transposed_line(ct, kind[1:], {2: 3, 3: 2}.get(type, type), axis, flipped)
    if type == 4 or (kind == "dst" and type == 1):
        return line(ct, kind, type, axis, norm)
    if type == 1:  # a symmetric matrix times diag(1, 2, ..., 2, 1)
        return _scaled(line(_scaled(ct, axis, (0, -1), 2.0), kind, 1, axis, norm), axis, (0, -1), 0.5)
    end = (0,) if kind == "dct" else (-1,)
    if type == 2:
        return line(_scaled(ct, axis, end, 2.0), kind, 3, axis, norm)
    return _scaled(line(ct, kind, 2, axis, norm), axis, end, 0.5)


def line(x: Any, kind: str, type: int, axis: int, norm: Any) -> Any:
    """A transform along one axis."""
    return transform(x, kind=f"{kind}n", type=type, axes=(axis,), norm=norm, lengths=None)


def _rule(ct: Any, x_spec: Any, kind: str, type: int, axes: Any, norm: Any) -> Any:
    for axis in axes if isinstance(axes, tuple) else (axes,):
        ct = fitted(transposed_line(ct, kind.removesuffix("n"), type, axis, norm), x_spec, axis)
    return ct


transform = primitive(_transform, name="scipy.cosines", linear=("x",), vjps={"x": _rule})


def _cosines(name: str) -> Any:
    def call(x: Any, type: int = 2, n: Any = None, axis: int = -1, norm: Any = None, orthogonalize: Any = None) -> Any:
        only(f"scipy.fft.{name}", "orthogonalize", orthogonalize, None, norm == "ortho")
        return transform(as_array(x), kind=name, type=type, axes=index(axis), norm=norm, lengths=n)

    return mirror(getattr(fft, name), "x")(call)


def _several_cosines(name: str) -> Any:
    def call(
        x: Any, type: int = 2, s: Any = None, axes: Any = None, norm: Any = None, orthogonalize: Any = None
    ) -> Any:
        only(f"scipy.fft.{name}", "orthogonalize", orthogonalize, None, norm == "ortho")
        x = as_array(x)
        if axes is None:
            axes = range(x.ndim) if s is None else range(x.ndim - np.size(s), x.ndim)
        chosen = (index(axes),) if np.ndim(axes) == 0 else tuple(map(index, axes))
        return transform(x, kind=name, type=type, axes=chosen, norm=norm, lengths=s)

    return mirror(getattr(fft, name), "x")(call)


dct, idct, dst, idst = (_cosines(name) for name in ("dct", "idct", "dst", "idst"))
dctn, idctn, dstn, idstn = (_several_cosines(name) for name in ("dctn", "idctn", "dstn", "idstn"))
