"""Conformance cases of numpy.emath, with every element inside, some outside and all on complex ground."""

import numpy as np
from tests.primitives.case import Case

INSIDE, MIXED = np.array([[0.3, 0.7], [0.2, 0.9]]), np.array([[-1.7, 0.6], [2.3, -0.4]])
PLANE = MIXED + 1j * INSIDE
CUT = np.array([-1.5 + 0j, 0.5 + 0.5j, 2.0 + 0j])
BOTH = ("float32", "float64")
BASES = np.array([2.0, 10.0])
emath = np.emath

UNARY: tuple[Case, ...] = tuple(
    Case(f"emath.{name} {which}", getattr(emath, name), (x,), (f"emath.{name}", f"complex_{name}"), rough, dtypes=BOTH)
    for name in "sqrt log log2 log10 arccos arcsin arctanh".split()
    for which, x, rough in (
        *(("inside", INSIDE, ""), ("outside", MIXED, ""), ("complex", PLANE, "")),
        *(("on a cut", CUT, "jump"), ("of one number", MIXED[0, 0], "")),
    )
)
POWER = ("emath.power", "complex_power")
BINARY: tuple[Case, ...] = (
    Case("emath.logn", lambda x: emath.logn(2, x), (INSIDE,), ("emath.logn",), dtypes=BOTH),
    Case("emath.logn, both", emath.logn, (BASES, MIXED), ("emath.logn",), dtypes=BOTH),
    Case("emath.logn, negative base", lambda n: emath.logn(n, [3.0, 0.5]), (MIXED,), ("emath.logn",)),
    Case("emath.logn by keyword", lambda x: emath.logn(x=x, n=10.0), (MIXED,), ("emath.logn",)),
    Case("emath.power", emath.power, (INSIDE, MIXED), POWER, dtypes=BOTH),
    Case("emath.power outside", emath.power, (MIXED, INSIDE), POWER, dtypes=BOTH),
    Case("emath.power, integer exponent", lambda x: emath.power(x, [2, 3]), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power, negative integers", lambda x: emath.power(x, np.array([-2, 3])), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power of whole numbers", lambda p: emath.power([[-2, 3], [4, -5]], p), (MIXED,), POWER, dtypes=BOTH),
    Case("emath.power complex", emath.power, (PLANE, MIXED), POWER),
    Case("emath.power, complex exponent", emath.power, (MIXED, PLANE), POWER),
    Case("emath.power broadcast", emath.power, (MIXED, INSIDE[0]), POWER),
    Case("emath.power by keyword", lambda p: emath.power(x=MIXED, p=p), (INSIDE,), POWER),
)
EDGE: tuple[Case, ...] = tuple(
    Case(
        f"emath.{name} at the edge",
        getattr(emath, name),
        (np.array([-1.0, 0.0, 1.0, 2.0]),),
        (f"emath.{name}",),
        rough="pole",
    )
    for name in "sqrt log log2 log10 arccos arcsin arctanh".split()
)


CASES: tuple[Case, ...] = (
    *UNARY,
    *BINARY,
    *EDGE,
)
