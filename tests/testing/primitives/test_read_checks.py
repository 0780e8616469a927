"""What check_primitive replaces: integers only by those that are there, opaque operands by what cannot be asked."""

import faulthandler

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.linalg import lu_factor, lu_solve
from scipy.sparse import csr_array

import pullback as pb
from pullback.testing import check_primitive
from pullback.testing.comparing.bits import overwritten, spoiled
from pullback.testing.primitives.read_checks import Untouchable, _replacements
from pullback.words.errors import CheckError

X = np.array([0.5, 1.0, -2.0])
A = np.array([[0.1, 4.0, 1.0], [3.0, 0.2, -1.0], [1.0, 1.0, 5.0]])


# ----------------------------------------------------------------------------------------------------- integers, places
@settings(max_examples=80, deadline=None)
@given(
    arrays(st.sampled_from([np.int32, np.int64, np.uint8, np.bool_]), st.tuples(st.integers(1, 3), st.integers(1, 3)))
)
def test_integers_are_replaced_by_those_that_are_there(value):
    there = set(value.ravel().tolist())
    for other in (spoiled(value), *_replacements(value)):
        assert set(other.ravel().tolist()) <= there
        assert other.dtype == value.dtype and other.shape == value.shape
    with overwritten(value.copy()) as done:
        assert done


def checked_places(values, n):
    """What compiled code does without asking: it goes to these places."""
    assert np.all((np.asarray(values) >= 0) & (np.asarray(values) < n)), "a place outside: memory would be overwritten"


@pytest.mark.parametrize("in_object", [False, True])
def test_pivots_of_lapack_stay_places(in_object):
    faulthandler.enable()

    class Factors:
        def __init__(self, lu, piv):
            self.lu, self.piv = lu, piv

    def parts(lu, piv):
        return {"f": Factors(lu, piv)} if in_object else {"lu": lu, "piv": piv}

    options = (
        {"residuals": ("f",), "opaque": {"f": lambda f: f.lu.nbytes}} if in_object else {"residuals": ("lu", "piv")}
    )

    @pb.primitive(**options)
    def solve(a, b):
        lu, piv = lu_factor(a)
        return lu_solve((lu, piv), b), parts(lu, piv)

    def solved(lu, piv, ct):
        checked_places(piv, len(lu))
        return lu_solve((lu, piv), ct, trans=1)

    if in_object:
        solve.vjp("a", fn=lambda ct, f, out: -np.outer(solved(f.lu, f.piv, ct), out))
        solve.vjp("b", fn=lambda ct, f: solved(f.lu, f.piv, ct))
    else:
        solve.vjp("a", fn=lambda ct, lu, piv, out: -np.outer(solved(lu, piv, ct), out))
        solve.vjp("b", fn=lambda ct, lu, piv: solved(lu, piv, ct))
    if in_object:
        check_primitive(solve, A, X)
        return
    with pytest.raises(CheckError, match=r": 1 fault\n.*not differentiable again"):  # lu_solve cannot be traced
        check_primitive(solve, A, X)


def test_integer_operands_stay_places_too():
    @pb.primitive(nondiff=("at",))
    def gather(x, at):
        checked_places(at, x.size)
        return x[at]

    @gather.vjp("x")
    def _(ct, at, x_spec):
        checked_places(pb.value(at), x_spec.size)
        g = np.zeros_like(ct, shape=x_spec.shape)
        np.add.at(g, at, ct)
        return g

    check_primitive(gather, X, np.array([0, 2, 2, 1]))
    check_primitive(gather, X, np.array([1]))


def test_an_integer_that_is_alone_is_not_said_to_be_unneeded():
    p = pb.primitive(lambda x, n: x * n, name="times", nondiff=("n",), vjps={"x": lambda ct, n: ct * n})
    check_primitive(p, X, 3)
    check_primitive(p, X, np.full(3, 2))


def test_integers_that_are_not_needed_are_found():
    p = pb.primitive(lambda x, n: x * n.sum(), name="times", nondiff=("n",), vjps={"x": lambda ct, n: 6 * ct})
    with pytest.raises(CheckError, match=r"never needed.*'n'"):
        check_primitive(p, X, np.array([1, 2, 3]))


# ------------------------------------------------------------------------------------------------------ opaque operands
class Law:
    slope = 2.0

    def __call__(self, x):
        return self.slope * x


RULES = {
    "matrix": (csr_array(A), lambda x, g: g @ x, lambda ct, g: g.T @ ct),
    "attribute": (Law(), lambda x, g: g(x), lambda ct, g: g.slope * ct),
    "attribute with a default": (Law(), lambda x, g: g(x), lambda ct, g: getattr(g, "slope", 2.0) * ct),
    "call": (Law(), lambda x, g: g(x), lambda ct, g: g(ct)),
    "truth": (Law(), lambda x, g: x * (2.0 if g else 1.0), lambda ct, g: ct * (2.0 if g else 1.0)),
    "equality": ("a", lambda x, g: x * (3.0 if g == "b" else 1.0), lambda ct, g: ct * (3.0 if g == "b" else 1.0)),
    "class": (Law(), lambda x, g: g(x), lambda ct, g: ct * (2.0 if isinstance(g, Law) else 1.0)),
    "key": (1, lambda x, g: x * {1: 2.0}.get(g, 2.0), lambda ct, g: ct * {1: 2.0}.get(g, 2.0)),
    "none": (Law(), lambda x, g: x * 2.0, lambda ct, g: ct * (1.0 if g is None else 2.0)),
}


@pytest.mark.parametrize("how", RULES)
def test_an_opaque_operand_that_a_rule_asks_is_needed(how):
    value, forward, rule = RULES[how]
    p = pb.primitive(forward, name="by", nondiff=("g",))
    p.vjp("x", fn=rule)
    check_primitive(p, X, value)


def test_one_that_is_not_asked_is_not():
    p = pb.primitive(lambda x, g: g(x), name="by", nondiff=("g",), vjps={"x": lambda ct, g: 2.0 * ct})
    with pytest.raises(CheckError, match=r"never needed.*'g'"):
        check_primitive(p, X, Law())


@pytest.mark.parametrize(
    "ask",
    [bool, hash, repr, str, len, iter, lambda u: u == 1, lambda u: u.x, lambda u: u(), lambda u: u[0], "{}".format,
     lambda u: hasattr(u, "x"), lambda u: X * u, lambda u: u + 1, float, lambda u: isinstance(u, int)],
)  # fmt: skip
def test_what_cannot_be_asked(ask):
    with pytest.raises((LookupError, TypeError)):
        ask(Untouchable())
