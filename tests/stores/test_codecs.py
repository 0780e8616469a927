"""Codecs: what comes back, with every tier; what a lossy one reports."""

import numpy as np
import pytest

import pullback as pb
from pullback.stores import AsType, Blosc2, Disk, InMemory, Stored, Zfp, Zlib

X = np.linspace(0.1, 0.9, 480).reshape(24, 20)


def have(module):
    try:
        __import__(module)
    except ImportError:
        return False
    return True


OPTIONAL = [
    pytest.param(Blosc2(), marks=pytest.mark.skipif(not have("blosc2"), reason="blosc2 is not installed")),
    pytest.param(Zfp(), marks=pytest.mark.skipif(not have("zfpy"), reason="zfpy is not installed")),
]
LOSSLESS = [Zlib(), Zlib(0), Zlib(9), *OPTIONAL]
LOSSY = [
    AsType("f4"), AsType(np.float16),
    pytest.param(Zfp(1e-6), marks=pytest.mark.skipif(not have("zfpy"), reason="zfpy is not installed")),
]  # fmt: skip
TIERS = (InMemory, lambda codec: Disk(codec=codec))


def loop(x):
    return pb.fori_loop(0, 30, lambda k, u: np.sin(u) * x + u, x)


def marked(x):
    u = x
    for _ in pb.steps(30):
        u = np.sin(u) * x + u
    return u


def pulled(f, policy):
    out, pull = pb.vjp(f, X, policy=policy)
    return pull(np.ones_like(out))[0], pull.report


ARRAYS = (
    X, np.asfortranarray(X), np.array(0.3), np.arange(7), np.array([True, False]), X.astype(np.float32), X + 1j,
    np.array([np.nan, np.inf, -0.0]), np.zeros(3, [("a", "f8"), ("b", "i2")]), np.ones(5, np.longdouble) / 3,
    np.array(["a", "bc"]), X.astype(">f8"), np.arange(3).astype("M8[s]"), np.ones((2, 1, 2, 1, 2)),
)  # fmt: skip


@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_the_bits_come_back(codec, array):
    dense = array if array.flags.c_contiguous else array.T
    back = codec.decode(codec.encode(dense), dense.shape, dense.dtype)
    assert (back.shape, back.dtype, back.tobytes()) == (dense.shape, dense.dtype, dense.tobytes())


@pytest.mark.parametrize("codec", [None, *LOSSLESS, AsType("f4")], ids=repr)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_leaves_of_any_dtype(codec, tier, array):
    array = np.atleast_1d(array)

    def f(x):
        return np.sum(pb.fori_loop(0, 6, lambda k, s: (np.sin(s[0]) * x, s[1][..., ::-1].copy()), (x, array))[0])

    got = pb.grad(f, policy=pb.Periodic(2, tier=tier(codec)))(X)
    if codec is None or not codec.lossy:
        assert got.tobytes() == pb.grad(f)(X).tobytes()
    assert np.allclose(got, pb.grad(f)(X), rtol=1e-4)


@pytest.mark.parametrize("codec", LOSSLESS, ids=repr)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("f", [loop, marked])
def test_lossless_codecs_keep_the_gradient(codec, tier, f):
    expected = pulled(f, pb.SaveAll())[0]
    for policy in (pb.Periodic(4, tier=tier(codec)), Stored(pb.Binomial(3), memory=tier(codec))):
        ct, report = pulled(f, policy)
        assert ct.tobytes() == expected.tobytes()
        (told,) = report.stores
        assert (told.lossy, told.max_absolute_error, told.max_relative_error) == (False, 0.0, 0.0)
        assert told.ratio == told.given_bytes / told.stored_bytes


@pytest.mark.parametrize("codec", LOSSY, ids=repr)
@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("f", [loop, marked])
def test_lossy_codecs_say_what_they_do(codec, tier, f):
    expected = pulled(f, pb.SaveAll())[0]
    ct, report = pulled(f, pb.Periodic(4, tier=tier(codec)))
    assert ct.tobytes() != expected.tobytes()
    assert np.allclose(ct, expected, rtol=0.05, atol=0.01)
    (told,) = report.stores
    assert told.lossy
    assert 0 < told.max_relative_error < 1e-3
    assert 0 < told.max_absolute_error < 1e-2
    assert "lossy: not the same bits, errors up to" in str(report)


def test_half_the_bytes():
    report = pulled(loop, pb.Periodic(4, tier=InMemory(AsType("f4"))))[1]
    (told,) = report.stores
    assert told.ratio == 2.0


def test_as_type_leaves_alone_what_is_no_smaller():
    codec = AsType("f4")
    for array in (np.arange(3), X.astype(np.float32), np.array([True])):
        assert codec.encode(array) is array
    assert codec.encode(X + 1j).dtype == np.complex64
    back = codec.decode(codec.encode(X + 1j), X.shape, np.dtype(complex))
    assert back.dtype == complex
    assert np.max(np.abs(back - (X + 1j))) < 1e-7


def test_what_overflows_is_told():
    def f(x):
        return np.sum(pb.fori_loop(0, 9, lambda k, u: u * x, 1e30 * x))

    _, pull = pb.vjp(f, X, policy=pb.Periodic(2, tier=Disk(codec=AsType("f2"))))
    pull(1.0)
    assert pull.report.stores[0].max_absolute_error == np.inf


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: AsType("i4"), "AsType takes a floating dtype, got 'i4'"),
        (lambda: AsType("nonsense"), "AsType takes a floating dtype, got 'nonsense'"),
        (lambda: Zlib(10), "a codec takes a level from 0 to 9, got 10"),
        (lambda: Disk(codec="zlib"), "codec= takes a codec of pullback.stores, got 'zlib'"),
        (lambda: InMemory(Zlib), "codec= takes a codec of pullback.stores, got <class .*Zlib'>"),
        (lambda: Stored(pb.Binomial(2), memory=Disk), "takes a place of pullback.stores, got <class .*Disk'>"),
        (lambda: pb.Periodic(2, tier=Disk), "or a place of pullback.stores, got <class .*Disk'>"),
        (lambda: Blosc2(level=-1), "a codec takes a level from 0 to 9, got -1"),
        (lambda: Blosc2(codec="zip"), "one of the codecs .*, got .zip."),
        (lambda: Zfp(-1.0), "Zfp takes a positive tolerance, got -1.0"),
    ],
)
def test_bad_settings(made, message):
    with pytest.raises(pb.PolicyError, match=message):
        made()


@pytest.mark.parametrize(("codec", "module", "extra"), [(Blosc2(), "blosc2", "blosc2"), (Zfp(), "zfpy", "zfp")])
@pytest.mark.parametrize("tier", TIERS)
def test_a_library_that_is_missing_is_named(codec, module, extra, tier, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(pb.PullbackError, match=rf"needs the library {module}.* install pullback\[{extra}\]"):
        pulled(loop, pb.Periodic(4, tier=tier(codec)))
