"""How operands that die are told: what is counted, and what code objects say of the stack."""

import linecache

import numpy as np
import pytest

from pullback.tracing import results_into_operands
from pullback.tracing.results_into_operands import UNKNOWN, operators_of


@pytest.mark.parametrize(
    "limits", [*results_into_operands.NARROW, *results_into_operands.WIDE, results_into_operands.CALLED]
)
def test_counts_tell_an_operand_that_dies(limits):
    assert min(limits) > 0, "no result is computed into an operand"


def test_arrays_of_objects_are_counted():
    before = results_into_operands.objects_held()
    held = [np.empty(3, object)]
    if results_into_operands.objects_held is int:
        pytest.skip("this NumPy does not count references to its dtypes")
    assert results_into_operands.objects_held() > before
    held[0] = held[0][1:]
    assert results_into_operands.objects_held() > before
    held.clear()
    assert results_into_operands.objects_held() == before


def test_where_they_cannot_be_counted_there_are_none():
    assert results_into_operands.counting(lambda: 7)() == 0


def program(a, b, x, g):
    c = a * x + b
    d = np.tanh(a * x + b) * np.exp(-x * x) + np.sqrt(1.0 + x * x)
    e = (a * x if g else b) + (a and b * x)
    f = (t := a * x) + t
    h = a[1:] * 2 - g(x, a=b) * x - g(*a) / x.copy()
    y = np.tanh(a * x) + sums(x * b) - np.linalg.norm(a * b) + x.f(a * x)
    z = np.exp(a * x, b) + np.exp(x=a * b) + np.exp(*a)
    a[0] += x * b
    c -= (yield a * x) + b * x
    i = -((a * b) ** -(g if x else -b))
    j = [a * u + b for u in x]
    k = (a * x) @ (b + x) % -b
    m = g((u * a) + b for u in x) + {1: a * x}[1]
    while a * x + b > c * b:
        a = a * x / b if (a - b) - x else a
    try:
        n = a * x + b / (x - b)
    except ValueError:
        n = a * x - b
    with g as o:
        n = a * o - b
    return c + d, e + f, h * i * 2, j + k, m - n, y + z


WANTED = """
a * x + b | a * x, ?
-x | ?
-x * x | -x, ?
np.tanh(a * x + b) * np.exp(-x * x) | np.tanh(a * x + b), np.exp(-x * x)
1.0 + x * x | ?, x * x
(a * x if g else b) + (a and b * x) | ?, ?
(t := a * x) + t | ?, ?
a[1:] * 2 - g(x, a=b) * x | a[1:] * 2, g(x, a=b) * x
g(x, a=b) * x | g(x, a=b), ?
g(*a) / x.copy() | g(*a), x.copy()
x * b | ?, ?
np.tanh(a * x) | a * x
sums(x * b) | x * b
np.linalg.norm(a * b) | a * b
(yield a * x) + b * x | ?, b * x
(a * b) ** -(g if x else -b) | ?, -(g if x else -b)
-((a * b) ** -(g if x else -b)) | (a * b) ** -(g if x else -b)
(a * x) @ (b + x) % -b | (a * x) @ (b + x), -b
g((u * a) + b for u in x) + {1: a * x}[1] | g((u * a) + b for u in x), ?
a * x / b | a * x, ?
(a - b) - x | a - b, ?
a * x + b / (x - b) | a * x, b / (x - b)
b / (x - b) | ?, x - b
a * x - b | a * x, ?
a * o - b | a * o, ?
h * i * 2 | h * i, ?
"""


def test_operands_are_found_on_the_stack():
    code = program.__code__
    places = dict(zip(range(0, len(code.co_code), 2), code.co_positions(), strict=True))

    def text(offset):
        line, _, start, stop = places.get(offset, (0, 0, 0, 0))
        return linecache.getline(code.co_filename, line)[start:stop] if line else "?"

    found = {text(at): [text(one) for one in operands] for at, _, operands in operators_of(code)}
    for line in WANTED.strip().splitlines():
        made, _, operands = line.partition(" | ")
        assert ", ".join(found[made]) == operands, made
    assert "a[0] += x * b" not in found
    whats = {what for _, what, _ in operators_of(code)}
    assert not any("=" in what for what in whats)
    named = {"negative", "np.tanh", "np.exp", "np.sqrt", "np.linalg.norm", "sums"}
    assert {what for what in whats if what[0].isalpha()} == named


def sums(a, b, x):
    return a * x + b


def test_an_instruction_that_is_not_known_hides_what_lies_below(monkeypatch):
    monkeypatch.setattr(results_into_operands, "_LOADS", frozenset())
    assert [operands for _, symbol, operands in operators_of(sums.__code__) if symbol == "+"] == [(UNKNOWN, UNKNOWN)]
    monkeypatch.undo()
    assert [operands[0] for _, symbol, operands in operators_of(sums.__code__) if symbol == "+"] != [UNKNOWN]
