"""NumPy's warnings come from nests too, once each, and name the user's line; under another error state there are no
nests."""

import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated import shelf
from pullback_numba import compiling

X = np.linspace(0.5, 1.5, 2000)


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    yield
    shelf.forget()


def divided(u, c):
    v = u * 1.0 + c
    return (v - c) / c + v * 0.5


def overflown(u, c):
    return (u * c) * c * 0.0 + u


def invalid(u, c):
    v = u * 1.0 + c
    return (v - v) / c + u


def told(body, staging, warning_at, dtype):
    x = X.astype(dtype)
    values = np.ones(12, dtype)
    values[warning_at] = np.finfo(dtype).max if body is overflown else 0.0

    def loss(x):
        return np.sum(pb.fori_loop(0, 12, lambda k, u: body(u, values[k]) * 0.1, x, staging=staging))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = pb.value_and_grad(loss)(x)
    return [np.asarray(r).tobytes() for r in result[:1]], [(str(w.message), w.lineno, w.filename) for w in found]


@pytest.mark.share(2, of=lambda body, dtype: "")
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("body", [divided, overflown, invalid])
def test_warnings_are_those_of_recorded_steps(body, dtype):
    for at in (1, 7, 11):
        recorded, plain, nests = (told(body, staging, at, dtype) for staging in ("off", "numpy", "numba"))
        assert nests[0] == plain[0] == recorded[0]
        assert nests[1] == plain[1]
        assert [message for message, *_ in nests[1]] == [message for message, *_ in recorded[1]]
        assert nests[1]
    assert any(stage.record.kernels for stage in stages())


def stages():
    return [stage for one in shelf._SHELVES.values() for v in one.variants for stage in v.stages]


def test_no_warning_where_there_is_none():
    def body(k, u):
        return u * 0.5 + u / 3.0

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, body, x, staging="numba")))(X)
    assert any(stage.record.kernels for stage in stages())


def test_an_element_that_nobody_reads_warns_too():
    table = np.ones((12, X.size))
    table[7, 0] = 0.0

    def loss(x, staging):
        def body(k, u):
            w = u / table[k]
            v = u * 0.5
            v[1:] += w[1:] * 0.25
            return v

        return np.sum(pb.fori_loop(0, 12, body, x, staging=staging))

    for staging in ("off", "numpy", "numba"):
        with pytest.warns(RuntimeWarning, match="divide by zero encountered in divide") as caught:
            pb.grad(loss)(X, staging)
        assert len(caught) == 1
    assert any(stage.record.kernels for stage in stages())


@pytest.mark.parametrize("kind", ["divide", "under", "all"])
def test_under_another_error_state_there_are_no_nests(kind, monkeypatch):
    def body(k, u):
        return u * 0.5 + u / 3.0

    def loss(x):
        return np.sum(pb.fori_loop(0, 12, body, x, staging="numba"))

    pb.grad(loss)(X)
    (stage,) = stages()
    assert stage.record.kernels

    def forbidden(*_):
        raise AssertionError("a nest runs")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stage.record, "function", forbidden)
        patch.setattr(stage.advance, "function", forbidden)
        with np.errstate(**{kind: "ignore" if kind != "under" else "warn"}):
            pb.grad(loss)(X)
        with pytest.raises(AssertionError, match="a nest runs"):
            pb.grad(loss)(X)


def test_the_flags_are_those_of_this_processor():
    if not compiling.flags():
        pytest.skip("the flags of this processor are not known")
    head, tail = "def nest(x, y):\n    clear(FLAGS)\n    for k in range(1):\n", "    return test(FLAGS)\n"
    huge, inf = 1e300, np.inf
    for sign, x, y, raised in (("/", 1.0, 0.0, 1), ("*", huge, huge, 1), ("-", inf, inf, 1), ("/", 1.0, 3.0, 0)):
        found = compiling.compiled(f"{head}        x[k] = x[k] {sign} y[k]\n{tail}")(np.array([x]), np.array([y]))
        assert bool(found) == bool(raised), sign
