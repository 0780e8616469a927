"""Whatever raises in the reverse pass tells the user's line of the forward, and the step: in our own texts, as a
note in any other."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback.schedules import Advance, EndForward, EndReverse, Load, Record, Reverse, Save
from pullback.words.errors import (
    ConstantChangedError,
    ReplayError,
    RuleError,
    ScheduleError,
    StructureError,
    TracerError,
)

X = np.array([1.0, 2.0, 3.0])
POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Recompute(2), pb.Binomial(1), pb.Binomial(2)]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)


def faulty(rule, name="faulty"):
    """A primitive that doubles, with a rule that is wrong."""
    made = pb.primitive(lambda x: x * 2.0, name=name)
    made.vjp("x", fn=rule)
    return made


def raising(ct, x):
    return np.linalg.solve(np.zeros((3, 3)), ct)


def dividing(ct, x):
    return ct[7]


def refusing(ct, x):
    message = "the rule refuses"
    raise pb.NotDifferentiableError(message)


FAULTS = {
    "NumPy's own": (raising, np.linalg.LinAlgError, "Singular matrix"),
    "Python's own": (dividing, IndexError, "out of bounds"),
    "a rule's refusal": (refusing, pb.NotDifferentiableError, "the rule refuses"),
    "a shape": (lambda ct, x: np.ones(7), RuleError, r"returned shape \(7,\)"),
    "None": (lambda ct, x: None, RuleError, "returned None"),
    "a dtype": (lambda ct, x: np.ones(3, int), RuleError, "returned dtype int64"),
    "a tuple": (lambda ct, x: (ct, ct), RuleError, "returned 2 cotangents"),
}


def plain(p):
    return lambda x: np.sum(p(x * 1.0) * 3.0)


def marked(p):
    def f(x):
        u = x
        for k in pb.steps(5):
            u = p(u) if k == 2 else u * 1.0
        return np.sum(u)

    return f


def by_fori_loop(p):
    def body(k, u):
        return p(u) if k == 2 else u * 1.0

    return lambda x: np.sum(pb.fori_loop(0, 5, body, x))


def by_scan(p):
    def body(u, k):
        return (p(u) if k == 2 else u * 1.0), None

    return lambda x: np.sum(pb.scan(body, x, np.arange(5))[0])


def by_while_loop(p):
    def body(carry):
        u, k = carry
        return (p(u) if k == 2 else u * 1.0), k + 1

    return lambda x: np.sum(pb.while_loop(lambda carry: carry[1] < 5, body, (x, 0))[0])


def in_a_checkpoint(p):
    return lambda x: np.sum(pb.checkpoint(lambda v: p(v) * 1.0)(x * 1.0))


PROGRAMS = [plain, marked, by_fori_loop, by_scan, by_while_loop, in_a_checkpoint]
LOOPS = {by_fori_loop: "fori_loop", by_scan: "scan", by_while_loop: "while_loop"}


def line_of(function, word="p("):
    """``file:line`` of the first line of a function's source that holds a word."""
    code = function.__code__
    with open(__file__, encoding="utf-8") as source:  # noqa: PTH123 - one line of one file
        lines = source.readlines()
    found = next(k for k in range(code.co_firstlineno, len(lines)) if word in lines[k])
    return rf"{re.escape(__file__)}:{found + 1}\b"


def said(error):
    """The text of an error and its notes."""
    return "\n".join([str(error), *getattr(error, "__notes__", ())])


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("program", PROGRAMS)
@every_policy
def test_a_rule_that_fails(program, fault, policy):
    rule, cls, text = FAULTS[fault]
    with pytest.raises(cls, match=text) as caught:
        pb.grad(program(faulty(rule)), policy=policy)(X)
    assert re.search(rf"faulty.*called at {line_of(program)}", said(caught.value)), said(caught.value)
    if program in LOOPS:
        loop = re.escape(f"step 2 of {LOOPS[program]}")
        assert re.search(loop, said(caught.value)), said(caught.value)
        assert re.search(rf"reverse pass of loop, called at {line_of(program, 'pb.')}", said(caught.value)), said(
            caught.value
        )
    if issubclass(cls, pb.PullbackError):
        assert not getattr(caught.value, "__notes__", ())  # all of it is in the text
        assert str(caught.value).endswith(f"({cls.code}: run pullback explain {cls.code})")


def test_a_joint_rule_with_another_count():
    both = pb.primitive(lambda x, y: x * y, name="both")
    both.vjp("x", "y", fn=lambda ct, x, y: (ct,))
    with pytest.raises(
        RuleError, match=rf"joint rule of both returned 1 cotangents, .*\(called at {re.escape(__file__)}:\d+\)"
    ):
        pb.grad(lambda x: np.sum(both(x, x * 1.0)))(X)


@pytest.mark.parametrize("program", [plain, marked, by_fori_loop])
def test_in_a_gradient_of_a_gradient(program):
    def inner(x):
        return np.sum(pb.grad(program(faulty(lambda ct, x: np.cumsum(ct * x)[7])))(x))

    with pytest.raises(IndexError, match="out of bounds") as caught:
        pb.grad(inner)(X)
    assert re.search(rf"faulty, called at {line_of(program)}", said(caught.value)), said(caught.value)


# ----------------------------------------------------------------------------------------------------------- re-running


class Once:
    """A forward that works a given number of times."""

    def __init__(self, times):
        self.left = times

    def __call__(self, x):
        self.left -= 1
        if self.left < 0:
            message = "no more"
            raise ZeroDivisionError(message)
        return x * 2.0


def every_step(p):
    def f(x):
        u = x
        for _ in pb.steps(6):
            u = p(u)
        return np.sum(u)

    return f


@pytest.mark.parametrize(("program", "times"), [(every_step, 6), (in_a_checkpoint, 1)])
@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_a_forward_that_fails_when_it_is_executed_again(program, times, policy):
    p = pb.primitive(Once(times), name="once", operands=("x",))
    p.vjp("x", fn=lambda ct, x: ct * 2.0)
    after = pb.primitive(lambda x: x * x, name="after")
    after.vjp("x", fn=lambda ct, x: ct * 2.0 * x)
    with pytest.raises(ZeroDivisionError, match="no more") as caught:
        pb.grad(program(lambda u: after(p(u))), policy=policy)(X)
    assert re.search(rf"as once, called at {re.escape(__file__)}:\d+, was executed again", said(caught.value)), said(
        caught.value
    )


@pytest.mark.parametrize("policy", POLICIES[1:], ids=repr)
def test_a_body_that_fails_when_it_is_called_again(policy):
    once = Once(6)

    def f(x):
        return np.sum(pb.fori_loop(0, 6, lambda k, u: np.sin(once(u)), x))

    with pytest.raises(ZeroDivisionError, match="no more") as caught:
        pb.grad(f, policy=policy)(X)
    assert re.search(rf"reverse pass of loop, called at {line_of(f, 'fori_loop')}", said(caught.value)), said(
        caught.value
    )


def test_a_body_that_does_something_else_when_it_is_called_again():
    calls = []

    def body(k, u):
        calls.append(k)
        return u * (1.0 + 0.001 * len(calls))

    def f(x):
        return np.sum(pb.fori_loop(0, 9, body, x))

    with pytest.raises(
        ReplayError, match=rf"other bytes.*\(in the reverse pass of loop, called at {line_of(f, 'fori_loop')}\)"
    ):
        pb.grad(f, policy=pb.Binomial(1))(X)


def test_a_carry_that_changes_when_it_is_called_again():
    calls = []

    def body(k, u):
        calls.append(k)
        return u * 1.0 if len(calls) < 9 else u[:2]

    def f(x):
        return np.sum(pb.fori_loop(0, 6, body, x))

    with pytest.raises(
        StructureError,
        match=rf"leaf 0 of the carry.*\(in the reverse pass of loop, called at {line_of(f, 'fori_loop')}\)",
    ):
        pb.grad(f, policy=pb.Recompute())(X)


def test_a_traced_value_that_appears_late():
    def f(x):
        model = SimpleNamespace(x=x)  # what a closure does not show
        return np.sum(pb.fori_loop(0, 6, lambda k, u: u * model.x if k == 1 else u * 1.0, x * 1.0))

    with pytest.raises(
        TracerError,
        match=rf"step 1 uses a traced value of an object.*"
        rf"\(in the reverse pass of loop, called at {line_of(f, 'fori_loop')}\)",
    ):
        pb.grad(f, policy=pb.Binomial(1))(X)


# ------------------------------------------------------------------------------------------------------------- policies


@frozen
class Wrong(pb.MemoryPolicy):
    """Reverses the last step twice."""

    def actions(self, n, *, state_bytes, tape_bytes):
        yield Save("state", 0)
        yield Advance(0, n)
        yield EndForward()
        yield Load("state", 0)
        yield Advance(0, n - 1)
        yield Record(n - 1)
        yield Reverse(n - 1)
        yield Reverse(n - 1)
        yield EndReverse()


def test_a_policy_that_is_wrong_in_the_reverse_pass():
    for program, where in ((marked, "steps that begin at"), (by_fori_loop, "loop, called at")):
        with pytest.raises(ScheduleError, match=rf"in the reverse pass of (the )?{where} {re.escape(__file__)}:\d+"):
            pb.grad(program(np.sin), policy=Wrong())(X)


# ---------------------------------------------------------------------------------------------------------- the callers


def test_what_the_caller_of_a_pull_does_wrong():
    mine = X.copy()
    _, pull = pb.vjp(lambda x: np.sum(x**2), mine)
    with pytest.raises(
        StructureError, match=rf"the cotangent has shape \(2,\), .*differentiated at {re.escape(__file__)}:\d+ has \(\)"
    ):
        pull(np.ones(2))
    with pytest.raises(
        StructureError, match=rf"the cotangent has structure .*differentiated at {re.escape(__file__)}:\d+"
    ):
        pull((1.0, 2.0))
    mine[0] = 7.0
    with pytest.raises(
        ConstantChangedError, match=rf"between the forward pass \(at {re.escape(__file__)}:\d+\) and the reverse pass"
    ):
        pull(1.0)
    pull.close()
    with pytest.raises(
        TracerError, match=rf"pull is closed.*differentiated at {re.escape(__file__)}:\d+\); call vjp again"
    ):
        pull(1.0)
