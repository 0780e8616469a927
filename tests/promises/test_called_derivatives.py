"""Drawn programs with derivatives within derivatives, called again and again: the bits are those without staging, under
every policy, at every input.

What varies from call to call: numbers and arrays that the inner function has from around it, which of them the trace
around knows, whether arrays are written to afterwards, and what is asked for.
"""

import linecache
import re
from itertools import count

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.continued_sums import arriving_cotangents
from pullback.staging.generated import shelf
from pullback.transforms.nested import called_derivatives

POLICIES = (pb.SaveAll(), pb.Binomial(3), pb.Recompute())
FILES = count()
TERMS = (
    "np.sum(np.sin(x) * y)", "x[0] * x[1] * c", "np.dot(x, y) * c", "1.0 / np.sqrt(np.sum(x * x) + c * c)",
    "np.sum(x[1:] * y[:-1]) ** 2", "np.sum(np.exp(-x * x * c))", "np.sum(np.tanh(np.outer(x, y)))", "np.sum(y) * c",
    "np.sum(np.stack([x, y])[1] * x)", "np.sum(np.concatenate([x, y]) ** 3)", "np.sum(np.where(MASK, x, x * y))",
    "np.sum(x ** n)", "np.sum(x * WEIGHTS) * y[0]", "np.sum(np.heaviside(x, 0.5) * x)", "np.mean(x) * c ** 2",
    "np.sum(np.cumsum(x) * y)", "np.trace(np.outer(x, y))", "np.sum(np.triu(np.outer(x, y)))", "np.max(x) * c",
    "np.sum(np.abs(x) * y)", "np.sum(np.maximum(x, y))", "np.prod(x) * c", "np.sum(np.sort(x) * y)", "np.std(x) * c",
)  # fmt: skip
GRADIENTS = (
    "pb.grad(f)(X, Y, C, n)", "pb.grad(f, argnums=(0, 1))(X, Y, C, n)[1]", "pb.grad(f, argnums=1)(X, Y, C, n)",
    "sum(pb.value_and_grad(f)(X, Y, C, n))", "pb.grad(lambda x: f(x, Y, C, n))(X)",
    "pb.jvp(lambda x: f(x, Y, C, n), (X,), (T,))[1]", "pb.jvp(lambda x: f(x, *(Y, C, n)), (X,), (T,))[1]",
    "sum(pb.jvp(lambda x, y: f(x, y, *rest), (X, Y), (T, Y)))", "pb.jvp(lambda y: f(X, y, C, n), (Y,), (X,))[1]",
    "pb.jvp(lambda x, c: f(x, Y, c, n), (X, C), (T, C))[1]",
    "np.stack([pb.jvp(lambda x: f(x, *others), (X,), (unit,))[1] for unit in np.eye(3)])",
    "pb.jvp(lambda x: np.tanh(x) * Y * C, (X,), (T,))[1]", "pb.jvp(pb.grad(f), (X, Y, C), (T, T, C))[1]",
)  # fmt: skip
CHANGES = (
    "x = x + 0.1 * s", "y = y * 0.9 + 0.01 * x", "t[k % 3] = t[k % 3] + 0.25", "c = c * 1.01", "d = d * 1.1",
    "x = np.copy(x); x[0] = x[0] * 0.5", "z = z + 0.1", "n = 2 + k % 2", "WEIGHTS[k % 3] += 0.5",
    "WEIGHTS[k % 3] += 0.5 * (k == 8)", "c = c + 0.1 * (k == 9)",
    "t[0] = t[0] + (k == 7)", "total = total * 0.5",
    "y = y[::-1]", "q = np.zeros_like(x); q[1:] = x[1:] * 2.0; x = x + 0.01 * q", "d = np.float64(0.5 + 0.1 * k)",
)  # fmt: skip
VALUES = {
    "X": ("x", "x", "z", "y", "WEIGHTS"),
    "Y": ("y", "t", "z", "x * 2.0", "WEIGHTS"),
    "C": ("c", "d", "1.5", "x[0]"),
    "T": ("t", "y", "x", "z", "WEIGHTS"),
}


def program_of(draw):
    """The text of a program."""
    terms = draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=3))
    lines = ["@pb.staged" if draw(st.booleans()) else "", "def f(x, y, c, n=2):", f"    return {' + '.join(terms)}"]
    lines = [
        *lines,
        "",
        "def loss(x, y, c):",
        "    t, z, d, n, total = np.array([1.0, -0.5, 0.25]), np.ones(3), D, 2, 0.0",
    ]
    lines += [f"    for k in {draw(st.sampled_from(('range', 'pb.steps')))}(12):"]
    for _ in range(draw(st.integers(1, 2))):
        text = draw(st.sampled_from(GRADIENTS))
        for name, choices in VALUES.items():
            text = re.sub(rf"\b{name}\b", f"({draw(st.sampled_from(choices))})", text)
        chosen = [draw(st.sampled_from(VALUES[name])) for name in "YC"]
        lines += [f"        others = rest = ({chosen[0]}, {chosen[1]}, n)", "        rest = others[1:]"]
        lines += [f"        s = {text}", "        total = total + np.sum(s * s) + np.sum(s) * c"]
        lines += [f"        {draw(st.sampled_from(CHANGES))}" for _ in range(draw(st.integers(0, 2)))]
    return "\n".join([*lines, "    return total + np.sum(x) * np.sum(y) * c", ""])


def loss_of(text):
    name = f"<drawn program {next(FILES)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {
        "np": np, "pb": pb, "MASK": np.array([True, False, True]), "WEIGHTS": np.array([0.5, 1.5, -1.0]),
        "D": np.float64(0.7),
    }  # fmt: skip
    exec(compile(text, name, "exec"), names)  # noqa: S102 - a program of our own
    return names["loss"], names


OUTER = {
    "gradient": lambda loss, args, policy: pb.value_and_grad(loss, argnums=(0, 1, 2), policy=policy)(*args),
    "tangent": lambda loss, args, policy: pb.jvp(loss, args, tuple(np.cos(x) for x in args)),
    "value": lambda loss, args, policy: loss(*args),
    "gradient of a tangent": lambda loss, args, policy: pb.grad(
        lambda *xs: pb.jvp(loss, xs, tuple(np.cos(x) for x in args))[1], policy=policy
    )(*args),
}


def bits(found):
    return [(type(x), np.shape(x), np.asarray(x).tobytes()) for x in pb.ravel(found)[:1]] + [str(type(found))]


def outcome(text, outer, policy, *, staging):
    """What two runs at two inputs give, or the kind of error."""
    shelf.forget()
    loss, names = loss_of(text)
    found = []
    with np.errstate(all="ignore"), pb.using(staging=staging):
        for k in range(3):
            names["WEIGHTS"][:] = 0.5, 1.5, -1.0
            args = np.array([0.3, -0.7, 1.1]) + 0.1 * k, np.array([1.3, 0.4, -0.2]) - 0.2 * k, np.float64(0.8 + k)
            try:
                found.append(bits(OUTER[outer](loss, args, policy)))
            except Exception as error:  # noqa: BLE001 - the same kind has to come
                found.append(type(error))
    return found


def assert_same_bits(data):
    text, outer = program_of(data.draw), data.draw(st.sampled_from(sorted(OUTER)))
    policy = data.draw(st.sampled_from(POLICIES))
    compared = data.draw(st.sampled_from((0, 2)))
    wanted = outcome(text, outer, policy, staging="off")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(called_derivatives, "COMPARED", compared)
        patch.setattr(called_derivatives, "BEFORE", dict.fromkeys(called_derivatives.BEFORE, 3))
        patch.setattr(arriving_cotangents, "COMPARED", compared)
        patch.setattr(arriving_cotangents, "PAYS", 1)
        found = outcome(text, outer, policy, staging="auto")
    assert found == wanted, f"{outer}, {policy!r}, {compared}\n{text}"


checks = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=20, deadline=None, suppress_health_check=checks)
@given(st.data())
def test_drawn_programs(data):
    assert_same_bits(data)


@pytest.mark.slow
@settings(max_examples=10_000, deadline=None, suppress_health_check=checks)
@given(st.data())
def test_many_drawn_programs(data):
    assert_same_bits(data)
