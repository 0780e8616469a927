"""Pulls that write into a cotangent, or into what a rule has made: the same bits as those that make new arrays, and
never in anybody else's array."""

import inspect
import tracemalloc

import numpy as np
import pytest
from tests.rules.new_arrays import LAYOUTS, TABLE, N, drawn, same, wholly

import pullback as pb
from pullback.rules import forms, generated_pulls

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("prim", TABLE, ids=lambda prim: prim.name)
def test_the_table_has_the_same_bits(monkeypatch, prim, dtype, special):
    for layout in LAYOUTS:
        operands = [drawn(dtype, layout, special=special) for _ in prim.operands]
        seed = drawn(dtype, layout, special=special)
        factor = drawn(dtype, "vector", special=special).reshape(seed.shape)

        def run(operands=operands, seed=seed, factor=factor):
            with np.errstate(all="ignore"):
                _, pull = pb.vjp(lambda *xs: prim(*xs) * factor, *operands)
                return pull(seed)

        same(*wholly(monkeypatch, run))


def expression(x, a):
    return np.tanh(a * x + 0.5) * np.exp(-x * x) + np.sqrt(1.0 + x * x) - np.log1p(x * a)


WRITTEN = {
    "product and difference": lambda x: (1.0 - x * 3.0) * 2.0,
    "negative": lambda x: -np.negative(x * 3.0),
    "masked product": lambda x: np.exp(x) * 2.0,
    "masked quotient": lambda x: np.sqrt(x) * 2.0,
}


@pytest.mark.parametrize("name", WRITTEN)
def test_large_cotangents_are_written(monkeypatch, name):
    x, seed = np.ones(50 * N), np.ones(50 * N)
    _, pull = pb.vjp(WRITTEN[name], x)

    def peak():
        pull(seed)
        tracemalloc.start()
        pull(seed)
        found = tracemalloc.get_traced_memory()[1] / x.nbytes
        tracemalloc.stop()
        return found

    found, otherwise = wholly(monkeypatch, peak)
    assert found < otherwise - 0.9


def test_what_is_masked_has_the_same_bits(monkeypatch):
    x = RNG.uniform(-0.5, 0.9, N)
    x[:9] = 0.0

    def f(x):
        y = np.where(x > 0.0, np.sqrt(x) * np.log1p(x * 3.0), -x * x)
        return np.sum(y * np.exp(-y))

    with np.errstate(all="ignore"):
        same(*wholly(monkeypatch, lambda: (pb.grad(f)(x),)))


@pytest.mark.parametrize("policy", [None, pb.Binomial(2), pb.Recompute()], ids=repr)
def test_programs_have_the_same_bits(monkeypatch, policy):
    x, a = RNG.uniform(0.2, 0.9, N), RNG.uniform(0.2, 0.9, N)

    def f(x, a):
        for _ in pb.steps(4):
            y = expression(x, a)
            x, a = y - x * a, a + 0.1 * (y + y)
            x[3:] *= 0.5
        return np.sum(x * x) + np.sum(a)

    found = pb.grad(f, (0, 1), policy=policy)(x, a)
    same(found, pb.grad(f, (0, 1))(x, a))
    same(*wholly(monkeypatch, lambda: pb.grad(f, (0, 1), policy=policy)(x, a)))


SQUARES = {
    "alone": lambda x: x * x,
    "once more": lambda x: (x * x) * (x * x),
    "read before": lambda x: np.sin(x) + x * x,
    "read after": lambda x: read_after(x * 1.5),
    "read on both sides": lambda x: read_around(x * 1.5),
    "ufunc": lambda x: np.multiply(x, x) * x,
    "views": lambda x: x[1:] * x[1:] + x[:-1] * x[1:],
    "written": lambda x: written(x * 2.0),
    "one element": lambda x: x * np.sum(x * x),
    "passed on": lambda x: passed_on(x * 2.0),
}


def read_after(y):
    return y * y + np.sin(y)


def read_around(y):
    return np.cos(y), y * y + np.sin(y), y * 2.0


def passed_on(y):
    return y, y + y * y, y - y * y


def written(y):
    z = y * y
    y[:5] = 3.0
    return z + y * y


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("name", SQUARES)
def test_squares_have_the_same_bits(monkeypatch, name, dtype):
    for layout in LAYOUTS:
        x = drawn(np.float32 if dtype is np.float32 else np.float64, layout, special=False).astype(dtype)
        seed = RNG.uniform(0.2, 0.9, x.size).astype(dtype)

        def run(x=x, seed=seed):
            out, pull = pb.vjp(SQUARES[name], x)
            several = out if type(out) is tuple else (out,)
            given = [seed[: one.size].reshape(one.shape) for one in several]
            return pull(tuple(given) if type(out) is tuple else given[0])

        same(*wholly(monkeypatch, run))


def unchanged(arrays):
    return [array.tobytes() for array in arrays]


def test_seeds_of_the_user_are_never_written():
    x, seed = RNG.uniform(0.2, 0.9, N), RNG.uniform(0.2, 0.9, N)
    for f in (np.negative, lambda x: x * 3.0, lambda x: x * x, np.exp, np.sqrt):
        before = unchanged([x, seed])
        out, pull = pb.vjp(f, x)
        held = out.copy()
        first = pull(seed)
        kept = unchanged(first)
        several = pull([seed, seed])
        (second,) = pull(seed)
        assert unchanged([x, seed]) == before
        assert unchanged(first) == kept == unchanged(several[0]) == unchanged(several[1]) == unchanged([second])
        assert out.tobytes() == held.tobytes()


def test_a_result_that_is_the_next_seed_stays():
    x = RNG.uniform(0.2, 0.9, N)
    _, pull = pb.vjp(lambda x: x * 3.0, x)
    results = [np.ones(N)]
    for _ in range(4):
        results.append(pull(results[-1])[0])
    for k, result in enumerate(results):
        np.testing.assert_array_equal(result, 3.0**k)


def test_cotangents_that_others_see_are_not_written():
    """A cotangent that goes to several values, is a view of another, or was handed out."""
    x, w = RNG.uniform(0.2, 0.9, N), RNG.uniform(0.2, 0.9, N)
    held = []

    def f(x):
        y = pb.name(x * 2.0, "y")
        z = y + x  # one cotangent for both
        u = pb.name(z.reshape(-1), "u")
        return np.sum(-u * w) + np.sum((y - z) * w) + np.sum(z[::1] * w)

    found = pb.grad(f, on_adjoint={"y": lambda _, ct: held.append((ct, ct.copy())), "u": lambda _, ct: held.append(
        (ct, ct.copy()))})(x)  # fmt: skip
    np.testing.assert_allclose(found, (-3 + (2 - 3) + 3) * w, rtol=1e-12)
    assert len(held) == 2
    for given, copy in held:
        np.testing.assert_array_equal(given, copy)
    out, pull = pb.vjp(f, x)
    pull(1.0)
    y, u = pull.adjoint("y").copy(), pull.adjoint("u").copy()
    kept = pull.adjoint("y")
    pull(2.0)
    np.testing.assert_array_equal(kept, y)
    np.testing.assert_array_equal(pull.adjoint("u"), 2 * u)
    assert out == f(x)


def test_rules_that_keep_what_they_are_given_keep_it():
    """A primitive of one's own may store a cotangent, or a view of it."""
    x, stored = RNG.uniform(0.2, 0.9, N), []
    spy = pb.primitive(
        lambda x: x + 0.0, name="spy", operands=("x",), vjps={"x": lambda ct: (stored.append(ct[5:]), ct)[1]}
    )
    (found,) = pb.vjp(lambda x: spy(-x * 2.0) * 5.0, x)[1](np.ones(N))
    np.testing.assert_array_equal(found, -10.0)
    np.testing.assert_array_equal(stored[0], 5.0)


def test_what_a_rule_computes_is_seen():
    def of(name, number=0):
        prim = next(prim for prim in TABLE if prim.name == name)
        n = len(prim.operands)
        form = generated_pulls.make_form(prim, tuple(range(n)), n, frozenset(), exact=True, site=-1)
        rule = form.rules[number][0]
        return generated_pulls.consuming_lines(generated_pulls.seen(form, rule, {}), number, {}, set(), consumes=True)

    assert "g = in_place1(ct, record[4])" in "".join(of("multiply", 1))
    assert "(1 + record[2])" in "".join(of("log1p"))
    assert of("power") == of("absolute") == of("add") == []


def test_a_rule_that_is_seen_stands_in_the_pull():
    def text_of(name, number):
        prim = next(prim for prim in TABLE if prim.name == name)
        form = generated_pulls.make_form(prim, (0,), number, frozenset(), exact=True, site=-1)
        return inspect.getsource(forms.PULLS[form.opcode])

    assert "g = (ct * ufunc_cos(record[2]))" in text_of("sin", 1)
    assert "rule0(ct, record[2])" in text_of("log", 1)  # it masks, which is no text
    assert "g = ct\n" in text_of("add", 2)
