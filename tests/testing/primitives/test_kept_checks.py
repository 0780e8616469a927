"""check_primitive on forwards and rules that keep what they return, and on results of every wrong kind."""

import numpy as np
import pytest

import pullback as pb
from pullback.testing import check_primitive
from pullback.words.errors import CheckError

X = np.array([0.5, 1.0, -2.0])
WORK = np.empty(8)


def into_work(x):
    return np.multiply(x, x, out=WORK[: x.size].reshape(x.shape))


def keeper():
    kept = []

    def forward(x):
        kept.append(x * x)
        return kept[-1]

    return forward


def twice():
    memory = {}

    def forward(x):
        out = memory.setdefault(x.shape, np.empty(x.shape))
        out[...] = x * x
        return out

    return forward


KEEPING = {"a global": into_work, "a list": keeper(), "by shape": twice()}


@pytest.mark.parametrize("kind", KEEPING)
def test_a_forward_that_keeps_its_result(kind):
    p = pb.primitive(KEEPING[kind], name="kept", vjps={"x": lambda ct, x: 2 * ct * x})
    match = r"kept result: the output that the forward of kept returned shares memory with .*return out\.copy\(\)"
    with pytest.raises(CheckError, match=match):
        check_primitive(p, X)


@pytest.mark.parametrize("kind", KEEPING)
def test_its_remedy_works(kind):
    p = pb.primitive(lambda x: KEEPING[kind](x).copy(), name="own", vjps={"x": lambda ct, x: 2 * ct * x})
    check_primitive(p, X)


def test_a_residual_and_one_of_several_outputs_that_are_kept():
    @pb.primitive(residuals=("r",), outputs=("a", "b"))
    def both(x):
        np.multiply(x, 2, out=WORK[:3])
        return (np.multiply(x, 3, out=WORK[3:6]), x * x), {"r": WORK[:3]}

    @both.vjp("x")
    def _(ct, r):
        return (0 if ct[0] is None else 3 * ct[0]) + (0 if ct[1] is None else ct[1] * r)

    with pytest.raises(CheckError) as caught:
        check_primitive(both, X)
    assert "a that the forward" in str(caught.value) and "r that the forward" in str(caught.value)


def test_a_rule_that_keeps_its_result():
    work = [np.empty(3)]
    p = pb.primitive(lambda x: 2 * x, name="double")
    p.vjp("x", fn=lambda ct: np.multiply(ct, 2, out=work[0]))
    with pytest.raises(CheckError, match=r"kept result: the rule of double for 'x' returned an array that its next"):
        check_primitive(p, X)


def test_a_table_that_others_have():
    table = np.arange(3.0)
    p = pb.primitive(lambda x: np.broadcast_to(table, x.shape), name="table")
    p.vjp("x", fn=lambda ct: 0 * ct)
    with pytest.raises(CheckError, match="kept result"):
        check_primitive(p, X)
    np.testing.assert_array_equal(table, np.arange(3.0))  # the checker has given it back
    check_primitive(pb.primitive(lambda x: table + x, name="table", vjps={"x": lambda ct: ct}), X)


def test_results_of_another_kind_are_faults():
    with pytest.raises(CheckError, match=r"wrong result: the forward of pair returned a tuple of 2 .*outputs="):
        check_primitive(pb.primitive(lambda x: (x, x), name="pair", vjps={"x": lambda ct: ct}), X)


def test_a_view_is_no_kept_result():
    turn = pb.primitive(lambda x: x.T, name="turn", view=True, vjps={"x": lambda ct: ct.T})
    check_primitive(turn, np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        (lambda ct, x, y, needed: (ct * y * (3 - len(needed)), ct * x), "wrong value.*'x'"),
        (lambda ct, x, y, needed: (ct * y, ct * x if len(needed) == 2 else None), "None returned.*'y'"),
        (lambda ct, x, y, needed: (ct * y if "x" in needed else None, ct * x if "y" in needed else None), None),
    ],
)
def test_a_joint_rule_is_asked_for_each_operand_alone(rule, found):
    """As where the others do not depend on what is differentiated."""
    product = pb.primitive(lambda x, y: x * y, name="product")
    product.vjp("x", "y", fn=rule)
    operands = np.array([0.5, 2.0]), np.array([3.0, -1.0])
    if found is None:
        pb.testing.check_primitive(product, *operands)
        return
    with pytest.raises(pb.CheckError, match=f"(?s){found}"):
        pb.testing.check_primitive(product, *operands)
