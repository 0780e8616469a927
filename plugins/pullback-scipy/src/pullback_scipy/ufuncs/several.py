"""Functions of scipy.special with several results: Fresnel's, sine and exponential integrals, Airy, Jacobi, Kelvin, and
parabolic cylinders.

Source: the NIST Digital Library of Mathematical Functions, 6.2, 7.2, 9.2, 10.61, 12.2, 22.13. By a parameter or an
order there is no rule.
"""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np
from scipy import special

import pullback as pb
from pullback_scipy.ufuncs.table import row


def weighed(ct: tuple[Any, ...], *slopes: Callable[[], Any]) -> Any:
    """The sum of each cotangent times the slope of its result; those of results that nobody used are not computed."""
    parts = [part * slope() for part, slope in zip(ct, slopes, strict=True) if part is not None]
    return sum(parts[1:], parts[0])


def rows(ufunc: Any, operands: str, outputs: str, **rules: Any) -> pb.Primitive:
    """One line of a table, as :func:`~pullback_scipy.ufuncs.table.row`, of a function with several results."""
    made: pb.Primitive = pb.primitive(
        ufunc,
        name=f"special.{ufunc.__name__}",
        operands=tuple(operands.split()),
        outputs=tuple(outputs.split()),
        guarded=False,
        serves=(ufunc,),
        vjps=rules,
    )
    return made


def _divided(y: Any, x: Any, at_zero: complex) -> Any:
    """The quotient y / x, which is ``at_zero`` where x is 0."""
    zero = x == 0
    return np.where(zero, at_zero, y / np.where(zero, 1.0, x))


# ------------------------------------------------------------------------------------------------------------ integrals
fresnel = rows(
    special.fresnel,
    "x",
    "s c",
    x=lambda ct, x: weighed(ct, lambda: np.sin(pi / 2 * x * x), lambda: np.cos(pi / 2 * x * x)),
)
sici = rows(
    special.sici,
    "x",
    "si ci",
    x=lambda ct, x: weighed(ct, lambda: np.sinc(x / pi), lambda: _divided(np.cos(x), x, np.inf)),
)
shichi = rows(
    special.shichi,
    "x",
    "shi chi",
    x=lambda ct, x: weighed(ct, lambda: special.hyp0f1(1.5, x * x / 4), lambda: _divided(np.cosh(x), x, np.inf)),
)
itj0y0 = rows(special.itj0y0, "x", "ij0 iy0", x=lambda ct, x: weighed(ct, lambda: special.j0(x), lambda: special.y0(x)))
iti0k0 = rows(special.iti0k0, "x", "ii0 ik0", x=lambda ct, x: weighed(ct, lambda: special.i0(x), lambda: special.k0(x)))

# ------------------------------------------------------------------------------- solutions of linear equations, and sn
airy = rows(
    special.airy,
    "x",
    "ai aip bi bip",
    x=lambda ct, x, ai, aip, bi, bip: weighed(ct, lambda: aip, lambda: x * ai, lambda: bip, lambda: x * bi),
)
ellipj = rows(
    special.ellipj,
    "u m",
    "sn cn dn ph",
    u=lambda ct, m, sn, cn, dn: weighed(ct, lambda: cn * dn, lambda: -sn * dn, lambda: -m * sn * cn, lambda: dn),
)
kelvin = rows(
    special.kelvin,
    "x",
    "be ke bep kep",
    x=lambda ct, x, be, ke, bep, kep: weighed(
        ct,
        lambda: bep,
        lambda: kep,
        lambda: 1j * be - _divided(bep, x, 0.5j),
        lambda: 1j * ke - _divided(kep, x, -np.inf),
    ),
)
ber = row(special.ber, x=lambda ct, x: ct * special.berp(x))
bei = row(special.bei, x=lambda ct, x: ct * special.beip(x))
ker = row(special.ker, x=lambda ct, x: ct * special.kerp(x))
kei = row(special.kei, x=lambda ct, x: ct * special.keip(x))
berp = row(special.berp, x=lambda ct, x, out: ct * -(special.bei(x) + _divided(out, x, 0.0)))
beip = row(special.beip, x=lambda ct, x, out: ct * (special.ber(x) - _divided(out, x, 0.5)))
kerp = row(special.kerp, x=lambda ct, x, out: ct * -(special.kei(x) + _divided(out, x, -np.inf)))
keip = row(special.keip, x=lambda ct, x, out: ct * (special.ker(x) - _divided(out, x, -np.inf)))


def _of_cylinder(v: Any, x: Any) -> Any:
    """The factor of the solution in the equation of parabolic cylinders."""
    return x * x / 4 - v - 0.5


pbdv = rows(
    special.pbdv, "v x", "d dp", x=lambda ct, v, x, d, dp: weighed(ct, lambda: dp, lambda: _of_cylinder(v, x) * d)
)
pbvv = rows(
    special.pbvv, "v x", "w wp", x=lambda ct, v, x, w, wp: weighed(ct, lambda: wp, lambda: _of_cylinder(v, x) * w)
)

SEVERAL = (
    fresnel, sici, shichi, itj0y0, iti0k0, airy, ellipj, kelvin, ber, bei, ker, kei, berp, beip, kerp, keip, pbdv, pbvv,
)  # fmt: skip
