"""Generated pushes give what the general way gives: the same values, bit for bit, types and strides."""

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.elementwise.operators import OPERATORS
from pullback.primitives.elementwise.powers import POWERS
from pullback.primitives.elementwise.ufunc_rules import ELEMENTWISE
from pullback.rules.declaration import Primitive
from pullback.transforms.derivatives.tangents import Tangents
from pullback.words.errors import PullbackError

RNG = np.random.default_rng(0)


def drawn(shape, dtype=float):
    x = RNG.uniform(0.2, 0.9, shape)
    return x.astype(dtype) if np.dtype(dtype).kind == "f" else (x + 1j * RNG.uniform(0.1, 0.5, shape)).astype(dtype)


LAYOUTS = {
    "vector": lambda d: drawn(5, d),
    "matrix": lambda d: drawn((3, 4), d),
    "columns first": lambda d: np.asfortranarray(drawn((3, 4), d)),
    "turned": lambda d: drawn((4, 3), d).T,
    "gaps": lambda d: drawn((3, 8), d)[:, ::2],
    "backwards": lambda d: drawn(5, d)[::-1],
    "row": lambda d: drawn((1, 4), d),
    "column": lambda d: drawn((3, 1), d),
    "none": lambda d: drawn((0, 4), d),
    "0-d": lambda d: np.asarray(drawn((), d)),
    "scalar": lambda d: drawn((2,), d)[0],
    "number": lambda d: 0.5,
}
TOGETHER = [
    *((name, name) for name in LAYOUTS),
    ("matrix", "row"), ("column", "row"), ("row", "columns first"), ("matrix", "turned"), ("turned", "columns first"),
    ("scalar", "matrix"), ("matrix", "number"), ("0-d", "vector"), ("none", "row"), ("column", "none"),
]  # fmt: skip


def bits(x):
    if x is None or not hasattr(x, "dtype"):
        return type(x), repr(x)
    x = np.asarray(x) if type(x) is not np.ndarray else x
    return type(x), x.dtype, x.shape, x.strides, x.tobytes()


def outcome(f, primals, tangents):
    try:
        with np.errstate(all="ignore"):
            out, tangent = pb.jvp(f, primals, tangents)
    except (PullbackError, Warning, TypeError, ValueError, IndexError) as error:
        return type(error), str(error)
    return (type(out), *bits(out)), (type(tangent), *bits(tangent))


def both_ways(monkeypatch, f, primals, tangents):
    """The outcome, and how many calls a generated push has served."""
    served = []
    quick = Tangents.quick
    with monkeypatch.context() as patch:
        patch.setattr(Tangents, "quick", lambda *args: served.append(quick(*args)) or served[-1])
        found = outcome(f, primals, tangents)
        patch.setattr(Tangents, "quick", lambda *_: None)
        assert found == outcome(f, primals, tangents)
    return sum(one is not None for one in served)


def tangents_of(*primals):
    return tuple(
        None if isinstance(x, int) else drawn(np.shape(x), x.dtype) if isinstance(x, np.ndarray) else type(x)(0.3)
        for x in primals
    )


TABLE = [prim for prim in (*ELEMENTWISE, *POWERS, *OPERATORS) if prim.trusted]


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("prim", TABLE, ids=lambda prim: prim.name)
def test_elementwise_primitives(monkeypatch, prim, dtype):
    served = 0
    if len(prim.operands) == 1:
        for make in LAYOUTS.values():
            x = make(dtype)
            served += both_ways(monkeypatch, prim, (x,), tangents_of(x))
    else:
        for first, second in TOGETHER:
            x, y = LAYOUTS[first](dtype), LAYOUTS[second](dtype)
            tx, ty = tangents_of(x, y)
            served += both_ways(monkeypatch, prim, (x, y), (tx, ty))
            both_ways(monkeypatch, prim, (x, y), (tx, None))
            both_ways(monkeypatch, lambda x, y=y: prim(x, y), (x,), (tx,))
            both_ways(monkeypatch, lambda y, x=x: prim(x, y), (y,), (ty,))
            both_ways(monkeypatch, lambda x: prim(x, x), (x,), (tx,))
            both_ways(monkeypatch, lambda x: prim(x, x[::-1]), (x,), (tx,))
        both_ways(monkeypatch, lambda x: prim(x, 2), (drawn(3, dtype),), tangents_of(drawn(3, dtype)))
    assert served or dtype is np.complex128  # some have no complex loop


MOVES = {
    "sum": lambda x: np.sum(x, axis=0),
    "whole sum": np.sum,
    "sum of another dtype": lambda x: np.sum(x, axis=0, dtype=np.float64),
    "mean": lambda x: np.mean(x, axis=-1, keepdims=True),
    "transpose": lambda x: x.T * 2.0,
    "the view itself": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "reshape of the turned": lambda x: x.T.reshape(-1),
    "row": lambda x: x[1],
    "element": lambda x: x[1, 1],
    "rows again": lambda x: x[[0, 0, 2]] + x[::-1],
    "mask": lambda x: x[np.arange(x.shape[0]) > 0],
    "ellipsis": lambda x: x[...],
    "copy": lambda x: x.copy(),
    "cast": lambda x: x.astype(np.float32) + x,
    "cast to itself": lambda x: x.astype(x.dtype),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "cumsum": lambda x: np.cumsum(x, axis=0),
    "diff": lambda x: np.diff(x, axis=0),
    "real": lambda x: x.real * 2.0,
    "imag": lambda x: x.imag,
    "broadcast": lambda x: np.broadcast_to(x, (2, *x.shape)) * x,
    "squeeze": lambda x: np.squeeze(x[None]),
    "triangle": np.tril,
    "tile": lambda x: np.tile(x, 2),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("name", MOVES)
def test_linear_operations_and_views(monkeypatch, name, dtype):
    served = 0
    for layout in ("matrix", "columns first", "turned", "gaps"):
        x = LAYOUTS[layout](dtype)
        served += both_ways(monkeypatch, MOVES[name], (x,), tangents_of(x))
    assert served or dtype is not np.float64 or name in {"imag", "triangle", "diff"}


def test_views_are_written_through(monkeypatch):
    """A view of a value has a view of its tangent, a copy a copy."""

    def f(x):
        y = x * 2.0
        row, copied, flat = y[1], y[[1]], y.T.reshape(-1)
        y[1] = row * row
        row += x[0]
        flat[0] = 5.0
        z = y.T
        z[0] *= 3.0
        return np.sum(y * y) + np.sum(row) * np.sum(copied) + flat[0] + flat[1]

    x = drawn((3, 4))
    assert both_ways(monkeypatch, f, (x,), (drawn((3, 4)),)) > 5


def test_tangents_are_nobody_elses(monkeypatch):
    def f(x):
        y = +x
        z = y.copy()
        y[0] = 7.0
        w = x + 0.0
        w[1] *= 2.0
        return np.stack([x * 1.0, y, z, w])

    assert both_ways(monkeypatch, f, (drawn(4),), (drawn(4),))


def test_arrays_of_objects_are_refused_alike(monkeypatch):
    both_ways(monkeypatch, lambda x: x * np.array([1.0, None], object), (drawn(2),), (drawn(2),))
    both_ways(monkeypatch, lambda x: x + np.array([1, 2], "m8[s]"), (drawn(2),), (drawn(2),))


def test_nested_traces_go_the_general_way(monkeypatch):
    x, v = drawn(3), drawn(3)
    f = lambda x: np.sum(np.sin(x) * x[::-1])  # noqa: E731
    inner = lambda x: pb.jvp(f, (x,), (v,))[1]  # noqa: E731
    np.testing.assert_allclose(pb.grad(inner)(x), pb.hvp(f, (x,), (v,)), rtol=1e-12)
    both_ways(monkeypatch, inner, (x,), (v,))
    both_ways(monkeypatch, lambda v: pb.jvp(f, (x,), (v,))[1], (v,), (x,))


def test_a_primitive_of_ones_own_has_no_push():
    prim = pb.primitive(lambda x: x * 2.0, name="twice", operands=("x",), vjps={"x": lambda ct: ct * 2.0})
    assert isinstance(prim, Primitive)
    assert pb.jvp(prim, (1.0,), (1.0,))[1] == 2.0
    assert prim.forms["push"] is None
