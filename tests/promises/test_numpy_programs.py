"""Drawn NumPy programs, as a user writes them: NumPy's values bit for bit, the derivative of differences, the same
bits under policies."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import define
from hypothesis import Phase, event, given, settings
from tests.programs.numpy_programs import REFUSALS, Program, copies, programs, smallest

import pullback as pb
from pullback.testing.comparing.bits import describe, same_bits, twin
from pullback.testing.comparing.differences import (
    COMPLEX_STEP,
    Derivative,
    derivatives,
    inner,
    random_like,
    richardson,
    rounding_of,
)

JUDGED = "judged"
POLICIES = (pb.Recompute(), pb.Binomial(2))
CLOSE, UNSURE = 1e-7, 1e-3
"""A derivative whose estimated error exceeds this part of its scale is no judge."""
STEPS = (1e-4, 1e-5, 1e-6, 1e-7)


@define
class Tally:
    """What a run of draws did; printed by the slow runs."""

    drawn: int = 0
    judged: int = 0
    unjudged: int = 0


pytestmark = pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")  # dtype= of reals, as drawn


def require_right(program: Program, tally: Tally) -> None:
    """All that is promised of one program, counted."""
    tally.drawn += 1
    verdict = failing_least(verified, program)
    event(verdict)
    tally.judged += verdict == JUDGED
    tally.unjudged += verdict != JUDGED


def failing_least(check: Callable[[Program], str], program: Program) -> str:
    """What ``check`` says of a program; where it fails, the error shows the least of the lines that still do."""
    try:
        return check(program)
    except Exception as error:
        kind = _kind(error)
        less = smallest(program, lambda candidate: _failure(check, candidate) == kind)
        raise AssertionError(f"{less}\n{type(error).__name__}: {error}") from error


def _failure(check: Callable[[Program], str], program: Program) -> tuple[str, ...] | None:
    try:
        check(program)
    except Exception as error:  # noqa: BLE001 - whatever fails is the finding
        return _kind(error)
    return None


def _kind(error: Exception) -> tuple[str, ...]:
    return type(error).__name__, *str(error).split()[:2]


def verified(program: Program) -> str:
    """Whether the gradient could be judged; fails where anything is not as promised.

    A warning is a failure as well, but where the derivative is infinite.
    """
    try:
        gradient = require_same_bits(program)
    except RuntimeWarning:
        with np.errstate(all="ignore"):
            gradient = require_same_bits(program)
        if all(np.all(np.isfinite(g)) for g in gradient):
            raise
        return "infinite"
    return judge(program, gradient)


def require_same_bits(program: Program) -> Any:
    """The gradient: values are NumPy's after every line, the arguments are as they were, and policies change no bit."""
    inputs = [v.made() for v in program.inputs.values()]
    before = [twin(x) for x in inputs]
    gradient = pb.value_and_grad(_compared(program), _all(program))(*inputs)[1]
    assert same_bits(inputs, before), "the arguments were changed"
    for (name, value), g in zip(program.inputs.items(), gradient, strict=True):
        expected = np.asarray(value.array)
        assert (np.shape(g), np.asarray(g).dtype) == (expected.shape, expected.dtype), (
            f"{name} has the gradient {describe(g)}"
        )
    gradient = pb.grad(program.run, _all(program))(*[
        v.made() for v in program.inputs.values()
    ])  # unwatched: to look at a view renews it
    for policy in POLICIES:
        marked = pb.grad(lambda *xs: program.run(*xs, mark=pb.steps), _all(program), policy=policy)
        under = marked(*[v.made() for v in program.inputs.values()])
        assert same_bits(under, gradient), f"{policy}: {under} is not {gradient}"
    return gradient


def _to_the_last_bits(ours: Any, right: Any) -> bool:
    """Whether two values are of one shape and dtype and differ by rounding: single functions are compared bit for bit
    in the conformance tests, and docs/coverage.md says where NumPy takes another loop in place than into a new array.
    """
    ours, right = np.asarray(ours), np.asarray(right)
    if (ours.shape, ours.dtype) != (right.shape, right.dtype) or right.dtype.kind not in "fc":
        return False
    size = np.max(np.abs(right), initial=0.0, where=np.isfinite(right))
    eps = np.finfo(right.dtype).eps
    return bool(np.allclose(ours, right, rtol=64 * eps, atol=64 * eps * size, equal_nan=True))


def _all(program: Program) -> tuple[int, ...]:
    return tuple(range(len(program.inputs)))


def _compared(program: Program) -> Callable[..., Any]:
    """The program on tracers, every name compared with NumPy's after every line, and the scalar at the end."""
    states: list[dict[str, Any]] = []
    expected = program.run(
        *[v.made() for v in program.inputs.values()], after=lambda _, names: states.append(copies(names))
    )

    def after(number: int, names: dict[str, Any]) -> None:
        for name, right in states[number].items():
            ours = pb.value(names[name])
            if not same_bits(ours, right) and not _to_the_last_bits(ours, right):
                where = f"after line {number}, {program.lines[number]!r}, {name}"
                raise AssertionError(f"{where} is {describe(ours)} {ours}, NumPy has {describe(right)} {right}")

    def traced(*inputs: Any) -> Any:
        loss = program.run(*inputs, after=after)
        ours = pb.value(loss)
        assert same_bits(ours, expected) or _to_the_last_bits(ours, expected), (
            f"the scalar is {ours!r}, NumPy has {expected!r}"
        )
        return loss

    return traced


def judge(program: Program, gradient: Any) -> str:
    """Fails where the derivative along a random direction is not that of differences; else "judged", or why it could
    not be.

    A program in single precision is judged in double, and its own gradient by the one in double.
    """
    rng = np.random.default_rng(program.number)
    inputs = [v.made(wide=True) for v in program.inputs.values()]
    along = [random_like(rng, x) for x in inputs]
    try:
        _own_value(program, wide=True)
    except REFUSALS:
        return "not to be had in double precision"  # 1j * np.float64(2) is a Python number, 1j * np.float32(2) is none
    single = rounding_of(v.array for v in (*program.inputs.values(), *program.constants.values())) or 6e-8 * (
        "32" in repr(program.lines)
    )
    with np.errstate(all="ignore"):
        found = pb.grad(lambda *xs: program.run(*xs, wide=True), _all(program))(*inputs) if single else gradient
    slope = sum(inner(g, v) for g, v in zip(found, along, strict=True))
    scale = 1 + sum(float(np.sum(np.abs(g) * np.abs(v))) for g, v in zip(found, along, strict=True))
    path = _path(program, along)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        (right,) = derivatives([path])
        if right.method == COMPLEX_STEP and abs(right.value[0] - slope) > CLOSE * scale:
            right = richardson(path)  # a program that takes real parts may mislead the complex step by little
        verdict = _verdict(path, right, slope, scale)
    if verdict:
        return verdict
    if single and float(np.max(np.abs(path(0.0) - _own_value(program)))) < 1e-3:
        for ours, wide in zip(gradient, found, strict=True):
            far = np.max(np.abs(ours - wide), initial=0.0)
            assert far <= 2e3 * single * (scale + np.max(np.abs(wide), initial=0.0)), (
                f"in single precision {ours}, in double {wide}"
            )
    return JUDGED


def _own_value(program: Program, *, wide: bool = False) -> Any:
    return program.run(*[v.made(wide=wide) for v in program.inputs.values()], wide=wide)


def _path(program: Program, along: list[Any]) -> Callable[[Any], Any]:
    def path(t: Any) -> Any:
        moved = [value.made(wide=True, plus=t * v) for value, v in zip(program.inputs.values(), along, strict=True)]
        return np.ravel(np.asarray(program.run(*moved, wide=True)))

    return path


def _verdict(path: Callable[[Any], Any], right: Derivative, slope: float, scale: float) -> str | None:
    """None where ``slope`` is the derivative; why there is no judging; fails otherwise."""
    value, error = float(right.value[0].real), float(right.error[0])
    if abs(value - slope) <= CLOSE * scale + 10 * error and error <= UNSURE * scale:
        return None
    if not (np.isfinite(value) and np.isfinite(slope)) or error > UNSURE * max(1.0, abs(value)):
        return "no derivative to be had from differences"
    still = path(0.0)[0]
    one_sided = [[float((path(sign * h)[0] - still).real / (sign * h)) for sign in (1, -1)] for h in STEPS]
    gaps = [abs(a - b) for a, b in one_sided]
    if gaps[-1] > 1e-4 * scale and gaps[-1] > 0.1 * gaps[0]:
        return "at a kink"
    expected = f"{right.method} give {value!r} +- {error:.1e}, one-sided {one_sided}"
    raise AssertionError(f"the derivative along the direction is {slope!r}; {expected}")


DRAWING = {"phases": (Phase.explicit, Phase.reuse, Phase.generate), "report_multiple_bugs": False}
"""Hypothesis sees a program as one number, which it cannot shrink."""


@settings(max_examples=150, derandomize=True, **DRAWING)
@given(programs())
def test_drawn_programs(program):
    require_right(program, Tally())


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(4))
def test_many_drawn_programs(piece, record_property):
    tally = Tally()

    @settings(max_examples=5_000, derandomize=False, database=None, deadline=None, **DRAWING)
    @given(programs(most=14, series=piece + 1))
    def search(program):
        require_right(program, tally)

    search()
    record_property("programs", tally.drawn)
    print(tally)  # noqa: T201 - the figure of the run
