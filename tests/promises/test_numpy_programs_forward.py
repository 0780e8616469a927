"""Drawn NumPy programs in forward mode: ``jvp`` is the gradient along the tangent, ``hvp`` the difference of
gradients, in mixed dtypes."""

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from tests.programs.numpy_programs import REFUSALS, Program, programs
from tests.promises.test_numpy_programs import DRAWING, JUDGED, POLICIES, failing_least

import pullback as pb
from pullback.testing.comparing.bits import same_bits
from pullback.testing.comparing.differences import inner, random_like, richardson

EXACT, SINGLE, CLOSE = 1e-9, 3e-4, 1e-6
SMOOTH = 1e-4
"""A second derivative is judged where the gradient differs by no more than this part of its size between two close
points."""
pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # dtype= of reals, as drawn


def verified(program: Program) -> str:
    """Whether the second derivative could be judged; fails where anything is not as promised."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if not _first_order(program):
            return "infinite"
        try:
            program.run(*_inputs(program), wide=True)
        except REFUSALS:
            return "not to be had in double precision"
        return _second_order(program)


def _inputs(program: Program, *, wide: bool = True) -> list[Any]:
    return [v.made(wide=wide) for v in program.inputs.values()]


def _all(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.inputs)))


def _first_order(program: Program) -> bool:
    """Whether the derivative is finite; fails where ``jvp`` is not NumPy's value and the gradient along the tangent."""
    rng = np.random.default_rng(program.number)
    inputs = _inputs(program, wide=False)
    along = [random_like(rng, x) for x in inputs]
    gradient = pb.grad(program.run, _all(program))(*_inputs(program, wide=False))
    value, slope = pb.jvp(program.run, inputs, along)
    right = program.run(*_inputs(program, wide=False))
    assert same_bits(value, right), f"the value is {value!r}, NumPy has {right!r}"
    expected = sum(inner(g, v) for g, v in zip(gradient, along, strict=True))
    size = 1 + sum(float(np.sum(np.abs(g) * np.abs(v))) for g, v in zip(gradient, along, strict=True))
    if not np.isfinite(expected):
        return False
    slope = 0.0 if slope is None else slope
    near = SINGLE if "32" in repr(program) or "complex64" in repr(program) else EXACT
    assert abs(slope - expected) <= near * size, f"jvp gives {slope!r}, the gradient {expected!r}"
    return True


def _product(program: Program, along: list[Any], **options: Any) -> list[Any]:
    """``hvp`` in double, or under a policy around marked lines, as a list with an array for every input."""
    mark = pb.steps if options else iter
    found = pb.hvp(lambda *xs: program.run(*xs, wide=True, mark=mark), _inputs(program), along, **options)
    return [found] if len(program.inputs) == 1 else list(found)


def _flat(arrays: Any) -> Any:
    line = np.concatenate([np.ravel(np.asarray(a)) for a in arrays])
    return np.concatenate((line.real, line.imag)) if line.dtype.kind == "c" else line


def _second_order(program: Program) -> str:
    rng = np.random.default_rng(program.number + 1)
    along = [random_like(rng, x) for x in _inputs(program)]
    products = _product(program, along)
    for x, h in zip(_inputs(program), products, strict=True):
        assert (np.shape(h), np.asarray(h).dtype) == (np.shape(x), np.asarray(x).dtype), f"hvp gives {h!r} for {x!r}"
    for policy in POLICIES:
        under = _product(program, along, policy=policy)
        assert same_bits(under, products), f"{policy}: {under} is not {products}"
    gradient = pb.grad(lambda *xs: program.run(*xs, wide=True), _all(program))

    def path(t: Any) -> Any:
        moved = [v.made(wide=True, plus=t * a) for v, a in zip(program.inputs.values(), along, strict=True)]
        return _flat(gradient(*moved))

    ours, right = _flat(products), richardson(path)
    size = 1 + np.max(np.abs(ours), initial=0)
    if np.all(np.abs(ours - right.value) <= CLOSE * size + 10 * right.error):
        return JUDGED
    one_sided = [[(path(sign * h) - path(0.0)) / (sign * h) for sign in (1, -1)] for h in (1e-4, 1e-5, 1e-6)]
    spread = max(
        float(np.max(np.abs(a - b), initial=0))
        for pair in one_sided
        for a in pair
        for b in (right.value, one_sided[-1][0])
    )
    if not spread <= SMOOTH * size:
        return "no second derivative to be had from differences"
    message = f"hvp gives {ours}, differences of gradients {right.value} +- {right.error}"
    raise AssertionError(message)


@settings(max_examples=50, derandomize=True, deadline=None, **DRAWING)
@given(programs(series=8))
def test_drawn_programs_forward(program):
    event(failing_least(verified, program))


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(2))
def test_many_drawn_programs_forward(piece):
    @settings(max_examples=2_000, derandomize=False, database=None, deadline=None, **DRAWING)
    @given(programs(most=14, series=piece + 9))
    def search(program):
        event(failing_least(verified, program))

    search()
