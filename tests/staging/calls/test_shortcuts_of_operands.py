"""Plain arguments of a warm call that are operands and nothing else: they may be others in each call."""

import numpy as np
import pytest
from tests.staging.calls.test_shortcuts import FACTOR, TABLE, bits, often, same_as_recorded, served

import pullback as pb
from pullback.staging.calls import shortcuts
from pullback.staging.calls.known_functions import staged_of

__all__ = ["served"]  # a fixture of all tests here

LARGE = np.linspace(-1.0, 1.0, 2048)
OPERANDS = {
    "an operand": (lambda q, a: np.sum(q * a), [0]),
    "two operands": (lambda q, a, b: np.sum(np.sin(q * a) * b + a), [0, 1]),
    "twice": (lambda q, a: np.sum(q * a + a), [0]),
    "by its shape": (lambda q, a: np.sum(q * a) / a.shape[0], [0]),
    "in a function": (lambda q, a: np.sum(scaled(q, a)), [0]),
    "in a structure": (lambda p, a: np.sum(p["q"] * a), [0]),
    "changed before": (lambda q, a: np.sum(q * (a * 2.0)), []),
    "looked at": (lambda q, a: np.sum(q * a) if a[0] < 0 else np.sum(q - a), []),
    "a key": (lambda q, a: np.sum(q[np.argsort(a)] * TABLE[1]), []),
    "one of two": (lambda q, a, b: np.sum(q * a) * np.max(b), [0]),
    "met by another": (lambda q, a, b: np.sum(q * (a + b)), []),
}


def scaled(q, a):
    return np.multiply(q, a) * FACTOR


@pytest.mark.parametrize("served", ["caller", "shortcut"], indirect=True)
@pytest.mark.parametrize("what", OPERANDS)
def test_large_plain_arguments_that_are_operands_alone_are_not_compared(what, served):
    f, told = OPERANDS[what]
    others, f = [LARGE + k for k in range(f.__code__.co_argcount - 1)], pb.staged(f)
    gradient, q = pb.value_and_grad(f), np.cos(LARGE)
    of = (lambda q: {"q": q}) if what == "in a structure" else lambda q: q
    often(gradient, of(q), *others)
    [shortcut] = staged_of(f).warm.gradients.kept
    assert sorted({k - 1 for _, k in shortcut.told}) == told
    n = len(served)
    for k in range(len(others)):
        changed = [x * (-1.5 if j == k else 1.0) for j, x in enumerate(others)]
        value, found = gradient(of(q), *changed)
        with pb.using(staging="off"):
            right, expected = gradient(of(q), *changed)
        assert bits((value, *pb.ravel(found)[:1])) == bits((right, *pb.ravel(expected)[:1]))
        assert (len(served) > n) == (k in told)
        n = len(served)
    wide = np.repeat(LARGE, 2)[::2]
    same_as_recorded(lambda q: pb.ravel(gradient(of(q), *([wide] * len(others))))[0], q)


def test_a_large_argument_that_is_compared_has_no_shortcut_and_one_that_is_an_operand_has():
    large = np.linspace(0.0, 1.0, shortcuts.MOST_COMPARED // 8 + 1)
    for f, n in ((lambda q, a: np.sum(q * a), 1), (lambda q, a: np.sum(q) * np.max(a), 0)):
        f = pb.staged(f)  # noqa: PLW2901
        often(pb.grad(f), 2.0, large)
        assert len(staged_of(f).warm.gradients.kept) == n
