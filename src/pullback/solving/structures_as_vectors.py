"""Structures as vectors, for programs that work on vectors: ``ravel``, and ``fun_and_grad`` for SciPy's optimisers."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from attrs import field, frozen

from pullback.policies.base import PolicyOrAuto
from pullback.recording.handles import Handle
from pullback.transforms.derivatives.forward import jvp
from pullback.transforms.derivatives.reverse import grad, value_and_grad
from pullback.words.call_sites import public
from pullback.words.errors import StructureError
from pullback.words.foreign_operands import foreign_argument, plain_array
from pullback.words.specs import ArraySpec, carries_derivative, spec_of
from pullback.words.structures import flatten, matched, paths, unflatten

FLOAT64 = np.dtype(np.float64)


class Ravelled(NamedTuple):
    """What :func:`ravel` returns: the vector, and the function that makes the structure of it again."""

    vector: Any
    unravel: "VectorLayout"


@frozen
class LeafPlace:
    """Where one leaf lies in the vector: from ``start`` to ``stop``. ``number`` marks a Python number, which has no
    dtype of its own."""

    label: str
    spec: ArraySpec
    start: int
    stop: int
    number: bool

    def __str__(self) -> str:
        return f"{self.label or 'vector'}: {self.spec} at {self.start}:{self.stop}"


@frozen(eq=False, repr=False)
class VectorLayout:
    """How a structure lies in a vector: a function from a vector of ``size`` places and ``dtype`` to the structure.

    Each leaf is a copy, of its own shape and dtype; a leaf that is a Python number comes back as one. Leaves that carry
    no derivative (integers, booleans, text) are those of the structure that was ravelled. The vector may be a tracer;
    then the leaves are, too. Where ``real``, a complex leaf takes two places for each element, real part and imaginary
    part. A real leaf in a complex vector is the real part of its places. Raises :class:`StructureError` for a vector of
    another length, or a complex one where all leaves are real.
    """

    places: tuple[LeafPlace | None, ...]
    size: int
    dtype: Any
    real: bool
    definition: Any
    constants: tuple[Any, ...]
    """Leaves that carry no derivative; None at the places of the others."""

    def __reduce__(self) -> Any:
        # A definition cannot be read where a class in it has not been seen yet: a structure of that form can.
        form = unflatten(self.definition, [0] * len(self.places))
        return _layout_again, (self.places, self.size, self.dtype, self.real, form, self.constants)

    def __repr__(self) -> str:
        return f"Layout({self.dtype}[{self.size}]: {self._listed()})"

    def __call__(self, vector: Any) -> Any:
        whole: Any = vector if isinstance(vector, Handle) else np.asarray(vector)
        kinds = "fciub" if self.dtype.kind == "c" else "fiub"
        if whole.shape != (self.size,) or whole.dtype.kind not in kinds:
            raise StructureError(
                f"unravel got {spec_of(whole)}, the structure takes {self.dtype}[{self.size}] ({self._listed()}); "
                "give a vector such as ravel returned"
            )
        leaves = [
            constant if place is None else self._leaf(whole[place.start : place.stop], place)
            for place, constant in zip(self.places, self.constants, strict=True)
        ]
        return unflatten(self.definition, leaves)

    def _leaf(self, part: Any, place: LeafPlace) -> Any:
        dtype = place.spec.dtype
        if self.real and dtype.kind == "c":
            # Not re + 1j * im for plain arrays: an infinite part would make the other one NaN.
            part = (
                np.array(part, FLOAT64).view(np.complex128)
                if isinstance(part, np.ndarray)
                else part[::2] + 1j * part[1::2]
            )
        if part.dtype.kind == "c" and dtype.kind != "c":
            part = part.real
        leaf = part.astype(dtype).reshape(place.spec.shape)
        if isinstance(leaf, Handle):
            return leaf
        return leaf.item() if place.number else leaf

    def ravel(self, tree: Any) -> Any:
        """A vector of this layout from another structure of the same form; raises :class:`StructureError` for a
        different one."""
        leaves = matched(tree, self.definition)
        if leaves is None:
            raise StructureError(
                f"the structure {flatten(tree)[1]} is to be ravelled as {self.definition}; give one of the same form"
            )
        return self.joined(leaves)

    def joined(self, leaves: list[Any]) -> Any:
        """The vector of these leaves, which shares memory with none of them. None stands for zeros."""
        parts = []
        for leaf, place in zip(leaves, self.places, strict=True):
            if place is None:
                continue
            part = np.zeros(place.spec.shape, place.spec.dtype) if leaf is None else leaf
            if isinstance(part, np.ndarray) and type(part) is not np.ndarray:
                part = plain_array(part)
            if spec_of(part).shape != place.spec.shape:
                raise StructureError(
                    f"the leaf {place.label or 'given'} is {spec_of(part)}, in the structure that was ravelled "
                    f"it is {place.spec}"
                )
            parts.append(self._part(part, place))
        return np.concatenate(parts) if parts else np.zeros(0, self.dtype)

    def _part(self, leaf: Any, place: LeafPlace) -> Any:
        if not self.real or place.spec.dtype.kind != "c":
            return np.reshape(leaf, -1).astype(self.dtype)
        return np.array(leaf, np.complex128).reshape(-1).view(np.float64)

    def _listed(self) -> str:
        places = [str(place) for place in self.places if place is not None]
        return (
            "; ".join([*places[:6], f"{len(places) - 6} more"] if len(places) > 6 else places)
            or "no leaf carries a derivative"
        )


def _layout_again(places: Any, size: int, dtype: Any, real: bool, form: Any, constants: Any) -> VectorLayout:
    return VectorLayout(places, size, dtype, real, flatten(form)[1], constants)


def layout_of(tree: Any, *, real: bool) -> VectorLayout:
    """The layout of a structure: its leaves one behind the other, each in C order."""
    leaves, definition = flatten(tree)
    for leaf, label in zip(leaves, paths(tree), strict=True):
        foreign = None if isinstance(leaf, Handle) else foreign_argument(leaf)
        if foreign is not None:
            raise StructureError(f"the leaf {label or 'given'} of type {foreign}")
    specs = [spec_of(leaf) if carries_derivative(leaf) else None for leaf in leaves]
    dtypes = [spec.dtype for spec in specs if spec is not None]
    dtype = FLOAT64 if real or not dtypes else np.result_type(*dtypes)
    places: list[LeafPlace | None] = []
    stop = 0
    for leaf, label, spec in zip(leaves, paths(tree), specs, strict=True):
        if spec is None:
            places.append(None)
            continue
        start, stop = stop, stop + spec.size * (2 if real and spec.dtype.kind == "c" else 1)
        number = getattr(leaf, "dtype", None) is None or (
            isinstance(leaf, Handle) and type(leaf._value) in {float, complex}
        )
        places.append(LeafPlace(label, spec, start, stop, number))
    constants = tuple(leaf if spec is None else None for leaf, spec in zip(leaves, specs, strict=True))
    return VectorLayout(tuple(places), stop, dtype, real, definition, constants)


def ravel(tree: Any) -> Ravelled:
    """``(vector, unravel)``: the floating and complex leaves of a structure as one vector, and the function that undoes
    it.

    Both work on tracers, hence inside a function that is differentiated.

    Parameters
    ----------
    tree
        Any structure. Leaves without a derivative (integers, booleans, text) are no part of the vector; ``unravel``
        gives them back as they are.

    Returns
    -------
    The vector is new memory, one-dimensional, of the dtype that the leaves promote to (a Python float counts as
    float64); ``unravel(vector)`` has the structure, shapes and dtypes of ``tree``.

    Raises
    ------
    StructureError
        By ``unravel``, for a vector of another length or shape, and for a complex one where all leaves are real.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> vector, unravel = pb.ravel({"a": 1.0, "b": np.array([2.0, 3.0])})
    >>> vector
    array([1., 2., 3.])
    >>> unravel(2 * vector)["b"]
    array([4., 6.])
    """
    layout = layout_of(tree, real=False)
    return Ravelled(layout.ravel(tree), layout)


def fun_and_grad(f: Callable[..., Any], like: Any, *, policy: PolicyOrAuto = None) -> "Objective":
    """The function of a vector that ``scipy.optimize.minimize(fun, fun.x0, jac=True)`` takes: ``fun(x)`` is
    ``(value, gradient)``.

    Parameters
    ----------
    f
        ``f(params, *args)`` returns a real scalar.
    like
        A structure of the form of ``params``, and the starting point ``fun.x0``.
    policy
        That of the gradient (default: the policy in force).

    Returns
    -------
    An :class:`Objective`, whose ``unravel`` gives back the structure of a vector.

    Raises
    ------
    StructureError
        Where ``like`` has no leaf that carries a derivative.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> fun = pb.fun_and_grad(lambda p: p["a"] ** 2 + np.sum(p["b"]), {"a": 3.0, "b": np.zeros(2)})
    >>> value, gradient = fun(fun.x0)
    >>> float(value), gradient.tolist()
    (9.0, [6.0, 1.0, 1.0])
    """
    layout = layout_of(like, real=True)
    if not layout.size:
        raise StructureError(
            f"fun_and_grad: no leaf of like={layout.definition} carries a derivative; give floating parameters "
            "(1.0, not 1)"
        )
    return Objective(f, policy, layout, layout.ravel(like))


@frozen(eq=False)
class Objective:
    """A function of parameters as SciPy's optimisers want it: of a float64 vector, with its gradient and Hessian as
    float64 arrays.

    ``fun(x, *args)``  ``(value, gradient)``: a float and a new contiguous vector of the length of ``x``.
    ``fun.x0``         the vector of the parameters given as ``like``; a new copy each time.
    ``fun.unravel(x)`` the parameters at ``x``; ``fun.ravel(params)`` the vector of others of the same form.
    ``fun.hessp(x, p, *args)``, ``fun.hess(x, *args)``  the Hessian times ``p``, and the Hessian.

    ``f`` sees the structure, shapes and dtypes of ``like``. A complex parameter takes two places for each element, real
    part and imaginary part; its gradient are the derivatives by both. Raises :class:`StructureError` for a vector of
    another length.
    """

    f: Callable[..., Any]
    policy: Any
    unravel: VectorLayout
    _x0: Any = field(repr=False)

    @property
    def x0(self) -> Any:
        """The vector of the parameters given as ``like``: float64, a copy."""
        return self._x0.copy()

    def ravel(self, params: Any) -> Any:
        """The vector of parameters of the same form; raises :class:`StructureError` for another form."""
        return self.unravel.ravel(params)

    @public
    def __call__(self, x: Any, *args: Any) -> tuple[float, Any]:
        value, gradient = value_and_grad(self.f, policy=self.policy, allow_int=True)(self.unravel(x), *args)
        return float(value), self._vector(gradient)

    @public
    def hessp(self, x: Any, p: Any, *args: Any) -> Any:
        """The Hessian at ``x`` times ``p``: forward over reverse, hence no more memory than a gradient under its
        policy takes."""
        slope = grad(self.f, policy=self.policy, allow_int=True)
        primal, tangent = self.unravel(x), self.unravel(p)
        _, change = jvp(lambda params: slope(params, *args), (primal,), (tangent,))
        return self._vector(change)

    @public
    def hess(self, x: Any, *args: Any) -> Any:
        """The Hessian at ``x``, a square array: one ``hessp`` for each column."""
        return np.stack([self.hessp(x, unit, *args) for unit in np.eye(self.unravel.size)], axis=1)

    def _vector(self, gradient: Any) -> Any:
        # The gradient of a complex leaf is df/dx - i df/dy: its conjugate holds the two derivatives as they lie in the
        # vector.
        leaves = matched(gradient, self.unravel.definition)
        assert leaves is not None, "a gradient has the structure of its argument"
        return self.unravel.joined([None if leaf is None else np.conjugate(leaf) for leaf in leaves])
