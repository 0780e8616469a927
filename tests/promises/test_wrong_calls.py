"""Calls of pullback's own functions that cannot be right: each gets an error that names what was given and what to
give."""

import dataclasses

import attrs
import numpy as np
import pytest
from tests.programs.policies import every_state

import pullback as pb

X = np.array([1.0, 2.0, 3.0])
N, S, P = pb.NotDifferentiableError, pb.StructureError, pb.PolicyError


def total(x):
    return np.sum(x)


def pulled(f, ct):
    return pb.vjp(f, X)[1](ct)


def yielding(x):
    yield np.sum(x)


def looped(body, init=X):
    return pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, body, x)))(init)


CALLS = {
    "argnums of no argument": (
        lambda: pb.grad(total, argnums=1)(X),
        S,
        r"argnums=1 of total: the call gives 1 by position",
    ),
    "argnums by name": (lambda: pb.grad(total, argnums="x"), S, r"argnums='x' is no number.*names by argnames="),
    "argnums of 1.0": (lambda: pb.grad(total, argnums=1.0), S, r"argnums=1\.0 is no number"),
    "argnums of an array": (
        lambda: pb.grad(total, X),
        S,
        r"argnums=ndarray is no number.*grad\(f\)\(x\), not grad\(f, x\)",
    ),
    "argnames of no argument": (lambda: pb.grad(total, argnames="z")(X), S, r"gives no argument of that name, only x"),
    "argnames by number": (lambda: pb.grad(total, argnames=0), S, r"argnames=0 is no name.*numbers go to argnums="),
    "by keyword": (lambda: pb.grad(total)(x=X), S, r"pass the argument by position"),
    "nothing": (pb.grad(total), S, r"the call gives 0 by position"),
    "a value": (
        lambda: pb.grad(total(X))(X),
        S,
        r"is of type float64; give the function itself: grad\(f\)\(x\), not grad\(f",
    ),
    "an array": (lambda: pb.grad(X)(X), S, r"is of type ndarray; give the function itself"),
    "None": (lambda: pb.vjp(None, X), S, r"is of type NoneType; give the function itself"),
    "jvp of a value": (lambda: pb.jvp(1.0, (X,), (X,)), S, r"is of type float; give the function itself"),
    "integers": (lambda: pb.grad(total)([1, 2]), N, r"argument 0 of total has dtype int.*pass 1 as a float"),
    "a set": (lambda: pb.grad(total)({1.0}), N, r"argument 0 of total has type set"),
    "objects": (lambda: pb.grad(total)(np.array([1.0, None])), N, r"dtype object"),
    "a vector": (lambda: pb.grad(lambda x: x)(X), N, r"returned shape \(3,\); sum it, or use vjp"),
    "one element": (lambda: pb.grad(lambda x: x[:1])(X), N, r"returned shape \(1,\)"),
    "a generator": (lambda: pb.grad(yielding)(X), N, r"yielding returned generator"),
    "a pair": (lambda: pb.grad(lambda x: (total(x), {}))(X), N, r"returned a tuple; pass has_aux=True"),
    "aux that is none": (lambda: pb.grad(total, has_aux=True)(X), S, r"returns \(output, aux\), got Tracer"),
    "three results": (lambda: pb.grad(lambda x: (total(x), 1, 2), has_aux=True)(X), S, r"\(output, aux\), got tuple"),
    "a gradient of a gradient": (lambda: pb.grad(pb.grad(total))(X), N, r"returned shape \(3,\)"),
    "a seed of another shape": (lambda: pulled(np.sin, 1.0), S, r"cotangent has shape \(\), the output.*has \(3,\)"),
    "a seed of numbers": (lambda: pulled(np.sin, [1.0, 2.0, 3.0]), S, r"cotangent number 0 has shape \(\)"),
    "a seed in a tuple": (lambda: pulled(np.sin, (X,)), S, r"the cotangent has structure"),
    "a seed too few": (lambda: pulled(lambda x: (x, x), X), S, r"give one leaf per output leaf"),
    "a seed of another key": (lambda: pulled(lambda x: {"a": x}, {"b": X}), S, r"\{'b': \*\}.*\{'a': \*\}"),
    "a complex seed": (lambda: pulled(np.sin, X * 1j), S, r"dtype complex128.*give a real one"),
    "tangents without a tuple": (lambda: pb.jvp(np.sin, X, X), S, r"write \(primal,\) for one"),
    "a tangent of another shape": (lambda: pb.jvp(np.sin, (X,), (np.ones(4),)), S, r"float64\[4\], the argument is"),
    "a mode": (lambda: pb.jacobian(np.sin, mode="fwd"), S, r"choose one of 'auto', 'forward', 'reverse'"),
    "a Hessian of a vector": (lambda: pb.hessian(np.sin)(X), N, r"sin returned shape \(3,\)"),
    "a sum as elementwise": (lambda: pb.elementwise_grad(np.cumsum)(X), N, r"cumsum is not elementwise"),
    "a body without return": (lambda: looped(lambda k, u: None), S, r"step 0 returned.*None.*return what came in"),
    "a carry that shrinks": (lambda: looped(lambda k, u: u[1:]), S, r"keeps shape and dtype"),
    "a loop's arguments": (
        lambda: pb.fori_loop(X, lambda k, u: u, 0, 3),
        S,
        r"write fori_loop\(lower, upper, body, init\)",
    ),
    "a scan's arguments": (lambda: pb.scan(0.0, lambda c, x: (c, x), X), S, r"write scan\(step, init, xs\)"),
    "a scan of a number": (lambda: pb.scan(lambda c, x: (c, x), 0.0, 3.0), S, r"a leaf of xs has no axis"),
    "a step that gives one": (lambda: pb.scan(lambda c, x: c, 0.0, X), S, r"return \(carry, y\), with None for y"),
    "lengths": (lambda: pb.scan(lambda c, x: (c, x), 0.0, (X, np.ones(4))), S, r"\[3, 4\]; give one length"),
    "a condition without return": (
        lambda: pb.while_loop(lambda u: None, lambda u: u, X),
        S,
        r"the condition returned None; is its return missing",
    ),
    "a condition of many": (
        lambda: pb.while_loop(lambda u: u < 3, lambda u: u, X),
        S,
        r"the condition returned an array of shape \(3,\); take np.any",
    ),
    "a fixed point that runs away": (
        lambda: pb.fixed_point(lambda p, x: 2 * x + p, 1.0, 1.0, max_steps=10_000),
        pb.ConvergenceError,
        r"is nan, tol is .*; give a start nearer",
    ),
    "odeint's arguments": (lambda: pb.odeint(lambda t, y: -y, X, [0.0, 1.0]), S, r"return the like of the state"),
    "odeint to a time": (lambda: pb.odeint(lambda y, t: -y, X, 1.0), S, r"give a vector of times"),
    "a tag": (lambda: pb.name(X, 3), S, r"takes a string as the tag"),
    "a function as a primitive": (
        lambda: pb.register(np.sin),
        pb.RegistrationError,
        r"sin is no primitive; make one of it",
    ),
    "a word for trap": (lambda: pb.trap("NaN").__enter__(), P, r"'nan', 'inf' or both"),
    "a policy's name": (lambda: pb.grad(total, policy="recompute")(X), P, r"got 'recompute'; pass an instance"),
    "a policy's class": (lambda: pb.grad(total, policy=pb.Binomial)(X), P, r"pass an instance, Binomial\(\.\.\.\)"),
    "a pull that is closed": (lambda: closed()(X), pb.TracerError, r"this pull is closed.*call vjp again"),
    "a vector of another length": (
        lambda: pb.fun_and_grad(total, X)(np.ones(4)),
        S,
        r"float64\[4\], the structure takes",
    ),
}


def closed():
    _, pull = pb.vjp(np.sin, X)
    pull.close()
    return pull


@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_call_is_told_what_to_give(name):
    call, kind, said = CALLS[name]
    with pytest.raises(kind, match=said):
        call()


# ---------------------------------------------------------------------------------------------- policies of one's own
class Ordinary:
    def __init__(self, period=1):
        self.period = period

    def actions(self, n, *, state_bytes, tape_bytes):
        return every_state(n)


class WithAttribute(pb.MemoryPolicy):
    def __init__(self, period=1):
        self.period = period


@dataclasses.dataclass
class Changeable(pb.MemoryPolicy):
    period: int = 1


@attrs.frozen
class WithoutYield(pb.MemoryPolicy):
    def actions(self, n, *, state_bytes, tape_bytes):
        list(every_state(n))


@attrs.frozen
class OfOneParameter(pb.MemoryPolicy):
    def actions(self, n):
        return every_state(n)


@attrs.frozen
class WithoutActions(pb.MemoryPolicy):
    pass


POLICIES = {
    Ordinary: r"got <.*Ordinary object.*; derive the class from it, as @attrs\.frozen class Ordinary\(pullback",
    WithAttribute: r"WithAttribute\.period cannot be set: .* frozen value.*a line period: int, and no __init__",
    Changeable: r"Changeable\.period cannot be set.*@attrs\.frozen class Changeable",
    WithoutYield: r"WithoutYield\(\) gives no actions.*Write actions\(self, n, \*, .*\), a generator",
    OfOneParameter: r"OfOneParameter\(\) gives no actions.*unexpected keyword.*a generator",
    WithoutActions: r"WithoutActions yields no actions.*Write actions",
}


def by_steps(x):
    u = x
    for _ in pb.steps(3):
        u = np.sin(u) * x
    return np.sum(u)


def by_loop(x):
    return np.sum(pb.fori_loop(0, 3, lambda k, u: np.sin(u) * x, x))


@pytest.mark.parametrize("program", [by_steps, by_loop])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_wrong_policy_is_told_what_it_lacks(policy, program):
    with pytest.raises(P, match=POLICIES[policy]):
        pb.grad(program, policy=policy())(X)


@attrs.frozen
class AsTold(pb.MemoryPolicy):
    period: int = 1

    def actions(self, n, *, state_bytes, tape_bytes):
        yield from every_state(n)


@dataclasses.dataclass(frozen=True)
class AsDataclass(pb.MemoryPolicy):
    period: int = 1

    def actions(self, n, *, state_bytes, tape_bytes):
        return list(every_state(n))


class WithoutSettings(pb.MemoryPolicy):
    def actions(self, n, *, state_bytes, tape_bytes):
        return every_state(n)


@pytest.mark.parametrize("program", [by_steps, by_loop])
@pytest.mark.parametrize("policy", [AsTold, AsDataclass, WithoutSettings])
def test_a_policy_as_told_is_one(policy, program):
    np.testing.assert_array_equal(pb.grad(program, policy=policy())(X), pb.grad(program)(X))
    assert policy() == policy()
    assert hash(policy()) == hash(policy())
    assert repr(policy()).startswith(policy.__name__)
