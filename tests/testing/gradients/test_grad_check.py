"""check_grads: right derivatives pass at every order and in both modes, wrong ones are found and named."""

import math
from typing import NamedTuple

import numpy as np
import pytest

import pullback as pb
from pullback.policies.binomial import Binomial
from pullback.rules.declaration import primitive
from pullback.testing import check_grads
from pullback.words.errors import CheckError

X = np.array([0.4, -1.2, 2.0])


class Pair(NamedTuple):
    a: np.ndarray
    b: float


RIGHT = {
    "elementwise": (lambda x: np.sin(x) * x, (X,)),
    "two arguments": (lambda x, y: np.exp(x * y).sum(), (X, np.array([[0.3], [0.1]]))),
    "structures": (lambda p, d: {"out": (p.a * d["w"][0], p.b**2)}, (Pair(X, 1.5), {"w": [X + 3, "a name"], "n": 4})),
    "float32": (lambda x: np.sin(x) * x, (X.astype("f"),)),
    "complex": (lambda z: np.exp(z) * np.conj(z), (X + 0.3j,)),
    "complex to real": (lambda z: np.abs(z) ** 2, (X + 0.3j,)),
    "many elements": (lambda x: np.tanh(x).sum(), (np.linspace(-1, 1, 300),)),
    "0-d": (lambda x: x * x * x, (2.0,)),
    "an integer beside": (lambda x, n: x**n, (X, 3)),
    "empty": (lambda x: x * 2.0, (np.zeros(0),)),
    "several outputs": (lambda x: (x * 2.0, np.sum(x) ** 2, 7), (X,)),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_derivatives_pass(name):
    f, args = RIGHT[name]
    check_grads(f, args)


def test_a_single_argument_need_not_be_a_tuple():
    check_grads(np.sin, X)


def test_third_order():
    check_grads(lambda x: np.sum(x**4), (X,), order=3)


def test_under_a_policy():
    def f(x):
        for _ in range(6):
            x = x + 0.1 * np.sin(x)
        return x

    check_grads(f, (X,), order=1, policy=Binomial(2))


def wrong(rule):
    return primitive(np.sin, name="sine", operands=("x",), vjps={"x": rule})


@pytest.mark.parametrize("x", [X, X.astype("f"), X + 0.2j, np.linspace(0, 1, 100)], ids=["f8", "f4", "c16", "many"])
def test_wrong_gradient(x):
    sine = wrong(lambda ct, x: ct * np.cos(x) * 1.001)

    def f(x):
        return sine(x) ** 2

    words = r"check_grads\(f\).*\n.*first-order wrong gradient: <J'ct, v> of f is .*, expected <ct, Jv> ="
    with pytest.raises(CheckError, match=words):
        check_grads(f, (x,), modes=("rev",))


def test_wrong_forward_derivative_where_the_reverse_is_right():
    def rule(ct, x):
        return ct.copy() * np.cos(x) + 0.0 * ct**2 if isinstance(ct, np.ndarray) else 1.5 * ct * np.cos(x)

    check_grads(wrong(rule), (X,), order=1, modes=("rev",))
    with pytest.raises(CheckError, match=r"first-order wrong forward derivative: Jv of .* at output element"):
        check_grads(wrong(rule), (X,), order=1, modes=("fwd",))


def test_second_order_that_treats_a_value_as_constant():
    frozen = {}

    def forward(x):
        frozen["c"] = np.cos(x).tolist()
        return np.sin(x)

    sine = primitive(forward, name="sine", vjps={"x": lambda ct: ct * frozen["c"]})
    check_grads(sine, (X,), order=1)
    with pytest.raises(CheckError, match="second-order wrong gradient"):
        check_grads(sine, (X,), order=2)


def test_a_jvp_rule_that_cannot_be_differentiated_is_found_at_second_order():
    """Its value is right, so that forward over forward, and reverse over forward, alone tell."""

    def tangent(t, x):
        return t * np.cos(pb.value(x))

    # The name is the operand's.
    rules = {"vjps": {"x": lambda ct, x: ct * np.cos(x)}, "jvps": {"x": tangent}}
    sine = primitive(lambda x: np.sin(x), name="sine", **rules)  # noqa: PLW0108
    check_grads(sine, (X,), order=1)
    check_grads(sine, (X,), order=2, modes=("rev",))
    with pytest.raises(
        CheckError, match=r"second-order modes differ: .* by reverse over forward, .* by reverse over reverse"
    ):
        check_grads(sine, (X,), order=2)
    with pytest.raises(CheckError, match=r"second-order modes differ: .* by forward over forward"):
        check_grads(sine, (X,), order=2)
    with pytest.raises(CheckError, match=r"not differentiable again: second-order modes differ"):
        pb.testing.check_primitive(sine, X)


def test_a_mode_that_raises_at_second_order_is_reported():
    def tangent(t, x):
        return t * np.array([math.cos(v) for v in x])

    # The name is the operand's.
    rules = {"vjps": {"x": lambda ct, x: ct * np.cos(x)}, "jvps": {"x": tangent}}
    sine = primitive(lambda x: np.sin(x), name="sine", **rules)  # noqa: PLW0108
    with pytest.raises(CheckError, match=r"second-order reverse over forward raised: .*ConversionError"):
        check_grads(sine, (X,), order=2)


def test_what_tracing_refuses_is_reported():
    with pytest.raises(CheckError, match=r"first-order rev raised: .*ConversionError"):
        check_grads(lambda x: float(x[0]) * x, (X,))


def test_no_numeric_derivative():
    with pytest.raises(CheckError, match=r"no first-order numeric derivative: .* has none at these arguments"):
        check_grads(lambda x: np.sqrt(x).sum(), (np.zeros(2),))


@pytest.mark.parametrize(
    ("f", "args"),
    [
        pytest.param(np.tan, (1e30,), id="every step is lost in the rounding of the operand"),
        pytest.param(
            lambda x: (np.sum(x).astype(np.float16), x * x),
            (X.astype("f2"),),
            id="one output is rounded more than others",
        ),
        pytest.param(
            np.polydiv,
            (np.linspace(0.3, 0.9, 6).astype("f2"), np.array(0.3, "f2")),
            id="the number of outputs changes with the operands",
        ),
    ],
)
def test_no_numeric_derivative_is_no_wrong_gradient(f, args):
    with pytest.raises(CheckError, match="no first-order numeric derivative"):
        check_grads(f, args, order=1)


def test_no_output():
    with pytest.raises(CheckError, match=r"no output: .* returned nothing floating or complex"):
        check_grads(lambda x: {"n": 3}, (X,))


@pytest.mark.parametrize(
    ("options", "words"),
    [({"modes": ("forward",)}, "knows the modes .* got 'forward'"), ({"order": 0}, "order >= 1, got 0")],
)
def test_bad_options(options, words):
    with pytest.raises(ValueError, match=words):
        check_grads(np.sin, (X,), **options)


def test_nothing_to_differentiate():
    with pytest.raises(ValueError, match="no argument of sin is floating or complex"):
        check_grads(np.sin, (np.arange(3),))
