"""Polynomials by their coefficients, the highest power first (``np.poly*``), or the lowest (``numpy.polynomial``).

``np.poly1d`` holds its coefficients as they are, tracers too. Where an argument is a ``poly1d``, so is the result, as
from NumPy.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import polynomial

from pullback.primitives.reducing.convolution import adjoint
from pullback.primitives.shaping.as_array import as_array, as_line
from pullback.primitives.shared.masked_arithmetic import over, times
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.rules.unbroadcast import unbroadcast
from pullback.words.specs import ArraySpec


def _coefficients(p: Any, otherwise: Callable[[Any], Any] = as_line) -> Any:
    return p.coeffs if isinstance(p, np.poly1d) else otherwise(p)


def _like(val: Any, *operands: Any) -> Any:
    """A ``poly1d`` where one of the operands is one."""
    return np.poly1d(val) if any(isinstance(p, np.poly1d) for p in operands) else val


def _behind(zeros: int, ct: Any) -> Any:
    """``ct`` behind zeros: the cotangent of leading coefficients that were dropped."""
    return np.concatenate((np.zeros(zeros, ct.dtype), ct)) if zeros else ct


# --------------------------------------------------------------------------------------------------------------- values
# Horner's scheme: sum_k c[k] x**k, each c[k] an array that broadcasts against x.
def _along(c: Any, numbers: Any) -> Any:
    """Numbers beside the first axis of ``c``."""
    return numbers.reshape((-1,) + (1,) * (len(c.shape) - 1))


def _to_coefficients(ct: Any, x: Any, c_spec: ArraySpec) -> list[Any]:
    """The cotangents of c[0], c[1], ...: ct times the powers of x."""
    cts, shape = [], c_spec.shape[1:]
    for _ in range(c_spec.shape[0]):
        cts.append(unbroadcast(ct, shape))
        ct = ct * x
    return cts


power_series: Primitive = primitive(
    lambda x, c: polynomial.polyval(x, c, tensor=False),
    name="power_series",
    linear=("c",),
    vjps={
        "x": lambda ct, x, c: ct * (np.polyval((c[1:] * _along(c, np.arange(1, c.shape[0])))[::-1], x)),
        "c": lambda ct, x, c_spec: np.stack(_to_coefficients(ct, x, c_spec)),
    },
)
horner: Primitive = primitive(
    lambda p, x: np.polyval(p, x),  # noqa: PLW0108 - the name is the operand's
    name="horner",
    linear=("p",),
    vjps={
        "p": lambda ct, x, p_spec: (
            np.stack(_to_coefficients(ct, x, p_spec)[::-1]) if p_spec.size else np.zeros(p_spec.shape)
        ),
        "x": lambda ct, p, x: ct * np.polyval(p[:-1] * _along(p, np.arange(p.shape[0] - 1, 0, -1)), x),
    },
)


@composite(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """numpy.polyval."""
    p = _coefficients(p, as_array)
    if not isinstance(x, np.poly1d):
        return horner(p, as_array(x))
    y: Any = 0
    for coefficient in p:
        y = y * x + coefficient
    return y


@composite(polynomial.polyval2d)
def polyval2d(x: Any, y: Any, c: Any) -> Any:
    """numpy.polynomial.polynomial.polyval2d: values at the points (x, y)."""
    x, y, c = as_array(x), as_array(y), as_line(c)
    if x.shape != y.shape:
        raise ValueError(f"polyval2d: x, y are incompatible, of shapes {x.shape} and {y.shape}")
    return power_series(y, power_series(x, c.reshape(c.shape + (1,) * x.ndim)))


@composite(polynomial.polygrid2d)
def polygrid2d(x: Any, y: Any, c: Any) -> Any:
    """numpy.polynomial.polynomial.polygrid2d: values on the grid of x by y."""
    c = as_line(c)
    for points in (as_array(x), as_array(y)):
        c = power_series(points, c.reshape(c.shape + (1,) * points.ndim))
    return c


# ----------------------------------------------------------------------------------------------------------- arithmetic
def _aligned(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Two polynomials with as many coefficients as the longer one has."""
    a1, a2 = _coefficients(a1), _coefficients(a2)
    longer = a2.shape[0] - a1.shape[0]
    if longer > 0:
        a1 = np.concatenate((np.zeros(longer, a1.dtype), a1))
    elif longer < 0:
        a2 = np.concatenate((np.zeros(-longer, a2.dtype), a2))
    return a1, a2


@composite(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """numpy.polyadd."""
    return _like(np.add(*_aligned(a1, a2)), a1, a2)


@composite(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """numpy.polysub."""
    return _like(np.subtract(*_aligned(a1, a2)), a1, a2)


def _product_rule(ct: Any, other: Any, own: int) -> Any:
    """NumPy drops leading zeros first. The other coefficients depend on the dropped ones all the same."""
    length = own + other.shape[0] - 1
    return adjoint(_behind(length - ct.shape[0], ct), other, own, 0)


multiply_polynomials = primitive(
    lambda a1, a2: np.polymul(a1, a2),  # noqa: PLW0108 - the names are the operands'
    name="multiply_polynomials",
    vjps={
        "a1": lambda ct, a2, a1_spec: _product_rule(ct, a2, a1_spec.size),
        "a2": lambda ct, a1, a2_spec: _product_rule(ct, a1, a2_spec.size),
    },
)


@composite(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """numpy.polymul."""
    return _like(multiply_polynomials(_coefficients(a1), _coefficients(a2)), a1, a2)


# u = q v + r. The leading coefficients of u alone determine q, by a triangular system whose transpose is again a
# division by v.
divide_polynomials = primitive(
    lambda u, v: np.polydiv(u, v),  # noqa: PLW0108 - the names are the operands'
    name="divide_polynomials",
    outputs=("q", "r"),
)


@divide_polynomials.vjp("u", "v")  # type: ignore[untyped-decorator]
def _division_rule(ct: Any, v: Any, q: Any, u_spec: ArraySpec, v_spec: ArraySpec, r_spec: ArraySpec) -> tuple[Any, Any]:
    ct_q, ct_r = ct
    quotients = u_spec.size - v_spec.size + 1
    ct_u = np.zeros(u_spec.shape, v.dtype) if ct_r is None else _behind(u_spec.size - r_spec.size, ct_r)
    if quotients < 1:
        return ct_u, 0 * v
    wanted = -adjoint(ct_u, v, quotients, 0)
    wanted = wanted if ct_q is None else wanted + ct_q
    solved = np.polydiv(np.concatenate((wanted[::-1], np.zeros(v_spec.size - 1, wanted.dtype))), v)[0][::-1]
    behind = np.zeros(v_spec.size - 1, solved.dtype)
    ct_u = ct_u + np.concatenate((solved, behind))  # now the cotangent of q v + r: r is what is left of u
    return ct_u, -adjoint(ct_u, q, v_spec.size, 0)


@composite(np.polydiv)
def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    """numpy.polydiv: quotient and remainder."""
    q, r = divide_polynomials(_coefficients(u), _coefficients(v))
    return _like(q, u, v), _like(r, u, v)


# ---------------------------------------------------------------------------------------------- derivative and integral
@composite(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """numpy.polyder."""
    if int(m) < 0:
        raise ValueError(f"np.polyder(m={m}): the order must not be negative; np.polyint integrates")
    val = _coefficients(p, as_array)
    for _ in range(int(m)):
        val = val[:-1] * np.arange(val.shape[0] - 1, 0, -1)
    return _like(val, p)


@composite(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """numpy.polyint; the constants ``k`` may be traced beside ``p``."""
    m = int(m)
    if m < 0:
        raise ValueError(f"np.polyint(m={m}): the order must not be negative; np.polyder differentiates")
    k = np.zeros(m) if k is None else as_line(k)
    k = k[0] * np.ones(m) if k.shape[0] == 1 and m > 1 else k
    if k.shape[0] < m:
        raise ValueError(f"np.polyint got {k.shape[0]} constants for {m} integrals; pass one, or at least {m}")
    val = _coefficients(p, as_array)
    for step in range(m):
        val = np.concatenate((val / np.arange(val.shape[0], 0, -1), k[step : step + 1]))
    return _like(val, p)


# ---------------------------------------------------------------------------------------------- from roots, and to them
def _from_roots_rule(ct: Any, z: Any) -> Any:
    """Factor by factor backwards: c' = (c, 0) - z (0, c). What stands before each factor is multiplied out once
    more."""
    before = [np.ones(1, z.dtype)]
    for root in z[:-1]:
        before.append(np.convolve(before[-1], np.stack((np.ones((), z.dtype), -root))))
    cts = []
    for c, root in zip(reversed(before), z[::-1], strict=True):
        cts.append(-np.sum(ct[1:] * c))
        ct = ct[:-1] - root * ct[1:]
    return np.stack(cts[::-1])


from_roots = primitive(
    lambda z: np.poly(z),  # noqa: PLW0108 - the name is the operand's
    name="polynomial_from_roots",
    vjps={"z": _from_roots_rule},
)


@composite(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """numpy.poly; the characteristic polynomial of a matrix through numpy.linalg.eigvals, which pullback-linalg
    serves."""
    z = as_line(seq_of_zeros)
    if z.ndim == 2 and z.shape[0] == z.shape[1] != 0:
        z = np.linalg.eigvals(z)
    return from_roots(z)


def _roots_rule(ct: Any, p: Any, out: Any, p_spec: ArraySpec) -> Any:
    """The implicit function theorem: p(r) = 0 stays, so r moves by -r**k / p'(r) with the coefficient of the power k.

    At a multiple root this is infinite, as the true slope is.
    """
    each = over(ct, -np.polyval(np.polyder(p), out))
    return np.sum(times(each[:, None], np.vander(out, p_spec.size)), axis=0)


roots_of = primitive(
    lambda p: np.roots(p),  # noqa: PLW0108 - the name is the operand's
    name="roots_of_polynomial",
    vjps={"p": _roots_rule},
)


@composite(np.roots)
def roots(p: Any) -> Any:
    """numpy.roots."""
    return roots_of(_coefficients(p))


POLYNOMIALS: tuple[Primitive | Composite, ...] = (
    power_series, horner, polyval, polyval2d, polygrid2d, polyadd, polysub, multiply_polynomials, polymul,
    divide_polynomials, polydiv,
    polyder, polyint, from_roots, poly, roots_of, roots,
)  # fmt: skip
