"""Conformance cases of polynomials."""

import numpy as np
from tests.primitives.case import Case, since

RNG = np.random.default_rng(5)
P, Q = np.array([1.5, -0.7, 2.1, 0.4]), np.array([0.8, -1.3, 0.6])
COMPLEX = RNG.normal(size=4) + 1j * RNG.normal(size=4)
X, PLANE = RNG.normal(size=5), RNG.normal(size=(2, 3))
STEP = np.array(0.3)
BOTH = ("float32", "float64")
ALL = ("float16", "float32", "float64", "longdouble")

VALUES: tuple[Case, ...] = (
    Case("polyval", np.polyval, (P, PLANE), ("polyval", "horner"), dtypes=ALL),
    Case("polyval at a number", lambda p: np.polyval(p, 2.0), (P,), ("polyval",), dtypes=BOTH),
    Case("polyval of a list", lambda x: np.polyval([3, 0, 1], x), (X,), ("polyval",), dtypes=BOTH),
    Case("polyval at a list", lambda p: np.polyval(p, [0.0, 2, 1]), (P,), ("polyval",)),
    Case("polyval at integers", lambda p: np.polyval(p, [0, 2, 1]), (P,), ("polyval",), dtypes=BOTH),
    Case("polyval of a constant", np.polyval, (P[:1], X), ("polyval",)),
    Case("polyval of nothing", np.polyval, (P[:0], X), ("polyval",)),
    Case("polyval of rows", np.polyval, (RNG.normal(size=(3, 2, 1)), X), ("polyval",)),
    Case("polyval complex", np.polyval, (COMPLEX, X), ("polyval",), dtypes=BOTH),
    Case(
        "polyval of poly1d",
        lambda p, x: np.polyval(np.poly1d([1.0, 2.0, 0.5]), x) + np.polyval(p, x),
        (P, X),
        ("polyval",),
    ),
    *since(
        "2.4.0",  # before, NumPy does not ask a tracer
        Case(
            "polyval2d",
            np.polynomial.polynomial.polyval2d,
            (PLANE, PLANE[::-1] + 1, RNG.normal(size=(3, 4))),
            ("polyval2d", "power_series"),
            dtypes=BOTH,
        ),
        Case(
            "polyval2d, more axes",
            np.polynomial.polynomial.polyval2d,
            (X, X * X, RNG.normal(size=(2, 3, 2))),
            ("polyval2d",),
        ),
        Case(
            "polyval2d of a list",
            lambda x: np.polynomial.polynomial.polyval2d(x, 2.0, [[1, 2], [3, 4]]),
            (STEP,),
            ("polyval2d",),
        ),
        Case(
            "polygrid2d",
            np.polynomial.polynomial.polygrid2d,
            (X, PLANE, RNG.normal(size=(3, 4))),
            ("polygrid2d",),
            dtypes=BOTH,
        ),
        Case(
            "polygrid2d of integers",
            lambda x, y: np.polynomial.polynomial.polygrid2d(x, y, [[1, 2], [3, 4]]),
            (X, STEP),
            ("polygrid2d",),
        ),
    ),
)

ARITHMETIC: tuple[Case, ...] = (
    *(
        Case(f"{f.__name__} {name}", f, args, (f.__name__,), dtypes=BOTH)
        for f in (np.polyadd, np.polysub, np.polymul)
        for name, args in (
            ("longer", (P, Q)),
            ("shorter", (Q, P)),
            ("equal", (Q, Q * Q)),
            ("number", (P, STEP)),
            ("complex", (COMPLEX, Q)),
        )
    ),
    *(
        Case(f"{f.__name__} a list", lambda p, f=f: f([1, 2], p), (P,), (f.__name__,))
        for f in (np.polyadd, np.polysub, np.polymul)
    ),
    Case("polymul of itself", lambda p: np.polymul(p, p), (P,), ("multiply_polynomials",), dtypes=ALL),
    Case("polydiv", np.polydiv, (P, Q), ("polydiv", "divide_polynomials")),
    Case("polydiv, by a line", np.polydiv, (P, Q[:2]), ("polydiv",)),
    Case(
        "polydiv in single precision", np.polydiv, (P, Q), ("polydiv",), rough="rounding", dtypes=BOTH
    ),  # which decides the length of r
    Case("polydiv, by a number", np.polydiv, (P, Q[:1]), ("polydiv",)),
    Case("polydiv, quotient alone", lambda u, v: np.polydiv(u, v)[0], (P, Q[:2]), ("polydiv",)),
    Case("polydiv, remainder alone", lambda u, v: np.polydiv(u, v)[1], (np.append(P, X), Q), ("polydiv",)),
    Case("polydiv, by a longer one", np.polydiv, (Q, P), ("polydiv",)),
    Case("polydiv complex", np.polydiv, (COMPLEX, Q), ("polydiv",)),
    Case("polydiv of a list", lambda v: np.polydiv([1, 2, 3, 4], v), (Q,), ("polydiv",)),
    *(Case(f"polyder, m={m}", lambda p, m=m: np.polyder(p, m), (P,), ("polyder",), dtypes=BOTH) for m in (0, 1, 2, 5)),
    *(Case(f"polyint, m={m}", lambda p, m=m: np.polyint(p, m), (P,), ("polyint",), dtypes=BOTH) for m in (0, 1, 3)),
    Case("polyint, constants", lambda p, k: np.polyint(p, 2, k), (P, Q), ("polyint",), dtypes=BOTH),
    Case("polyint, one constant", lambda p, k: np.polyint(p, m=2, k=k), (P, STEP), ("polyint",), dtypes=BOTH),
    Case("polyint, a list of constants", lambda p: np.polyint(p, 2, [1, 2]), (P,), ("polyint",)),
)

ROOTS: tuple[Case, ...] = (
    Case("poly", np.poly, (X,), ("poly", "polynomial_from_roots"), dtypes=ALL),
    Case("poly of equal roots", np.poly, (np.array([1.0, 1.0, 0.0, 0.0]),), ("poly",), dtypes=BOTH),
    Case("poly of one", np.poly, (X[:1],), ("poly",)),
    Case("poly of a number", lambda x: np.poly(np.reshape(x, 1)), (STEP,), ("poly",)),
    Case("poly complex", np.poly, (COMPLEX,), ("poly",), dtypes=BOTH),
    Case(
        "poly of conjugates", lambda z: np.poly(np.stack([z, np.conj(z)])), (np.array(1 + 2j),), ("poly",), dtypes=BOTH
    ),
    Case("roots, real", np.roots, (np.array([1.0, -2.0, -5.0, 6.0]),), ("roots", "roots_of_polynomial"), dtypes=BOTH),
    Case("roots, pairs", np.roots, (np.array([1.0, 0.3, 2.0, 1.1, 0.7]),), ("roots",), dtypes=BOTH),
    Case("roots complex", np.roots, (COMPLEX,), ("roots",), dtypes=BOTH),
    Case("roots of a line", np.roots, (P[:2],), ("roots",)),
    Case("roots of a constant", lambda p: (p * 2, np.roots(p)), (P[:1],), ("roots",)),
    Case("roots at 0", np.roots, (np.array([1.0, -3.0, 2.0, 0.0]),), ("roots",)),
    Case("roots, leading zero", np.roots, (np.array([0.0, 1.0, -3.0, 2.0]),), ("roots",), rough="jump"),
)


CASES: tuple[Case, ...] = (
    *VALUES,
    *ARITHMETIC,
    *ROOTS,
)
