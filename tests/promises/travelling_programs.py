"""Programs that tests send to another process: a module of its own, which that process can import."""

from dataclasses import dataclass

import numpy as np

import pullback as pb

X = np.linspace(0.2, 1.4, 4)


@dataclass
class Model:
    """A structure whose class the other process has not met before."""

    c: object
    scale: float


def misfit(x):
    return np.sum(np.sin(x) * x**2)


def vector(x):
    return np.sin(x) * np.cumsum(x)


def each(x):
    return np.sin(x) * x


def number(x):
    return np.sin(x) * x


def body(k, u):
    return np.sin(u) + u / (k + 1.0)


def of_model(model):
    return np.sum(np.cos(model.c)) * model.scale


def said(k):
    return None


@pb.checkpoint
def layer(x):
    return np.tanh(x) * x


class Stack:
    """A class whose method a transform has made."""

    scale = 2.0

    @pb.checkpoint
    def layer(self, x):
        return np.tanh(x) * self.scale


def stacked(x):
    return np.sum(layer(layer(x)) + Stack().layer(x))


@pb.primitive
def softplus(x):
    return np.logaddexp(0.0, x)


@softplus.vjp("x")
def _(ct, x):
    return ct / (1.0 + np.exp(-x))


doubled = pb.primitive(np.multiply, name="doubled", operands=("x", "y"), vjps={"x": lambda ct, y: ct * y})


@pb.composite(name="plain_twice")
def twice(x):
    return doubled(x, 2.0)


def with_primitives(x):
    return np.sum(softplus(x)) + np.sum(twice(x))


def in_loop(x):
    return np.sum(pb.fori_loop(0, 6, body, x))


def marked(scale, x):
    return np.sum(pb.name(np.sin(x) * scale, "u") * x)


def sees_adjoint(step, ct):
    return None
