"""The vector space that a value lies in, as autograd's programs ask for it: zeros, a basis, sums, products.

An array is a vector of its shape and dtype, a structure the sum of those of its leaves. All of it works on tracers.
"""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

import pullback as pb
from pullback_autograd.misc.flatten import leaves_of


class VSpace:
    """The space of ``value``: an array, a number, or a structure of them."""

    def __init__(self, value: Any) -> None:
        self._like = pb.map_leaves(lambda leaf: np.zeros_like(_floating(pb.value(leaf))), value)
        self._spaces = leaves_of(self._like)

    @property
    def shape(self) -> Any:
        """The shape of the array; of a structure the same structure of spaces."""
        return self._like.shape if self._alone else pb.map_leaves(VSpace, self._like)

    @property
    def _alone(self) -> bool:
        return isinstance(self._like, np.ndarray | np.generic)

    @property
    def dtype(self) -> Any:
        """The dtype of the array; of a structure that of all its leaves together."""
        return np.result_type(*self._spaces)

    @property
    def size(self) -> int:
        """How many real numbers a value has."""
        return sum(int(leaf.size) * (2 if np.iscomplexobj(leaf) else 1) for leaf in self._spaces)

    @property
    def ndim(self) -> int:
        """How many axes the array has."""
        return len(self.shape)

    @property
    def iscomplex(self) -> bool:
        """True if a leaf is complex."""
        return any(np.iscomplexobj(leaf) for leaf in self._spaces)

    @property
    def scalartype(self) -> type:
        """``complex`` or ``float``."""
        return complex if self.iscomplex else float

    def zeros(self) -> Any:
        """The zero."""
        return pb.map_leaves(np.zeros_like, self._like)

    def ones(self) -> Any:
        """All elements one, of a complex array 1 + 1j: the sum of the basis."""
        return pb.map_leaves(lambda leaf: np.full_like(leaf, 1 + 1j if np.iscomplexobj(leaf) else 1)[()], self._like)

    def randn(self) -> Any:
        """Normally distributed numbers, from NumPy's global generator as autograd's are."""
        return pb.map_leaves(_drawn, self._like)

    def standard_basis(self) -> Iterator[Any]:
        """The unit vectors; of complex elements the imaginary one after the real one."""
        for number, leaf in enumerate(self._spaces):
            for place in np.ndindex(*leaf.shape):
                for unit in (1.0, 1j) if np.iscomplexobj(leaf) else (1.0,):
                    yield self._unit(number, place, unit)

    def _unit(self, number: int, place: tuple[int, ...], unit: complex) -> Any:
        leaves = [np.zeros_like(leaf, subok=False) for leaf in self._spaces]
        leaves[number][place] = unit
        following = iter(leaves)
        return pb.map_leaves(lambda _: next(following)[()], self._like)

    def add(self, x: Any, y: Any) -> Any:
        """The sum x + y."""
        return pb.map_leaves(add, x, y)

    def mut_add(self, x: Any, y: Any) -> Any:
        """The sum x + y, where None stands for zero."""
        return y if x is None else self.add(x, y)

    def scalar_mul(self, x: Any, a: Any) -> Any:
        """The product a x."""
        return pb.map_leaves(lambda leaf: leaf * a, x)

    def inner_prod(self, x: Any, y: Any) -> Any:
        """The sum of the products, of complex numbers Re(conj(x) y)."""
        return reduce(add, map(_inner, leaves_of(x), leaves_of(y)), 0.0)

    def covector(self, x: Any) -> Any:
        """The conjugate: what a gradient of autograd's is to a vector."""
        return pb.map_leaves(np.conj, x)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VSpace) or len(self._spaces) != len(other._spaces):
            return False
        pairs = zip(self._spaces, other._spaces, strict=True)
        return all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs) and (
            str(pb.map_leaves(lambda _: 0, self._like)) == str(pb.map_leaves(lambda _: 0, other._like))
        )

    def __hash__(self) -> int:
        return hash(tuple((leaf.shape, leaf.dtype) for leaf in self._spaces))

    def __repr__(self) -> str:
        return f"VSpace({pb.map_leaves(lambda leaf: f'{leaf.dtype}{list(leaf.shape)}', self._like)})"


def _floating(x: Any) -> Any:
    """The array of a leaf, integers as the floats that their derivatives would be."""
    array = np.asarray(x)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"there is no vector space of {type(x).__name__}; pass numbers, arrays or structures of them")
    return array if array.dtype.kind in "fc" else array.astype(float)


def _drawn(like: Any) -> Any:
    draw = np.random.standard_normal  # programs seed this generator
    numbers = draw(like.shape) + 1j * draw(like.shape) if np.iscomplexobj(like) else draw(like.shape)
    return np.asarray(numbers, like.dtype)[()]


def _inner(x: Any, y: Any) -> Any:
    products = np.conj(x) * y
    return np.sum(np.real(products) if np.iscomplexobj(pb.value(products)) else products)


def vspace(value: Any) -> VSpace:
    """The vector space of a value."""
    return VSpace(value)


__all__ = ["VSpace", "vspace"]
