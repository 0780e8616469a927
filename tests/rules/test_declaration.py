"""Rules that return the wrong thing, and declarations of unknown names: one clear error each, nothing left."""

from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import DeclarationError, MissingRuleError, RuleError

X = np.array([1.0, 2.0, 3.0])
HERE = rf"{Path(__file__).stem}\.py:\d+"


pytestmark = pytest.mark.usefixtures("state_restored")


# Rules that return the wrong thing.
def bad_rule(rule, operands=("x",), **options):
    """A primitive of one or two operands with ``rule``."""
    if len(operands) == 1:
        prim = pb.primitive(lambda x: x * 2.0, name="doubled", **options)
    else:
        prim = pb.primitive(lambda x, y: x * y, name="times", **options)
    prim.vjp(*operands)(rule)
    return prim


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda ct: None,
            (
                r"the VJP rule of doubled for operand 'x' returned None, expected float64\[3\] \(called at .*HERE\); "
                r"return zeros"
            ),
        ),
        (
            lambda ct: ct[:2],
            (
                r"doubled for operand 'x' returned shape \(2,\), expected float64\[3\] \(called at .*HERE\); the "
                r"executor sums"
            ),
        ),
        (lambda ct: np.ones((2, 2)), r"returned shape \(2, 2\), expected float64\[3\]"),
        (
            lambda ct: (ct * 2).astype(int),
            r"returned dtype int64, expected float64\[3\] \(called at .*HERE\); return a floating",
        ),
        (lambda ct: ct > 0, r"returned dtype bool"),
        (lambda ct: "text", r"returned dtype <U4"),
        (lambda ct: (ct, ct), r"doubled.*(returned|shape)"),
        (lambda ct: np.array([ct, ct, ct, None], dtype=object), r"returned dtype object"),
    ],
)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
def test_a_bad_rule(rule, message, policy):
    prim = bad_rule(rule)
    with pytest.raises(RuleError, match=message.replace("HERE", HERE)):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: prim(u), x, policy=policy)))(X)
    with pytest.raises(RuleError, match=message.replace("HERE", HERE)):
        pb.grad(lambda x: np.sum(prim(x)))(X)


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (lambda ct, x, y: (ct * y,), "1 cotangents"),
        (lambda ct, x, y: ct * y, "ndarray"),
        (lambda ct, x, y: (ct, ct, ct), "3 cotangents"),
    ],
)
def test_a_joint_rule_of_the_wrong_count(rule, given):
    prim = bad_rule(rule, ("x", "y"))
    with pytest.raises(
        RuleError, match=rf"the joint rule of times returned {given}, expected a tuple of 2.*called at .*{HERE}"
    ):
        pb.grad(lambda x: np.sum(prim(x, x)))(X)


def test_a_rule_that_raises_names_the_forward_line():
    def explode(ct):
        message = "singular"
        raise np.linalg.LinAlgError(message)

    prim = bad_rule(explode)
    with pytest.raises(np.linalg.LinAlgError, match="singular") as caught:
        pb.grad(lambda x: np.sum(prim(x)))(X)
    assert any(
        "in the reverse pass of doubled" in note and f"{Path(__file__).name}:" in note
        for note in caught.value.__notes__
    )


def test_a_rule_that_changes_its_cotangent_cannot_hurt_the_seed():
    def greedy(ct):
        ct *= 0
        return ct

    prim = bad_rule(greedy)
    seed = np.ones(3)
    _, pull = pb.vjp(prim, X)
    with pytest.raises(RuleError, match=r"the rule of doubled for 'x' wrote into ct,.*np\.array\(x\)"):
        pull(seed)
    np.testing.assert_array_equal(seed, np.ones(3))


def test_a_missing_rule():
    prim = pb.primitive(lambda x, y: x * y, name="times")
    prim.vjp("x")(lambda ct, y: ct * y)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(prim(x, X)))(X), X)
    with pytest.raises(
        MissingRuleError,
        match=rf"times has no VJP rule for operand 'y'.*called at .*{HERE}.*@times\.vjp\('y'\).*stop_gradient",
    ):
        pb.grad(lambda y: np.sum(prim(X, y)))(X)


def test_a_declaration_of_unknown_names():
    prim = pb.primitive(lambda x: x, name="same")
    with pytest.raises(DeclarationError, match=r"same has no operand 'z'; its operands are \('x',\)"):
        prim.vjp("z")(lambda ct: ct)
    with pytest.raises(DeclarationError, match=r"same.*'w'"):
        prim.vjp("x")(lambda ct, w: ct)
    with pytest.raises(DeclarationError, match=r"same\.vjp\(\) names no operand.*'x'"):
        prim.vjp()
    table = np.ones(3)
    with pytest.raises(DeclarationError, match=r"captures the array 'table'.*[Mm]ake it an operand, a residual"):
        prim.vjp("x")(lambda ct: ct * table)
