"""pullback_scipy.fft and signal: SciPy's values bit for bit, right derivatives to second order."""

import numpy as np
import pytest
from scipy import fft, fftpack, signal

import pullback as pb
from pullback_scipy import fft as mirrored_fft
from pullback_scipy import fftpack as mirrored_fftpack
from pullback_scipy import signal as mirrored_signal

RNG = np.random.default_rng(5)
V, W, M = RNG.normal(size=7), RNG.normal(size=8), RNG.normal(size=(4, 6))
Z = M + 1j * M[::-1]
LONG = RNG.normal(size=40)
SOS = signal.butter(4, 0.3, output="sos")
B, A = signal.butter(3, 0.3)
KERNEL = RNG.normal(size=(3, 2))


def transforms(f):
    table = {
        "fft": (f.fft, Z),
        "fft n": (lambda x: f.fft(x, 5, 0, "ortho"), M),
        "ifft": (f.ifft, Z),
        "rfft": (f.rfft, V),
        "irfft": (lambda x: f.irfft(x, 9), Z),
        "hfft": (f.hfft, Z),
        "ihfft": (f.ihfft, W),
        "fft2": (f.fft2, Z),
        "rfftn": (lambda x: f.rfftn(x, axes=(1, 0)), M),
        "fftn int": (lambda x: f.fftn(x, 3, 1), M),
        "irfft2": (f.irfft2, Z),
        "fftn s": (lambda x: f.fftn(x, (3, 3)), M),
        "fftshift": (f.fftshift, M),
        "dctn": (lambda x: f.dctn(x, 2), M),
        "idctn ortho": (lambda x: f.idctn(x, 3, norm="ortho"), M),
        "dstn s": (lambda x: f.dstn(x, 1, s=(3, 8), axes=(0, 1)), M),
        "dct n": (lambda x: f.dct(x, n=5), V),
        "idst n": (lambda x: f.idst(x, 3, 9, axis=0), M),
    }
    for kind in ("dct", "idct", "dst", "idst"):
        for number in (1, 2, 3, 4):
            for norm in (None, "ortho", "forward"):
                table[f"{kind} {number} {norm}"] = (
                    lambda x, kind=kind, number=number, norm=norm: getattr(f, kind)(x, number, norm=norm),
                    V if number % 2 else W,
                )
    return table


def packed(f):
    return {
        "fftpack fft": (lambda x: f.fft(x, 5, 0), M),
        "fftpack ifft2": (f.ifft2, Z),
        "fftpack fftn": (lambda x: f.fftn(x, shape=(3, 3)), M),
        "fftpack dct": (lambda x: f.dct(x, type=2, axis=1, norm="ortho"), M),
        "fftpack idst": (lambda x: f.idst(x, 3, 5), V),
        "fftpack idct": (f.idct, V),
        "fftpack idctn": (lambda x: f.idctn(x, 1, norm="ortho"), M),
        "fftpack dctn": (lambda x: f.dctn(x, 2, axes=(0,)), M),
    }


def signals(s):
    return {
        "convolve": (s.convolve, V, M[0]),
        "convolve same": (lambda a, b: s.convolve(a, b, "same", "direct"), M, KERNEL),
        "convolve valid": (lambda a, b: s.convolve(a, b, "valid", "fft"), M, KERNEL),
        "convolve valid, the shorter first": (lambda a, b: s.convolve(b, a, "valid", "direct"), M, KERNEL),
        "fftconvolve": (lambda a, b: s.fftconvolve(a, b, "same"), Z, KERNEL + 0j),
        "oaconvolve": (s.oaconvolve, LONG, V),
        "convolve2d": (lambda a, b: s.convolve2d(a, b, "same"), M, KERNEL),
        "convolve2d around": (lambda a, b: s.convolve2d(a, b, "same", "wrap"), M, KERNEL),
        "convolve2d around, a small one": (lambda a, b: s.convolve2d(a, b, "full", "wrap"), M[:2, :2], M),
        "convolve2d mirrored": (lambda a, b: s.convolve2d(a, b, mode="same", boundary="symm"), M, KERNEL[:2]),
        "correlate": (s.correlate, V, M[0]),
        "correlate same": (lambda a, b: s.correlate(a, b, "same"), Z, KERNEL + 1j),
        "correlate valid": (lambda a, b: s.correlate(a, b, "valid"), M, KERNEL),
        "lfilter": (s.lfilter, B, A, V),
        "lfilter axis": (lambda b, a, x: s.lfilter(b, a, x, axis=0), B, 2 * A[:2], M),
        "lfilter state": (lambda b, a, x, zi: s.lfilter(b, a, x, zi=zi), B, A, V, V[:3]),
        "lfilter short": (lambda x, zi: s.lfilter(B, A, x, zi=zi), V[:2], V[:3]),
        "sosfilt": (
            lambda c, x: s.sosfilt(np.concatenate((c[:, :3], np.ones((2, 1)), c[:, 3:]), axis=1), x),
            np.delete(SOS, 3, axis=1),
            LONG[:9],
        ),
        "filtfilt": (lambda x: s.filtfilt(B, A, x), LONG),
        "filtfilt even": (lambda x: s.filtfilt(B, A, x, padtype="even", padlen=5), LONG),
        "filtfilt bare": (lambda x: s.filtfilt(B, A, x, padtype=None), LONG),
        "sosfiltfilt": (lambda x: s.sosfiltfilt(SOS, x), LONG),
        "resample up": (lambda x: s.resample(x, 11), W),
        "resample down": (lambda x: s.resample(x, 5), V),
        "resample even": (lambda x: s.resample(x, 6, axis=0), W),
        "resample axis": (lambda x: s.resample(x, 9, axis=1), M),
        "detrend": (s.detrend, M),
        "detrend constant": (lambda x: s.detrend(x, 0, "constant"), M),
        "hilbert": (s.hilbert, W),
        "hilbert odd": (s.hilbert, V),
    }


OURS = transforms(mirrored_fft) | packed(mirrored_fftpack) | signals(mirrored_signal)
THEIRS = transforms(fft) | packed(fftpack) | signals(signal)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    expected = theirs(*operands)
    for given, value in zip(*((x if isinstance(x, tuple) else (x,)) for x in (out, expected)), strict=True):
        np.testing.assert_array_equal(given, value)


@pytest.mark.share(7, of=lambda name: 0)
@pytest.mark.parametrize("name", OURS)
def test_derivatives_of_two_orders_are_right(name):
    f, *operands = OURS[name]
    pb.testing.check_grads(f, tuple(operands), order=1 if len(operands) < 2 else 2)


def test_options_without_a_rule_are_named():
    with pytest.raises(pb.NotDifferentiableError, match=r"scipy\.signal.*resample with window='hann'"):
        pb.grad(lambda x: mirrored_signal.resample(x, 3, window="hann")[0])(V)
    with pytest.raises(pb.NotDifferentiableError, match=r"dct with orthogonalize=True.*served is None, False"):
        pb.grad(lambda x: mirrored_fft.dct(x, orthogonalize=True)[0])(V)
