"""Programs of stages, one after the other: loop functions and plain code, with bodies of every kind.

Every stage takes an array of n numbers to another; c is a plain array of the same shape, a a traced array that loop
bodies capture.
"""

from typing import Any

import numpy as np
from attrs import frozen
from hypothesis import strategies as st

import pullback as pb
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten

SAVE_ALL = pb.SaveAll()
KNOWN_LENGTH = (SAVE_ALL, pb.Recompute(), pb.Recompute(3), *(pb.Binomial(s) for s in range(1, 7)))


def total(carry):
    """The sum of the leaves of a carry that can be added to an array."""
    return sum(leaf for leaf in flatten(carry)[0] if carries_derivative(leaf))


def written(k, u):
    u[1:] *= u[:-1]
    u += np.sin(u)
    u *= 0.5
    return u


def leapfrog(c):
    def body(k, carry):
        before, u = carry
        after = 2 * u - before
        after[1:-1] += c[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        after[0] += 0.5
        return u, after

    return body


def twice(k, carry):
    w = np.sin(carry[0]) * carry[1]
    return w, w


BODIES: dict[
    str, Any
] = {  # name to (carry made of x and a plain array, body made of a captured array and a plain array)
    "nonlinear": (lambda x, c: x, lambda a, c: lambda k, u: np.sin(u) * u),
    "captured": (lambda x, c: x * 0.5, lambda a, c: lambda k, u: np.sin(u) * a + np.cos(a)),
    "output saved": (lambda x, c: x, lambda a, c: lambda k, u: np.exp(-u) / np.sqrt(u * u + 1)),
    "nothing saved": (lambda x, c: x, lambda a, c: lambda k, u: u + u[::-1]),
    "constant": (lambda x, c: x, lambda a, c: lambda k, u: np.sin(u) * c + c * u[::-1]),
    "constant made anew": (lambda x, c: x, lambda a, c: lambda k, u: u * np.linspace(0, 1, len(c)).astype(c.dtype)),
    "constant of the step": (lambda x, c: x, lambda a, c: lambda k, u: np.sin(u) * (c * c.dtype.type(k))),
    "two alternate": (lambda x, c: x, lambda a, c: lambda k, u: u * (c if k % 2 else c[::-1])),
    "swapped": (lambda x, c: (np.zeros_like(x), x), lambda a, c: leapfrog(c)),
    "swapped captured": (lambda x, c: (c, x), lambda a, c: leapfrog(a)),
    "passed through": (lambda x, c: (x, c), lambda a, c: lambda k, s: (np.tanh(s[0]) * s[1], s[1])),
    "one array twice": (lambda x, c: (x, x), lambda a, c: lambda k, s: (s[1], np.tanh(s[0]) * s[1])),
    "returned twice": (lambda x, c: (x, c), lambda a, c: twice),
    "captured returned": (lambda x, c: (x, c), lambda a, c: lambda k, s: (np.tanh(s[0]) * s[1], a)),
    "view carried": (lambda x, c: (x * 2)[::-1], lambda a, c: lambda k, u: (np.sin(u) * u)[::-1]),
    "only views": (lambda x, c: (x[::-1], c), lambda a, c: lambda k, s: (s[0][::-1], s[1] * s[0])),
    "in place": (lambda x, c: x, lambda a, c: written),
    "integer leaf": (
        lambda x, c: (x, 0, np.arange(len(c))),
        lambda a, c: lambda k, s: (s[0] * s[0][s[2]], s[1] + 1, s[2][::-1].copy()),
    ),
    "python float": (lambda x, c: (x, 0.5), lambda a, c: lambda k, s: (s[0] * s[1], s[1] * 0.9)),
    "python float traced": (lambda x, c: (x, 0.0), lambda a, c: lambda k, s: (np.sin(s[0]), s[1] + (s[0] ** 2).sum())),
    "reductions": (lambda x, c: x, lambda a, c: lambda k, u: u / (1 + (u * u).sum()) * u.max()),
    "buffers": (lambda x, c: x, lambda a, c: lambda k, u: np.zeros_like(u) + np.concatenate([u[1:], u[:1] * u[-1:]])),
    "nested": (lambda x, c: x, lambda a, c: lambda k, u: pb.fori_loop(0, 3, lambda j, v: np.sin(v) * u, u)),
}


@frozen
class Stage:
    """A loop function or a stretch of plain code, with the body and the number of steps; ``policy`` overrides that
    of the call."""

    kind: str
    body: str
    n: int
    policy: Any = None

    def run(self, x, a, c):
        make, bind = BODIES[self.body]
        carry, body = make(x, c), bind(a, c)
        if self.kind == "fori_loop":
            return total(pb.fori_loop(0, self.n, body, carry, policy=self.policy))
        if self.kind == "scan":
            _, ys = pb.scan(lambda s, k: (body(k, s), total(s)[:2]), carry, np.arange(self.n), policy=self.policy)
            return x + ys.sum()
        if self.kind == "while_loop":
            return total(
                pb.while_loop(
                    lambda s: s[1] < self.n, lambda s: (body(s[1], s[0]), s[1] + 1), (carry, 0), policy=self.policy
                )[0]
            )
        for k in pb.steps(self.n) if self.kind == "steps" else range(self.n):
            carry = body(k, carry)
        return total(carry)


@frozen
class Program:
    """Stages one after the other, each with the input of the first as what its body captures."""

    stages: tuple[Stage, ...]
    size: int
    dtype: str

    def __call__(self, x):
        c = np.linspace(0.2, 0.9, self.size).astype(self.dtype)
        a = x * x
        for stage in self.stages:
            x = stage.run(x, a, c) * 0.25
        return x.sum()


def programs(kinds):
    bodies, own_policies = (
        st.sampled_from(sorted(BODIES)),
        st.one_of(st.none(), st.none(), st.sampled_from(KNOWN_LENGTH)),
    )
    stages = st.lists(
        st.builds(Stage, st.sampled_from(kinds), bodies, st.integers(1, 9), own_policies), min_size=1, max_size=3
    )
    return st.builds(Program, stages.map(tuple), st.sampled_from([5, 100]), st.sampled_from(["float64", "float32"]))
