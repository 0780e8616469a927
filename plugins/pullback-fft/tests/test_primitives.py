"""Every primitive of the plugin, with operands of every length, dtype and option it takes, by pullback's own
checker."""

from typing import Any

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback_fft import PRIMITIVES
from pullback_fft.lines import line_fft, line_hfft, line_ifft, line_ihfft, line_irfft, line_rfft


@frozen
class Case:
    """A primitive with its operand and parameters for check_primitive."""

    name: str
    primitive: Any
    x: Any
    params: dict[str, Any]


REAL, COMPLEX = ("f8", "f4"), ("c16", "c8")
BOTH = REAL + COMPLEX
TAKES = {line_fft: BOTH, line_ifft: BOTH, line_rfft: REAL, line_ihfft: REAL, line_irfft: BOTH, line_hfft: BOTH}


def array(*shape: int, dtype: str = "f8") -> Any:
    """Normal numbers of a shape and dtype."""
    rng = np.random.default_rng(shape)
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if dtype[0] == "c" else x).astype(dtype)


def _cases(primitive: Any, dtypes: tuple[str, ...]) -> list[Case]:
    # Lengths n below, at and above that of the line, and for irfft and hfft below, at and above the n // 2 + 1 that
    # they read.
    lengths = ((5, 5), (6, 6), (5, 3), (5, 4), (4, 7), (4, 8), (3, 1), (1, 2), (1, 1))
    rows = [((m,), n, -1, None, dtypes[0]) for m, n in lengths]
    rows += [((m,), n, -1, norm, dtypes[0]) for norm in ("backward", "ortho", "forward") for m, n in lengths[3:5]]
    rows += [((5,), n, 0, "ortho", dtypes[-1]) for n in (8, 9, 11)]
    rows += [((4, 3), n, axis, None, dtypes[0]) for axis, n in ((0, 3), (0, 6), (-1, 3), (-2, 6))]
    rows += [
        ((2, 4, 3), 5, 1, "forward", dtypes[-1]),
        ((0, 3), 4, -1, None, dtypes[0]),
        ((3, 0, 2), 2, 0, "ortho", dtypes[-1]),
    ]
    rows += [((4, 3), 4, 0, "ortho", dtype) for dtype in dtypes]
    made = []
    for shape, n, axis, norm, kind in rows:
        name = f"{primitive.name} {shape} {n} {axis} {norm} {kind}"
        made.append(Case(name, primitive, array(*shape, dtype=kind), {"n": n, "axis": axis, "norm": norm}))
    return made


CASES = tuple(case for primitive, dtypes in TAKES.items() for case in _cases(primitive, dtypes))


@pytest.mark.share(6)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_declaration_is_right(case):
    pb.testing.check_primitive(case.primitive, case.x, **case.params)


def test_every_primitive_has_a_case():
    declared = {entry.name for entry in PRIMITIVES if isinstance(entry, pb.Primitive)}
    assert declared == {case.primitive.name for case in CASES}
