"""What a rule asks of a number of Python's it asks in every step: a stage made with one number serves all others."""

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.elementwise.operators import OPERATORS
from pullback.primitives.elementwise.powers import POWERS
from pullback.primitives.elementwise.ufunc_rules import ELEMENTWISE
from pullback.testing.comparing.bits import same_bits

NUMBERS = (2, 3, 2.0, 1, 0, 0.0, -0.0, 0.5, -1, -1.5, float("inf"), float("nan"), 1e300, 2**70, True)
FIRST = (2, 2.5)
OF_TWO = [prim for prim in (*ELEMENTWISE, *POWERS, *OPERATORS) if len(prim.operands) == 2 and not prim.outputs]
X = np.array([0.3, -0.7, 0.0, 1.0, 2.5, -0.0])
LINES = {
    **{f"{prim.name} of it": prim for prim in OF_TWO},
    **{f"{prim.name} by it": lambda x, c, prim=prim: prim(c, x) for prim in OF_TWO},
    "where": lambda x, c: np.where(x > 0.5, x, c),
    "clip": lambda x, c: np.clip(x, -0.2, c),
    "sum from it": lambda x, c: np.sum(x, initial=c),
    "prod from it": lambda x, c: np.prod(x, initial=c),
    "max from it": lambda x, c: np.max(x, initial=c),
    "nan_to_num": lambda x, c: np.nan_to_num(x / x, nan=c),
    "pad": lambda x, c: np.pad(x, 1, constant_values=c),
    "diff": lambda x, c: np.diff(x, prepend=c),
    "gradient": np.gradient,
    "trapezoid": lambda x, c: np.trapezoid(x, dx=c),
    "var": lambda x, c: np.var(x, ddof=c),
    "quantile": np.quantile,
    "interp": lambda x, c: np.interp(c, np.arange(6.0), x),
    "interp at it": lambda x, c: np.interp(x, [c, 4.0], [0.0, 1.0]),
    "norm": lambda x, c: np.sum(np.abs(x) ** c) ** (1 / 3),
    "outer": np.multiply.outer,
    "full_like": lambda x, c: np.full_like(x, c) * x,
    "full_like minus": lambda x, c: x * x - np.full_like(x, c),
    "append": np.append,
    "insert": lambda x, c: np.insert(x, 2, c) * 2,
    "stack": lambda x, c: np.stack([x[0], x[1] * c, x[2]]),
    "linspace": lambda x, c: np.linspace(x, c, 3),
    "polyval": lambda x, c: np.polyval([1.0, c, 2.0], x),
    "vander": lambda x, c: np.vander(x * c, 3),
    "sinc": lambda x, c: np.sinc(x * c),
    "heaviside": lambda x, c: np.heaviside(x, c) * x,
    "item": lambda x, c: x[int(c) % 6] * x if c == c and abs(c) < 9 else x * 1.5,
    "written": lambda x, c: written(x * 1.0, c),
}


def written(x, c):
    x[1] = c
    x[2:4] += c
    return x * x


def outcome(f, x, staging):
    """Value and gradient, or the kind of error."""
    with pb.using(staging=staging), np.errstate(all="ignore"):
        try:
            return pb.value_and_grad(f)(x)
        except Exception as error:  # noqa: BLE001 - the same kind has to come
            return type(error)


def agree(one, other):
    return one is other if isinstance(one, type) or isinstance(other, type) else all(map(same_bits, one, other))


@pytest.mark.share(4, of=lambda **_: "")
@pytest.mark.parametrize("line", LINES)
def test_a_stage_serves_every_number(line):
    for first in FIRST:
        for then in NUMBERS:
            assert not difference(LINES[line], first, then), f"{line}: {first!r}, then {then!r}"


def difference(line, first, then):
    """Where a staged function, or a loop, does something else than a recorded one; empty where none does."""
    number = first

    def f(x):
        y = line(x, number)
        return np.sum(y * y)

    def body(k, u):
        return u * 0.5 + np.sum(line(u, first if k < 4 else then))

    def loop(x):
        return np.sum(pb.fori_loop(0, 7, body, x))

    staged = pb.staged(f)
    for number in (*(first,) * 4, then, first):
        if not agree(outcome(staged, X, "numpy"), outcome(f, X, "off")):
            return f"in a function, at {number!r}"
    return "" if agree(outcome(loop, X, "numpy"), outcome(loop, X, "off")) else "in a loop"
