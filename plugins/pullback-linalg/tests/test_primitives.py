"""Every primitive of the plugin, with operands of every shape, dtype and option it takes, by pullback's own checker."""

from typing import Any

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback_linalg import PRIMITIVES
from pullback_linalg.contractions import CONTRACTIONS, dot, inner, tensordot
from pullback_linalg.einsum import EINSUM as EINSUMS
from pullback_linalg.einsum import einsum_many, einsum_one, einsum_two, on_diagonal
from pullback_linalg.products import PRODUCTS, matmul, matvec, vdot, vecdot, vecmat
from pullback_linalg.solve import SOLVES, factor, solve_again, solve_by_factors, solve_kept, substitute


@frozen
class Case:
    """A primitive with operands and parameters for check_primitive."""

    name: str
    primitive: Any
    operands: tuple[Any, ...]
    params: dict[str, Any]


def array(*shape: int, dtype: Any = np.float64, seed: int = 0) -> Any:
    """Normal numbers of a shape and dtype."""
    rng = np.random.default_rng([seed, *shape])
    x = rng.normal(size=shape)
    return np.asarray(x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def system(*shape: int, dtype: Any = np.float64) -> Any:
    """A matrix, or a stack of them, that is far from singular and from symmetric."""
    return (array(*shape, dtype=dtype, seed=3) + 4 * np.eye(shape[-1])).astype(dtype)


def _pairs(primitive: Any, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]], **params: Any) -> list[Case]:
    return [
        Case(f"{primitive.name} {x} {y} {params or ''}", primitive, (array(*x), array(*y, seed=1)), params)
        for x, y in pairs
    ]


def _kinds(primitive: Any, x: tuple[int, ...], y: tuple[int, ...], **params: Any) -> list[Case]:
    kinds = (
        ("f4", "f4"),
        ("c16", "c16"),
        ("c8", "c8"),
        ("f8", "c16"),
        ("c16", "f8"),
        ("f4", "f8"),
        ("i8", "f8"),
        ("f8", "i8"),
    )
    return [
        Case(f"{primitive.name} {x} {y} {a},{b}", primitive, (array(*x, dtype=a), array(*y, dtype=b, seed=1)), params)
        for a, b in kinds
    ]


MATMUL = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)),
    ((5, 2, 3), (5, 3, 4)),
    ((5, 2, 3), (3,)), ((3,), (5, 3, 4)), ((2, 1, 2, 3), (3, 3, 2)), ((1, 2, 3), (4, 3, 2)), ((4, 2, 3), (1, 3, 2)),
    ((2, 2, 2, 3), (3, 1)),
    ((2, 0), (0, 3)), ((0,), (0,)), ((0, 3), (3, 2)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 2)), ((2, 3), (0, 3, 2)),
    ((1, 1), (1, 1)),
]  # fmt: skip
DOT = [
    ((), ()), ((), (3,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)),
    ((3,), (2, 3, 4)),
    ((2, 4, 3), (3,)), ((2, 4, 3), (3, 2)), ((2, 3), (4, 3, 2)), ((2, 2, 3), (2, 2, 3, 2)), ((2, 0), (0, 3)),
    ((0,), (2, 0, 3)),
]  # fmt: skip
INNER = [
    ((), ()), ((), (3,)), ((2, 3), ()), ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (4, 3)),
    ((2, 2, 3), (4, 2, 3)),
    ((2, 0), (3, 0)),
]  # fmt: skip
VECDOT = [((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((4, 1, 3), (2, 3)), ((0,), (0,)), ((2, 0), (0,))]
MATVEC = [
    ((2, 3), (3,)),
    ((4, 2, 3), (3,)),
    ((2, 3), (4, 3)),
    ((4, 2, 3), (4, 3)),
    ((2, 1, 2, 3), (4, 3)),
    ((2, 0), (0,)),
    ((0, 3), (3,)),
]
VECMAT = [
    ((3,), (3, 2)),
    ((3,), (4, 3, 2)),
    ((4, 3), (3, 2)),
    ((4, 3), (4, 3, 2)),
    ((4, 3), (2, 1, 3, 2)),
    ((0,), (0, 2)),
    ((3,), (3, 0)),
]
VDOT = [((3,), (3,)), ((), ()), ((2, 3), (6,)), ((2, 3), (3, 2)), ((0,), (0,))]
TENSORDOT = [
    ((2, 3), (4, 5), (), ()), ((), (3,), (), ()), ((2, 3), (3, 4), (1,), (0,)), ((2, 3, 4), (3, 4, 2), (1, 2), (0, 1)),
    ((2, 3, 4), (4, 2, 3), (2, 0, 1), (0, 1, 2)), ((2, 3, 4), (3, 5, 2), (0, 1), (2, 0)),
    ((4, 3, 2), (2, 5, 4), (0, 2), (2, 0)),
    ((2, 3, 4), (5, 3), (1,), (1,)), ((2, 0), (0, 3), (1,), (0,)), ((3,), (3,), (0,), (0,)),
]  # fmt: skip

# Trap by trap: an index that repeats, that only one operand has, that is broadcast; ellipsis in the front, the middle,
# the end, of different lengths; outputs implied, permuted, without an input's indices; the operand used twice; no index
# at all.
EINSUM = [
    ("ii->", (3, 3)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->j", (3, 3, 2)), ("iij->ij", (3, 3, 2)),
    ("ijij->", (2, 3, 2, 3)),
    ("iii->i", (2, 2, 2)), ("...ii->...i", (2, 3, 3)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)),
    ("ba", (2, 3)),
    ("i...->...i", (2, 3, 4)), ("...", (2, 3)), ("ij", (2, 3)), ("->", ()), ("ii->i", (0, 0)), ("ij->i", (2, 0)),
    ("i->", (0,)),
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,jk", (2, 3), (3, 4)), ("ij,jk->ki", (2, 3), (3, 4)), ("i,i->", (3,), (3,)),
    ("i,j->ij", (3,), (2,)), ("i,j->ji", (3,), (2,)), ("i,j->", (3,), (2,)), ("ij,k->i", (2, 3), (4,)),
    ("ij,ij->ij", (1, 3), (2, 3)),
    ("ij,ij->i", (2, 1), (2, 3)), ("ij,jk->ik", (2, 1), (3, 4)), ("ij,jk->ik", (2, 3), (1, 4)), ("i,i", (1,), (3,)),
    ("i,i->i", (1,), (0,)), ("ii,i->i", (3, 3), (3,)), ("ii,jj->ij", (3, 3), (2, 2)), ("ii,i->", (3, 3), (1,)),
    (",i->i", (), (3,)),
    (",->", (), ()), ("...ij,...jk->...ik", (2, 2, 3), (3, 2)), ("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
    ("...,...", (2, 1), (3,)), ("i...,i->...", (2, 3, 4), (2,)), ("i...j,j->i...", (2, 4, 3), (3,)),
    ("...i,...i", (3,), (2, 3)),
    ("...i,...i->...", (1, 3), (2, 3)), ("ij,jk->ik", (2, 0), (0, 3)), ("ij , jk -> ik", (2, 3), (3, 4)),
    ("Ab,bA->A", (2, 3), (3, 2)),
    ("i,i,i->i", (3,), (3,), (3,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)), ("i,j,k->", (2,), (3,), (2,)),
    ("ij,j,i", (2, 3), (3,), (2,)), ("...i,ij,...j->...", (2, 3), (3, 4), (1, 4)), ("ii,ij,j->i", (2, 2), (2, 3), (3,)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 2), (2, 3), (3, 2)), ("ij,jk,k->i", (2, 1), (3, 4), (4,)),
    (",ij,->j", (), (2, 3), ()),
]  # fmt: skip
PLANNED = [
    ("...i->", (2, 3)), ("...i,i->i", (2, 3), (3,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ii,i->", (3, 3), (3,)),
]  # fmt: skip
SOLVE = [
    ((3, 3), (3, 2)), ((3, 3), (3, 1)), ((2, 3, 3), (2, 3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 2)),
    ((2, 1, 3, 3), (4, 3, 1)),
    ((1, 1), (1, 1)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((0, 2, 2), (2, 1)),
]  # fmt: skip
# No integer matrix: the rule is joint, and the cotangent of b alone does not need the out that it declares.
SOLVE_KINDS = (("f4", "f4"), ("c16", "c16"), ("c8", "c8"), ("f8", "c16"), ("c16", "f8"), ("f4", "f8"), ("f8", "i8"))


def _einsum(rows: list[Any], optimize: Any, **options: Any) -> list[Case]:
    made = []
    for subscripts, *shapes in rows:
        which = {1: einsum_one, 2: einsum_two}.get(len(shapes), einsum_many)
        operands = tuple(array(*shape, seed=k) for k, shape in enumerate(shapes))
        params = {"subscripts": subscripts, "optimize": optimize, "options": tuple(options.items())}
        made.append(Case(f"einsum {subscripts} {shapes} optimize={optimize} {options}", which, operands, params))
    return made


def _solve() -> list[Case]:
    rows = (
        [(a, b, "f8", "f8") for a, b in SOLVE]
        + [((3, 3), (3, 2), a, b) for a, b in SOLVE_KINDS]
        + [((2, 3, 3), (3, 2), "c16", "c16")]
    )
    made = []
    for a, b, kind, other in rows:
        operands = (system(*a, dtype=kind), array(*b, dtype=other, seed=1))
        named = f"{a} {b} {kind},{other}"
        made += [
            Case(f"solve_by_factors {named} {t}", solve_by_factors, operands, {"transpose": t})
            for t in (False, True)
            if b[-1] > 0
        ]
        if b[-1] > 0:  # without columns nothing is read
            made += [
                Case(f"solve_kept {named}", solve_kept, operands, {}),
                Case(f"solve_again {named}", solve_again, operands, {}),
            ]
        if kind == other:
            made.append(
                Case(
                    f"substitute {a} {b} {kind}", substitute, (*factor(operands[0]), operands[1]), {"transpose": False}
                )
            )
    return made


def _since_2_2() -> list[Case]:
    """matvec and vecmat, which NumPy has since 2.2."""
    if not hasattr(np, "matvec"):
        return []
    right, left = _kinds(matvec, (2, 3), (3,)), _kinds(vecmat, (3,), (3, 2))
    return [*_pairs(matvec, MATVEC), *right, *_pairs(vecmat, VECMAT), *left]


CASES: tuple[Case, ...] = (
    *_pairs(matmul, MATMUL), *_kinds(matmul, (2, 3), (3, 2)), *_kinds(matmul, (3,), (2, 3, 2)), *_pairs(dot, DOT),
    *_kinds(dot, (2, 3), (3, 2)), *_kinds(dot, (), (2,)), *_pairs(inner, INNER), *_kinds(inner, (2, 3), (2, 3)),
    *_pairs(vecdot, VECDOT),
    *_kinds(vecdot, (2, 3), (3,)), *_pairs(vdot, VDOT), *_kinds(vdot, (2, 3), (6,)), *_since_2_2(),
    *(case for x, y, i, j in TENSORDOT for case in _pairs(tensordot, [(x, y)], x_axes=i, y_axes=j)),
    *_kinds(tensordot, (2, 3), (2, 3), x_axes=(0,), y_axes=(0,)), *_einsum(EINSUM, optimize=False),
    *_einsum(PLANNED, optimize=True),
    *_einsum(PLANNED[2:4], optimize="optimal"), *_einsum([("ij,jk->ik", (2, 3), (3, 4))], optimize=False, order="F"),
    *_einsum([("ij,jk->ik", (2, 3), (3, 4))], optimize=False, dtype="c16"),
    *_kinds(einsum_two, (2, 3), (3, 2), subscripts="ij,jk->ik", optimize=False, options=()),
    Case("on_diagonal", on_diagonal, (array(3, 2),), {"term": "iji", "letters": "ij", "shape": (3, 2, 3)}), *_solve(),
)  # fmt: skip


@pytest.mark.share(20)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_declaration_is_right(case):
    pb.testing.check_primitive(case.primitive, *case.operands, **case.params)


def test_every_primitive_has_a_case():
    entries = (*PRODUCTS, *CONTRACTIONS, *EINSUMS, *SOLVES)  # the cases of the others stand in files of their own
    assert {entry.name for entry in entries if isinstance(entry, pb.Primitive)} == {
        case.primitive.name for case in CASES
    }


def test_every_function_of_numpy_linalg_is_served():
    functions = {
        getattr(np.linalg, name) for name in np.linalg.__all__ if not isinstance(getattr(np.linalg, name), type)
    }
    served = {function for entry in PRIMITIVES for function in entry.serves}
    core = {np.linalg.diagonal, np.linalg.matrix_transpose}
    assert functions - served == core
