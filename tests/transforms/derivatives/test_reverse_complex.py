"""Complex derivatives: holomorphic claims and the two conventions."""

import numpy as np
import pytest

import pullback as pb
from pullback import NotDifferentiableError

Z = np.array([1.0 + 2.0j, 0.5 - 1.0j, -0.3 + 0.2j])
X = np.array([0.3, -0.7, 1.1])
MODES = ("auto", "forward", "reverse")


# ---------------------------------------------------------------------------------------------------------- holomorphic


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_the_jacobian_of_a_holomorphic_function(mode, dtype):
    z = Z.astype(dtype)
    got = pb.jacobian(lambda z: np.concatenate([z * z, np.exp(z)]), mode=mode, holomorphic=True)(z)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, np.concatenate([np.diag(2 * z), np.diag(np.exp(z))]), rtol=1e-6)


def test_the_gradient_of_a_holomorphic_function():
    np.testing.assert_allclose(pb.grad(lambda z: np.sum(z**3), holomorphic=True)(Z), 3 * Z**2, rtol=1e-14)
    assert pb.grad(lambda z: z * z, holomorphic=True)(1 + 2j) == 2 + 4j
    np.testing.assert_array_equal(
        pb.grad(lambda z: np.sum(z**2), holomorphic=True, conj=True, policy=pb.Recompute(2))(Z), np.conj(2 * Z)
    )
    second = pb.grad(pb.grad(lambda w: w**3, holomorphic=True), holomorphic=True)
    np.testing.assert_allclose(second(1 + 2j), 6 * (1 + 2j), rtol=1e-14)


NOT_HOLOMORPHIC = {
    "conj": np.conj,
    "size times phase": lambda z: z * np.abs(z),
    "real part in one element": lambda z: z * z + np.where(np.arange(3) == 1, 1e-3 * np.real(z), 0),
    "real plus i times imaginary squared": lambda z: np.real(z) + 1j * np.imag(z) ** 2,
}


@pytest.mark.parametrize("name", NOT_HOLOMORPHIC)
def test_a_false_claim_raises(name):
    f = NOT_HOLOMORPHIC[name]
    text = (
        r"is not holomorphic: its derivative along i differs from i times that along 1 by .*the derivative is of size"
    )
    for mode in MODES:
        with pytest.raises(NotDifferentiableError, match=text):
            pb.jacobian(f, mode=mode, holomorphic=True)(Z)
    with pytest.raises(NotDifferentiableError, match=text):
        pb.grad(lambda z: np.sum(f(z)), holomorphic=True)(Z)


def test_a_claim_about_nothing_complex_raises():
    with pytest.raises(
        NotDifferentiableError, match=r"claim about complex arguments, those of <lambda> are float64\[3\]"
    ):
        pb.grad(lambda x: np.sum(x * 1j), holomorphic=True)(X)
    with pytest.raises(
        NotDifferentiableError, match=r"claim about complex values, <lambda> returned float64; leave it out"
    ):
        pb.grad(lambda z: np.sum(np.abs(z)), holomorphic=True)(Z)
    for mode in MODES:
        with pytest.raises(
            NotDifferentiableError, match=r"claim about complex outputs .*of float64\[3\] in complex128\[3\]"
        ):
            pb.jacobian(np.abs, mode=mode, holomorphic=True)(Z)
        with pytest.raises(
            NotDifferentiableError, match=r"complex in complex has one only where it is holomorphic; say so"
        ):
            pb.jacobian(lambda z: z * z, mode=mode)(Z)


@pytest.mark.parametrize("mode", MODES)
def test_real_in_complex_and_complex_in_real(mode):
    np.testing.assert_allclose(
        pb.jacobian(lambda x: np.exp(1j * x) * x, mode=mode)(X),
        np.diag(np.exp(1j * X) * (1 + 1j * X)),
        rtol=1e-14,
        atol=1e-16,
    )
    np.testing.assert_allclose(pb.jacobian(lambda z: np.abs(z) ** 2, mode=mode)(Z), np.diag(2 * np.conj(Z)), rtol=1e-14)
    by_x, by_z = pb.jacobian(lambda x, z: np.real(z) * x + np.imag(z), argnums=(0, 1), mode=mode)(X, Z)
    np.testing.assert_allclose(by_x, np.diag(Z.real), rtol=1e-14)
    np.testing.assert_allclose(by_z, np.diag(X - 1j), rtol=1e-14)


# ----------------------------------------------------------------------------------------------------------------- conj


def test_conj_gives_the_other_convention():
    def loss(z):
        return np.sum(np.real(z) ** 2 * 3 + np.imag(z) * 5)

    np.testing.assert_allclose(pb.grad(loss)(Z), 6 * Z.real - 5j, rtol=1e-15)
    np.testing.assert_allclose(pb.grad(loss, conj=True)(Z), 6 * Z.real + 5j, rtol=1e-15)
    value, gradient = pb.value_and_grad(loss, conj=True)(Z)
    assert value == loss(Z)
    np.testing.assert_allclose(gradient, 6 * Z.real + 5j, rtol=1e-15)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x**2), conj=True)(X), 2 * X)


def test_a_step_against_the_conjugate_gradient_descends():
    def loss(z):
        return np.sum(np.abs(z - (2 + 3j)) ** 2)

    z = Z - 0.5 * pb.grad(loss, conj=True)(Z)
    np.testing.assert_allclose(z, 2 + 3j, rtol=1e-14)


def test_vjp_in_the_other_convention():
    def f(p):
        return {"square": p["z"] ** 2, "size": np.abs(p["z"]) ** 2 * p["x"], "n": 1}

    given = {"z": Z, "x": X, "k": 2}
    ct = {"square": Z + 1, "size": X, "n": None}
    _, pull = pb.vjp(f, given)
    _, other = pb.vjp(f, given, conj=True)
    expected = pull({"square": np.conj(Z + 1), "size": X, "n": None})[0]
    got = other(ct)[0]
    np.testing.assert_array_equal(got["z"], np.conj(expected["z"]))
    np.testing.assert_array_equal(got["x"], expected["x"])
    assert got["k"] is None
    np.testing.assert_allclose(pb.vjp(lambda z: z**2, Z, conj=True)[1](Z)[0], np.conj(2 * Z) * Z, rtol=1e-14)  # J^H ct


def test_conj_of_none_is_none():
    _, pull = pb.vjp(lambda z: (z, 2 * z), Z, conj=True)
    np.testing.assert_array_equal(pull((None, Z))[0], 2 * Z)
