"""A rule gets the same for a name whoever calls it: the pull of a record, of a record executed again, a tangent."""

import numpy as np
import pytest

import pullback as pb

X, Y = np.linspace(0.5, 1.5, 4), np.linspace(1.0, 2.0, 4)


def told(value):
    """What a rule can tell of a value that it reads, by structure, type and contents."""
    if isinstance(value, tuple):
        return tuple(map(told, value))
    plain = pb.value(value)
    return (str(plain.dtype), plain.shape, plain.tolist()) if hasattr(plain, "tolist") else plain


def weighted(heard):
    """A primitive whose rules read a name of every kind."""

    @pb.primitive(residuals=("square",))
    def weighted(scale, *arrays, power=1):
        square = arrays[0] ** 2
        return scale * (square + sum(arrays[1:])) ** power, {"square": square}

    @weighted.vjp("arrays")
    def _(ct, scale, arrays, out, square, power, scale_spec, arrays_spec, out_spec, index):
        heard.append((index, told((scale, arrays, out, square)), power, scale_spec, arrays_spec, out_spec))
        inner = power * scale * (square + sum(arrays[1:])) ** (power - 1)
        return ct * inner * (2 * arrays[0] if index == 0 else 1.0)

    return weighted


def stepped(call):
    def program(x):
        for _ in pb.steps(range(3)):
            x = call(0.5, x, Y, power=2)
        return np.sum(x)

    return program


def test_a_record_executed_again_reads_what_the_first_did():
    heard: list = []
    program = stepped(weighted(heard))
    gradients, seen = [], []
    for policy in (None, pb.Binomial(1), pb.Recompute(2)):
        heard.clear()
        gradients.append(pb.grad(program, policy=policy)(X))
        seen.append(list(heard))
    assert len(seen[0]) == 3
    assert seen[1] == seen[0] == seen[2]
    for gradient in gradients[1:]:
        np.testing.assert_array_equal(gradient, gradients[0])


def test_a_tangent_reads_what_a_pull_does():
    heard: list = []
    call = weighted(heard)
    pb.grad(lambda x: np.sum(call(0.5, x, Y, power=2)))(X)
    pulled = heard[:]
    heard.clear()
    pb.jvp(lambda x: call(0.5, x, Y, power=2), (X,), (np.ones(4),))
    assert heard[0] == pulled[0]


def test_a_python_number_is_a_numpy_scalar_to_a_rule_that_may_ask_for_its_shape():
    heard: list = []
    call = weighted(heard)
    pb.grad(lambda x: np.sum(call(0.5, x, Y)))(X)
    ((_, (scale, *_), *_),) = heard
    assert scale == ("float64", (), 0.5)


@pytest.mark.parametrize("again", [pb.Binomial(1), pb.SaveAll()])
def test_a_residual_that_the_forward_has_not_returned_is_named(again):
    @pb.primitive(residuals=("lu",))
    def broken(x):
        return x * 2.0, {"ul": x}

    @broken.vjp("x")
    def _(ct, lu):
        return ct * lu

    with pytest.raises(pb.RuleError, match="did not return the residual 'lu'"):
        pb.grad(lambda x: np.sum(broken(x)), policy=again)(X)


def test_several_outputs_are_a_named_tuple_wherever_they_are_computed():
    parts = pb.primitive(lambda x: (x * 2.0, x * x), name="parts of", outputs=("class", "square"))
    parts.vjp("x", fn=lambda ct, x: sum(c * d for c, d in zip(ct, (2.0, 2 * x), strict=True) if c is not None))
    x = np.array([1.0, 2.0])
    assert type(parts(x))._fields == ("_0", "square")  # a keyword cannot be read as an attribute

    def body(k, x):
        return 0.1 * parts(x).square + x

    for staging in ("auto", "off"):
        for policy in (None, pb.Binomial(2)):
            got = pb.grad(lambda x, s=staging: np.sum(pb.fori_loop(0, 6, body, x, staging=s)), policy=policy)(x)
            same = pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, lambda k, x: 0.1 * (x * x) + x, x)))(x)
            np.testing.assert_allclose(got, same, rtol=1e-14)
    assert pb.jvp(lambda x: parts(x).square, (x,), (x,))[1].tolist() == [2.0, 8.0]
