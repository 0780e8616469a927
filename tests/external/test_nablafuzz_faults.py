"""Faults that NablaFuzz found in other libraries and their authors confirmed, as programs of NumPy.

The lists are those of https://github.com/ise-uiuc/NablaFuzz (commit b65693b): numbers of issues of JAX, PyTorch and
OneFlow. Here are those whose text could be read (JAX, PyTorch) or which name their function (OneFlow), as far as NumPy
has words for them. The programs are ours; the reason says what was wrong there and why the gradient here is right.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import field, frozen

import pullback as pb
from pullback.testing import check_grads

Z = np.array([-3.5 + 4.5j, 1.5 - 0.75j])
X = np.array([0.5, -1.25, 2.0])
Y = np.array([[0.5, -0.75, -0.5, -0.25, -1.0]])
SMALL_INTEGERS = np.array([[22, 18, 29, 24, 27], [3, 11, 23, 1, 19], [127, -128, 11, 26, 2]], np.int8)
SQUARE = np.array([[2.0, -1.0], [0.5, 1.5]])
HALVES = np.array([-3.0, -0.5, 0.0, -2.0], np.float16)
GRID = np.arange(24.0).reshape(2, 3, 4) % 7 - 3.2


def overwritten(x):
    y = x * 1.0
    y[...] = 0.0
    return y


@frozen
class Case:
    """A program at its primals; ``gradient`` of the sum of its outputs, where it is known without differences."""

    fault: str
    program: Callable[..., Any]
    primals: tuple[Any, ...]
    gradient: Any = None
    order: int = field(default=2, kw_only=True)
    """How many orders are compared with numeric derivatives, in both modes; 0 at a point that has none."""


CASES = {
    "jax 10984: trapz": Case(
        "the value under differentiation was rounded in the other dtype of the two",
        np.trapezoid,
        (np.linspace(-3, 4, 12, dtype=np.float16).reshape(2, 6), np.linspace(0, 2, 6, dtype=np.float32) ** 2),
        order=1,
    ),
    "jax 10984: fftfreq": Case(
        "the value under differentiation was another: k / (n d), whose derivative is -k / (n d^2)",
        lambda d: np.fft.fftfreq(5, d) * np.arange(5.0),
        (0.25,),
        -(1 * 1 + 2 * 2 - 2 * 3 - 1 * 4) / (5 * 0.25**2),
    ),
    "jax 10984: an index beyond the end": Case(
        "the index was clamped with and wrapped without differentiation; here both are said, and both are NumPy's",
        lambda x: np.take(x, [-1, 7], mode="clip") * np.take(x, [-1, 7], mode="wrap"),
        (X,),
        [2.0, 2.0, 0.5 - 1.25],
    ),
    "jax 10993: select": Case(
        "a predicate that is no boolean was True for the value and False for the gradient",
        lambda a, b: np.where(np.uint32(4294967295), a, b),
        (-111.5, 24.75),
        (1.0, 0.0),
    ),
    "jax 10993: cumprod from the end": Case(
        "forward and reverse differed; a factor is 0",
        lambda x: np.cumprod(x[::-1])[::-1],
        (HALVES,),
        [0.0, 0.0, (-3 * -0.5 - 0.5 + 1) * -2.0, 1.0],
        order=1,
    ),
    "jax 10993: cov with weights": Case(
        "forward and reverse differed in the rounding of the weights",
        lambda x, w: np.cov(x, fweights=[1, 3, 2], aweights=w, ddof=-3),
        (X, np.array([0.5, 2.0, 1.0])),
    ),
    "jax 10993: qr": Case("forward and reverse differed", lambda a: tuple(np.linalg.qr(a)), (SQUARE,)),
    "jax 10993: solving with a matrix that is not symmetric": Case(
        "the reverse had the transposed Jacobian of the forward", np.linalg.solve, (SQUARE, np.array([1.0, 2.0]))
    ),
    "jax 11377: unwrap by whole numbers": Case(
        "the value was another under differentiation; the jumps are constant, so the derivative is 1",
        lambda x: np.unwrap(x, axis=-2, discont=2, period=1),
        (GRID,),
        np.ones(GRID.shape),
        order=1,
    ),
    "jax 11467: ldexp": Case(
        "the gradient was 0; it is 2^n",
        lambda x: np.ldexp(x, np.array([1, -2, 0])),
        (X,),
        [2.0, 0.25, 1.0],
    ),
    "jax 11467: frexp": Case(
        "the gradient was 0; the mantissa is x / 2^e",
        lambda x: np.frexp(x)[0],
        (np.array([0.75, -1.25, 3.0]),),
        [1.0, 0.5, 0.25],
    ),
    "jax 11467: trim_zeros": Case(
        "the gradient was 0; what is left passes as it is",
        lambda x: np.trim_zeros(x) ** 2,
        (np.array([0.0, 3.0, 0.0, -2.0, 0.0]),),
        [0.0, 6.0, 0.0, -4.0, 0.0],
        order=0,
    ),
    "torch 76585: cond": Case(
        "the value was another where a gradient was wanted; here it has NumPy's bits",
        np.linalg.cond,
        (np.random.default_rng(0).random((20, 20), np.float32),),
        order=1,
    ),
    "torch 78868: means of no windows": Case(
        "the reverse crashed; nothing depends on anything",
        lambda x: np.mean(np.lib.stride_tricks.sliding_window_view(x, 2)[:0], axis=-1),
        (X,),
        np.zeros(3),
        order=0,
    ),
    "torch 78868: maxima of no rows": Case(
        "the reverse crashed; nothing depends on anything",
        lambda x: np.max(x[:, None][:0], axis=1),
        (X,),
        np.zeros(3),
        order=0,
    ),
    "torch 80761: det of 1 x 1": Case(
        "the gradient was 0 at 0; det is the element itself", np.linalg.det, (np.zeros((1, 1)),), [[1.0]]
    ),
    "torch 80761: det of rank one": Case(
        "relative of the same: the adjugate",
        np.linalg.det,
        (np.array([[1.0, 2.0], [2.0, 4.0]]),),
        [[4.0, -2.0], [-2.0, 1.0]],
    ),
    "torch 80761: det of no rows": Case(
        "relative of the same", np.linalg.det, (np.zeros((2, 0, 0)),), np.zeros((2, 0, 0)), order=0
    ),
    "torch 80762: atan2 of small integers": Case(
        "the squares of int8 overflowed in the reverse; x / (x^2 + y^2)",
        lambda y: np.arctan2(y, SMALL_INTEGERS),
        (Y,),
        np.sum(SMALL_INTEGERS.astype(float) / (SMALL_INTEGERS.astype(float) ** 2 + Y**2), axis=0, keepdims=True),
    ),
    "torch 80803: hardshrink by nothing": Case(
        "the gradient was 0 at 0; where nothing is cut off x is handed on",
        lambda x: np.where(np.abs(x) >= 0.0, x, 0.0),
        (np.array([0.0, -1.0]),),
        [1.0, 1.0],
    ),
    "torch 80839: an array overwritten by a constant": Case(
        "the gradient was 1; nothing of x is left", overwritten, (X,), np.zeros(3)
    ),
    "torch 80926: softsign of complex numbers": Case(
        "forward over reverse was wrong", lambda z: z / (1.0 + np.abs(z)), (Z,)
    ),
    "torch 80928: abs of complex numbers": Case("forward over reverse was wrong", np.abs, (Z,), np.conj(Z) / np.abs(Z)),
    "oneflow 8769: fmod": Case(
        "x - trunc(x / y) y",
        np.fmod,
        (np.array([7.5, -7.5]), np.array([2.0, 2.0])),
        ([1.0, 1.0], [-3.0, 3.0]),
    ),
    "oneflow 8837: floor_divide": Case(
        "piecewise constant", np.floor_divide, (np.array([7.5, -7.5]), 2.0), ([0.0, 0.0], 0.0)
    ),
    "oneflow 8838: a vector of length 0 normalised": Case(
        "by max(|x|, eps), which is eps here",
        lambda x: x / np.maximum(np.linalg.norm(x), 0.5),
        (np.zeros(3),),
        [2.0, 2.0, 2.0],
        order=0,
    ),
    "oneflow 8986: mul of shapes that stretch": Case(
        "a sum over the stretched axis", np.multiply, (X[:, None], X[None, :2]), ([[-0.75]] * 3, [[1.25, 1.25]])
    ),
    "oneflow 8986: dot": Case("the other operand", np.dot, (X, X[::-1]), (X[::-1], X)),
    "oneflow 8986: var of one number": Case("constant 0", np.var, (np.array([1.5]),), [0.0]),
    "oneflow 8940: diagonal below, axes from the end": Case(
        "ones on the diagonal that was read",
        lambda x: np.diagonal(x, -1, -1, -2),
        (np.ones((2, 3, 4)),),
        np.stack([np.eye(3, 4, 1)] * 2),
    ),
    "oneflow 9013: gather_nd": Case(
        "an element read twice counts twice",
        lambda x: x[[0, 2, 0], [1, 1, 1]],
        (np.ones((3, 2)),),
        [[0, 2], [0, 0], [0, 1]],
    ),
}


def leaves(out):
    return list(out) if isinstance(out, tuple) else [out]


@pytest.mark.parametrize("name", CASES)
def test_a_fault_of_others_is_none_here(name):
    case = CASES[name]
    plain = case.program(*case.primals)
    out, pull = pb.vjp(case.program, *case.primals)
    for traced, expected in zip(leaves(out), leaves(plain), strict=True):
        np.testing.assert_array_equal(traced, expected, strict=True)
    if case.gradient is not None:
        gradients = leaves(pull(np.ones_like(plain)))
        expected = case.gradient if isinstance(case.gradient, tuple) else (case.gradient,)
        assert len(gradients) == len(expected)
        for ours, right in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(ours, right, rtol=1e-14, atol=1e-14, err_msg=case.fault)
    if case.order:
        check_grads(case.program, case.primals, order=case.order)


def test_arange_with_a_traced_step_is_refused_and_says_what_to_write():
    """jax 10984: the value under differentiation had one element more."""
    with pytest.raises(pb.ConversionError):
        pb.grad(lambda step: np.sum(np.arange(1.2, 4.8, step)))(0.24)
    value, gradient = pb.value_and_grad(lambda step: np.sum(1.2 + step * np.arange(15.0)))(0.24)
    assert value == np.sum(1.2 + 0.24 * np.arange(15.0))
    assert gradient == 105.0


def test_a_comparison_carries_no_derivative():
    """oneflow 8701: eq had a gradient."""
    _, pull = pb.vjp(lambda x, y: (x == y) * 1.0, X, X * [1.0, 2.0, 1.0])
    np.testing.assert_array_equal(pull(np.ones(3)), np.zeros((2, 3)))
