"""The forward of a step as statements: what it computes, writes and copies is what a recorded step does."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, outside, reasons, require_same, stages, the_stage

import pullback as pb

X = np.array([0.3, -0.7, 1.1, 0.2])


@pytest.mark.parametrize(
    "x",
    [
        X.astype(np.float32),
        np.arange(6.0).reshape(2, 3) * 0.1,
        np.asfortranarray(np.arange(6.0).reshape(2, 3) * 0.1),
        (np.arange(12.0) * 0.1)[::2],
        X[::-1],
        np.array(0.5),
        np.zeros((0, 3)),
    ],
    ids=["float32", "two axes", "Fortran", "gaps", "backwards", "no axis", "empty"],
)
def test_inputs_of_other_shapes_dtypes_and_strides_have_stages_of_their_own(x):
    def body(k, u, x):
        v = u * x
        return np.sin(v) + 0.5 * u

    require_same(loop_over(body), X, x, X)
    assert len(stages()) >= 2 - (x.strides == X.strides)


@pytest.mark.parametrize(
    "key",
    [slice(0, 0), (slice(0, 0), slice(0, 0)), (slice(None), np.zeros(0, int)), (slice(1, 1), slice(None, None, 2))],
)
def test_writes_and_reads_of_no_element_are_staged(key):
    def body(k, u, x):
        v = u * 1.01
        v[key] += 0.3 * k
        v[key] = 2.0 * v[key]
        return v + np.sum(v[key] * x[key]) * x

    x = np.arange(6.0).reshape(2, 3) * 0.1
    require_same(loop_over(body), x, x + 1.0)
    assert the_stage()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_numbers(dtype):
    x = (X + 1j * X[::-1]).astype(dtype)

    def f(x):
        u = pb.fori_loop(0, 12, lambda k, u: (u - np.conj(u) * 0.2) * x * 0.5 + u.real, x)
        return np.sum(np.abs(u))

    require_same(f, x, x * 1j)
    assert stages()


def test_what_is_written_in_place_and_read_before():
    def body(k, u, x):
        v = u * x
        before = v[1:].copy()
        v[:-1] += before
        v[0] = np.sum(before)
        v[[1, 2]] -= before[:2]
        v[v.shape[0] - 1] *= 0.5
        return v

    require_same(loop_over(body), X)
    text = the_stage().record.text
    assert "] = " in text or "+=" in text or "copy_of" in text


def test_a_view_that_is_read_after_a_write_is_taken_anew():
    def body(k, u, x):
        v = u * x
        part = v[1:3]
        v[2] = np.sin(v[0])
        return v + np.sum(part * part)

    require_same(loop_over(body), X)
    assert stages()


def test_several_outputs_of_a_primitive():
    def body(k, u, x):
        fraction, whole = np.modf(u * 3)
        halves = np.split(fraction, 2)
        return np.concatenate(halves[::-1]) * x + whole * 0.1

    require_same(loop_over(body), X)
    assert stages()


def test_a_state_of_several_leaves_some_of_them_plain():
    def f(x):
        def body(k, s):
            return {"u": np.sin(s["u"]) * s["v"], "v": s["v"] * 0.9, "n": s["n"] + 1}

        s = pb.fori_loop(0, 12, body, {"u": x, "v": x[::-1] * 1.0, "n": 0})
        return np.sum(s["u"] * s["v"]) * s["n"]

    require_same(f, X)
    assert stages()


def test_outputs_and_inputs_of_scan():
    def f(x):
        def step(u, d):
            v = np.sin(u) * d + x
            return v, (np.sum(v), v[1:])

        u, (totals, tails) = pb.scan(step, x, np.linspace(0, 1, 48).reshape(12, 4))
        return np.sum(u) + np.sum(totals * totals) + np.sum(tails)

    require_same(f, X)
    rows = np.linspace(0, 1, 48).reshape(12, 4)
    require_same(lambda d: np.sum(pb.scan(lambda u, d: (np.sin(u) * d, u), d[0], d)[1]), rows)
    assert len(stages()) == 2


def test_a_while_loop():
    def f(x):
        return np.sum(pb.while_loop(lambda s: s[0] < 14, lambda s: (s[0] + 1, np.sin(s[1]) * x), (0, x))[1])

    require_same(f, X)
    assert stages()


def test_a_primitive_from_outside_is_not_staged():
    require_same(loop_over(lambda k, u, x: np.sin(outside(u)) * x), X)
    assert not stages()
    assert reasons()
