"""The NumPy functions that the plugin serves: NumPy's values bit for bit, right derivatives, equal bits under
policies."""

import numpy as np
import pytest

import pullback as pb
from pullback_fft import PRIMITIVES

RNG = np.random.default_rng(5)
V, W, M, T = RNG.normal(size=5), RNG.normal(size=6), RNG.normal(size=(4, 5)), RNG.normal(size=(3, 2, 4))
ZV, ZM, ZT = V + 1j * V[::-1], M - 1j * M[::-1], T + 1j * T[::-1]
F = np.fft

FUNCTIONS = {
    "fft": (F.fft, ZV),
    "fft of a real line": (F.fft, V),
    "fft of fewer": (lambda x: F.fft(x, 3), V),
    "fft of more": (lambda x: F.fft(x, n=9), ZV),
    "fft axis": (lambda x: F.fft(x, None, 0), M),
    "fft of a strided array": (lambda x: F.fft(x.T[::-1], 4, axis=1), M),
    "ifft": (F.ifft, ZM),
    "ifft of a real line": (lambda x: F.ifft(x, 7, norm="ortho"), V),
    "rfft odd": (F.rfft, V),
    "rfft even": (F.rfft, W),
    "rfft forward, odd": (lambda x: F.rfft(x, norm="forward"), V),
    "rfft of fewer": (lambda x: F.rfft(x, 3, 0, "ortho"), M),
    "rfft of more": (lambda x: F.rfft(x, 8), V),
    "irfft": (F.irfft, ZM),
    "irfft odd": (lambda x: F.irfft(x, 7), ZM),
    "irfft of more": (lambda x: F.irfft(x, n=12, axis=0, norm="forward"), ZM),
    "irfft of a real line": (F.irfft, V),
    "hfft": (F.hfft, ZV),
    "hfft odd": (lambda x: F.hfft(x, 7, norm="ortho"), ZM),
    "hfft of a real line": (lambda x: F.hfft(x, axis=0), M),
    "ihfft odd": (F.ihfft, V),
    "ihfft even": (lambda x: F.ihfft(x, axis=0, norm="forward"), M),
    "fftn": (F.fftn, ZT),
    "fftn of a real array": (F.fftn, T),
    "fftn s": (lambda x: F.fftn(x, (2, 5), axes=(2, 0), norm="ortho"), T),
    "fftn s of -1": (lambda x: F.fftn(x, s=(-1, 6), axes=(0, 1)), T),
    "fftn negative axes": (lambda x: F.fftn(x, axes=(-1, -3)), ZT),
    "fftn repeated axes": (lambda x: F.fftn(x, axes=(0, 2, 0)), ZT),
    "fftn repeated axes, cropped between": (lambda x: F.fftn(x, s=(4, 6), axes=(0, 0)), ZT),
    "fftn of no axes": (lambda x: F.fftn(x, (), ()) * 1.0, T),
    "fftn of a number": (lambda x: F.fftn(x) * 1.0, np.array(1.5)),
    "fftn arrays for s and axes": (lambda x: F.fftn(x, np.array([3, 3]), np.array([0, 1])), T),
    "ifftn": (F.ifftn, ZT),
    "ifftn s": (lambda x: F.ifftn(x, [4, 3], [0, -1], "forward"), T),
    "rfftn": (F.rfftn, T),
    "rfftn s": (lambda x: F.rfftn(x, (3, 5), (2, 1), norm="forward"), T),
    "rfftn repeated axes": (lambda x: F.rfftn(x, (3, 7), (2, 2)), T),
    "rfftn repeated axes, cropped between": (lambda x: F.rfftn(x, (2, 4, 3), (0, 0, 2)), T),
    "irfftn": (F.irfftn, ZT),
    "irfftn odd": (lambda x: F.irfftn(x, (2, 3, 5), (0, 1, 2)), ZT),
    "irfftn s of -1": (lambda x: F.irfftn(x, (2, -1), (0, 2)), ZT),
    "irfftn repeated axes, cropped between": (lambda x: F.irfftn(x, (2, 4, 5), (0, 0, 2)), ZT),
    "irfftn repeated axes": (lambda x: F.irfftn(x, (5, 4), (2, 2), norm="ortho"), ZT),
    "fft2": (F.fft2, ZT),
    "fft2 axes": (lambda x: F.fft2(x, axes=(0, 1)), T),
    "fft2 axes None": (lambda x: F.fft2(x, axes=None), T),
    "ifft2": (lambda x: F.ifft2(x, (3, 3)), ZT),
    "rfft2": (lambda x: F.rfft2(x, norm="ortho"), T),
    "irfft2": (lambda x: F.irfft2(x, s=(2, 7)), ZT),
    "fftshift odd": (F.fftshift, V),
    "fftshift": (F.fftshift, T),
    "fftshift axes": (lambda x: F.fftshift(x, axes=(0, -1)), ZT),
    "fftshift of one axis": (lambda x: F.fftshift(x, np.int64(1)), M),
    "fftshift of an axis twice": (lambda x: F.fftshift(x, (0, 0)), T),
    "ifftshift odd": (F.ifftshift, V),
    "ifftshift axes": (lambda x: F.ifftshift(x, [0, 2]), T),
    "there and back": (lambda x: F.ifft(F.fft(x) * ZV).real, V),
    "by keyword": (lambda x: F.rfft(a=x, n=4, axis=0, norm=None), M),
}  # fmt: skip
ROWS = [pytest.param(f, x, id=name) for name, (f, x) in FUNCTIONS.items()]


def steps(x):
    """The strides that mean something: of axes with more than one element."""
    return [step for step, n in zip(x.strides, x.shape, strict=True) if n > 1]


@pytest.mark.parametrize(("f", "x"), ROWS)
@pytest.mark.parametrize("wide", [True, False], ids=["double", "single"])
def test_values_layout_and_dtype_are_those_of_numpy(f, x, wide):
    x = x if wide else x.astype(np.complex64 if x.dtype.kind == "c" else np.float32)
    expected = np.array(f(x), order="K")
    out, pull = pb.vjp(f, x)
    given = np.asarray(out)
    assert (given.dtype, given.shape) == (expected.dtype, expected.shape)
    assert steps(given) == steps(expected)
    assert given.tobytes() == expected.tobytes()
    (ct,) = pull(np.ones_like(out))
    assert (ct.dtype, ct.shape) == (x.dtype, x.shape)


@pytest.mark.share(6)
@pytest.mark.parametrize(("f", "x"), ROWS)
def test_derivatives_of_two_orders_are_right(f, x):
    pb.testing.check_grads(lambda x: f(x + 0.1 * x * x), (x,), order=2)


@pytest.mark.parametrize(("f", "x"), ROWS)
def test_policies_give_the_same_bits(f, x):
    def program(x):
        for _ in pb.steps(4):
            energy = np.sum(np.abs(f(x)) ** 2)
            x = x + 0.1 * energy / (1 + energy) * np.sin(x)
        return np.sum(np.abs(x))

    expected = pb.grad(program)(x)
    for policy in (pb.Recompute(), pb.Binomial(1)):
        assert pb.grad(program, policy=policy)(x).tobytes() == expected.tobytes()


def test_every_function_of_numpy_fft_that_dispatches_is_served():
    served = {function for entry in PRIMITIVES for function in entry.serves}
    names = "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftshift ifftshift".split()
    assert served == {getattr(F, name) for name in names}


# ---------------------------------------------------------------------------------------------------------- conventions
def test_fft_is_its_own_transpose_without_conjugation():
    matrix = F.fft(np.eye(5))
    ct = ZV[::-1].copy()
    np.testing.assert_allclose(pb.vjp(F.fft, ZV)[1](ct)[0], ct @ matrix, rtol=1e-13)
    np.testing.assert_allclose(pb.vjp(F.ifft, ZV)[1](ct)[0], ct @ np.linalg.inv(matrix), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(pb.vjp(F.fft, V)[1](ct)[0], (ct @ matrix).real, rtol=1e-13)


@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
@pytest.mark.parametrize("n", [1, 2, 5, 6, 9])
def test_a_term_of_the_half_spectrum_counts_as_often_as_it_occurs_in_the_whole(n, norm):
    """Parseval's equation: the gradient of half the energy, with every term counted, is a multiple of the line
    itself."""
    x = RNG.normal(size=n)
    twice = np.array([1.0 if k in {0, n - k} else 2.0 for k in range(n // 2 + 1)])
    scale = {None: n, "ortho": 1.0, "forward": 1 / n}[norm]
    given = pb.grad(lambda x: np.sum(twice * np.abs(F.rfft(x, norm=norm)) ** 2) / 2)(x)
    np.testing.assert_allclose(given, scale * x, rtol=1e-12)


@pytest.mark.parametrize("function", [F.irfft, F.hfft])
@pytest.mark.parametrize("n", [6, 7])
def test_imaginary_parts_that_are_not_seen_have_no_derivative(function, n):
    ct = pb.vjp(lambda z: function(z, n), ZV[:4])[1](RNG.normal(size=n))[0]
    unseen = [True, False, False, n == 6]
    assert (ct.imag == 0).tolist() == unseen
    assert (ct.real != 0).all()


def test_what_is_cropped_has_a_gradient_of_zero_and_what_is_padded_none():
    assert pb.grad(lambda x: np.sum(np.abs(F.fft(x, 3)) ** 2))(V)[3:].tolist() == [0, 0]
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(np.abs(F.fft(x, 8)) ** 2))(V), 16 * V, rtol=1e-13)


def test_a_shift_of_an_odd_length_goes_back_the_other_way():
    ct = np.arange(5.0)
    assert pb.vjp(F.fftshift, V)[1](ct)[0].tobytes() == F.ifftshift(ct).tobytes()
    assert pb.vjp(F.ifftshift, V)[1](ct)[0].tobytes() == F.fftshift(ct).tobytes()


# -------------------------------------------------------------------------------------------- dtypes, memory, arguments
@pytest.mark.parametrize(
    "name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fftn", "rfftn", "irfftn", "fftshift"]
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
def test_every_precision_is_kept(name, dtype):
    x, function = M.astype(dtype), getattr(F, name)
    out, pull = pb.vjp(function, x)
    assert (out.dtype, np.array_equal(out, function(x))) == (function(x).dtype, True)
    (ct,) = pull(np.ones_like(out))
    exact = pb.vjp(function, M)[1](np.ones(out.shape, np.result_type(out.dtype, np.float64)))[0]
    assert ct.dtype == dtype
    np.testing.assert_allclose(ct.astype(float), exact, rtol=0, atol=50 * max(float(np.finfo(dtype).eps), 2.0**-52))


def test_whole_numbers_beside_a_tracer_are_promoted():
    given = pb.grad(lambda x: np.sum(np.abs(F.fft([1, 2, 3, 4]) * F.fft(x))))(W[:4])
    np.testing.assert_allclose(
        given, pb.grad(lambda x: np.sum(np.abs(F.fft(np.array([1.0, 2.0, 3.0, 4.0])) * F.fft(x))))(W[:4])
    )


def test_nothing_is_saved():
    _, pull = pb.vjp(lambda x: F.irfftn(F.rfftn(x)), np.ones((8, 8)))
    assert pull.report.live_bytes == 0


def test_a_result_is_written_to_out():
    def f(x):
        y = np.empty_like(x, dtype=complex)
        assert F.fft(x, out=y) is y
        F.fftn(x, out=y[:])
        return np.sum(np.abs(y * y))

    assert np.array_equal(pb.grad(f)(V), pb.grad(lambda x: np.sum(np.abs(F.fft(x) * F.fft(x))))(V))


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: F.fftn(x, s=(3, 3)), "numpy.fft deprecates None for axes="),
        (lambda x: F.irfftn(x + 0j, s=(3, None), axes=(0, 1)), "numpy.fft deprecates None for an element of s="),
        (lambda x: F.rfftn(x, s=(None, None), axes=(0, 0)), "numpy.fft deprecates None for an element of s="),
    ],
)
def test_what_numpy_deprecates_warns_and_works(f, words):
    with pytest.warns(DeprecationWarning, match="NumPy 2.0"):
        expected = f(M)
    with pytest.warns(DeprecationWarning, match=words):
        out, pull = pb.vjp(f, M)
    assert out.tobytes() == expected.tobytes()
    v = np.cos(M)
    with pytest.warns(DeprecationWarning, match="NumPy 2.0"):  # f is linear
        np.testing.assert_allclose(np.sum(pull(np.ones_like(out))[0] * v), np.sum(f(v)).real, rtol=1e-10)


@pytest.mark.parametrize(
    ("f", "error", "words"),
    [
        (lambda x: F.fft(x, 0), ValueError, r"Invalid number of FFT data points \(0\)"),
        (lambda x: F.irfft(x[:, :1]), ValueError, r"Invalid number of FFT data points \(0\)"),
        (lambda x: F.fft(x, norm="orthogonal"), ValueError, "Invalid norm value orthogonal"),
        (lambda x: F.hfft(x, norm="orthogonal"), ValueError, "Invalid norm value orthogonal"),
        (lambda x: F.fft(x, axis=2), IndexError, "out of range"),
        (lambda x: F.fft(x, 3, axis=2), np.exceptions.AxisError, "axis 2 is out of bounds"),
        (lambda x: F.fftn(x, (3,), (0, 1)), ValueError, "Shape and axes have different lengths"),
        (lambda x: F.fftn(x, axes=0), TypeError, "not iterable"),
        (lambda x: F.rfft(x + 1j), TypeError, "rfft"),
        (lambda x: F.ihfft(x + 1j), TypeError, "rfft"),
        (lambda x: F.rfftn(x, axes=()), ValueError, "not enough values"),
        (lambda x: F.fftshift(x, 2), IndexError, "out of range"),
    ],
)
def test_errors_are_numpys(f, error, words):
    with pytest.raises(error, match=words):
        pb.vjp(f, M)
