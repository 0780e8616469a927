"""A program that asks for classes in every way that Python has: patterns, dispatchers, functions that are handed on."""

from functools import singledispatch, singledispatchmethod
from numbers import Real

import numpy as np


@singledispatch
def size(x):
    raise TypeError(type(x))


@size.register
def _(x: float):
    return 2 * abs(x)


@size.register(np.ndarray)
def _(x):
    return np.sqrt(np.sum(x**2))


@size.register(list)
def _(x):
    return sum(map(size, x))


class Loss:
    @singledispatchmethod
    def of(self, x):
        raise TypeError(type(x))

    @of.register
    def _(self, x: np.ndarray):
        return np.sum(x * x)

    @of.register
    def _(self, x: float):
        return 3 * x


def meant(x):
    match x:
        case np.ndarray():
            return np.sum(x**2)
        case [float(a), Real() as b]:
            return a - b
        case float() | int():
            return 3 * x
        case {"k": float(k)}:
            return 5 * k
        case _:
            return 0.0


def run(c):
    v = np.arange(1.0, 4.0) * c
    parts = list(map(float, v))
    low = min(parts, key=float)
    asked = meant(v) + meant(c) + meant([c, 2 * c]) + meant({"k": c}) + meant("text")
    return asked + size([c, v, [v]]) + Loss().of(v) + Loss().of(float(c)) + low * parts[2]
