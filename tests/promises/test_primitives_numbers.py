"""Traced Python numbers: where NumPy makes an array of its argument, float64 wins over float32; where it does not,
the number gives way."""

import numpy as np
import pytest

import pullback as pb

LINE = np.array([0.3, 0.7, 1.1], np.float32)
ONE = np.float32(0.6)
MASK = np.array([True, False, True])

ALONE = (
    "median", "nanmedian", "sum", "prod", "mean", "var", "std", "max", "min", "ptp", "nansum", "nanprod", "nanmean",
    "nanvar", "nanmax",
    "nanmin", "cumsum", "cumprod", "nancumsum", "ravel", "squeeze", "copy", "atleast_1d", "atleast_2d", "atleast_3d",
    "flip", "sinc", "i0",
    "angle", "nan_to_num", "unique", "conj", "transpose", "diagflat", "average",
)  # fmt: skip
CALLS = {
    **{name: getattr(np, name) for name in ALONE},
    "quantile": lambda x: np.quantile(x, 0.3),
    "quantile at x": lambda x: np.quantile(LINE, x),
    "nanpercentile": lambda x: np.nanpercentile(x, 30),
    "sort": lambda x: np.sort(x, axis=None),
    "prod kept": lambda x: np.prod(x, axis=-1, keepdims=True),
    "ravel in memory order": lambda x: np.ravel(x, "K"),
    "subtract.reduce": np.subtract.reduce,
    "hypot.reduce": lambda x: np.hypot.reduce(x, axis=-1),
    "fmax.reduce": lambda x: np.fmax.reduce(x, axis=None, keepdims=True),
    "clip": lambda x: np.clip(x, np.float32(0.1), np.float32(0.3)),
    "clip to x": lambda x: np.clip(LINE, x, None),
    "real": lambda x: np.real(x) * LINE,
    "where": lambda x: np.where(MASK, x, LINE),
    "select": lambda x: np.select([MASK], [x], LINE),
    "concatenate flat": lambda x: np.concatenate([LINE, x], axis=None),
    "concatenate flat beside an integer": lambda x: np.concatenate([0, ONE * x], axis=None),
    "append": lambda x: np.append(LINE, x),
    "stack": lambda x: np.stack([x, ONE]),
    "hstack": lambda x: np.hstack([x, LINE]),
    "broadcast_arrays": lambda x: np.broadcast_arrays(LINE, x)[1],
    "union1d": lambda x: np.union1d(x, LINE),
    "diff": lambda x: np.diff(LINE, prepend=x),
    "ediff1d": np.ediff1d,
    "gradient": lambda x: np.gradient(LINE, x),
    "trapezoid": lambda x: np.trapezoid(LINE, dx=x),
    "linspace": lambda x: np.linspace(x, ONE, 3),
    "logspace": lambda x: np.logspace(x, ONE, 3),
    "geomspace": lambda x: np.geomspace(x, ONE, 3),
    "meshgrid": lambda x: np.meshgrid(LINE, x)[1],
    "interp": lambda x: np.interp(x, LINE, LINE),
    "polyval": lambda x: np.polyval(LINE, x),
    "polymul": lambda x: np.polymul(x, LINE),
    "pad": lambda x: np.pad(x, 1),
    "resize": lambda x: np.resize(x, 3),
    "insert": lambda x: np.insert(LINE, 1, x),
    "dot": lambda x: np.dot(LINE, x),
    "vdot": lambda x: np.vdot(x, x),
    "vdot with a number": lambda x: np.vdot(ONE, x),
    "inner": lambda x: np.inner(x, LINE),
    "outer": lambda x: np.outer(LINE, x),
    "kron": lambda x: np.kron(LINE, x),
    "kron of a number": lambda x: np.kron(x, LINE),
    "tensordot": lambda x: np.tensordot(x, LINE, 0),
    "einsum": lambda x: np.einsum("i,->i", LINE, x),
    "norm": np.linalg.norm,
    "emath.power": lambda x: np.emath.power(LINE, x),
}  # fmt: skip


@pytest.fixture(params=CALLS)
def call(request):
    return CALLS[request.param]


def test_a_traced_python_number_gives_what_numpy_gives_for_the_number(call):
    seen = []

    def total(x):
        seen.append(pb.value(found := call(x)))
        return np.sum(found * 1.7)

    slope = pb.grad(total)(0.4)
    expected, got = np.asarray(call(0.4)), np.asarray(seen[0])
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    assert got.tobytes() == expected.tobytes()
    assert np.shape(slope) == ()
    assert np.isfinite(slope)


@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2)])
def test_a_traced_python_number_has_the_same_bits_under_every_policy(call, policy):
    def total(x):
        summed = 0.0
        for _ in pb.steps(3):
            summed = summed + np.sum(call(x) * 1.7)
        return summed

    assert np.asarray(pb.grad(total, policy=policy)(0.4)).tobytes() == np.asarray(pb.grad(total)(0.4)).tobytes()


def test_second_derivatives_of_a_python_number():
    assert pb.grad(pb.grad(lambda x: np.linalg.norm(np.kron(x, LINE)) * np.median(x * x)))(0.4) == pytest.approx(
        6 * 0.4 * np.linalg.norm(LINE.astype(float)), rel=1e-6
    )
    assert pb.grad(pb.grad(lambda x: np.prod(x) * np.vdot(x, x)))(0.4) == pytest.approx(2.4)


def test_trim_zeros_of_a_number_and_of_nothing():
    assert pb.grad(lambda x: np.sum(np.trim_zeros(x)))(0.4) == 1.0
    out, pull = pb.vjp(np.trim_zeros, np.zeros(0))
    assert out.shape == pull(out)[0].shape == (0,)
