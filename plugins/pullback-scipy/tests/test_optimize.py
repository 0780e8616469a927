"""pullback_scipy.optimize: SciPy's solutions, differentiated by what the equations depend on."""

import numpy as np
import pytest
from scipy import optimize

import pullback as pb
from pullback_scipy import optimize as mirrored

P = np.array([1.3, 0.7])
T = np.linspace(0, 1, 12)
Y = 2.0 * np.exp(-1.5 * T) + 0.01 * np.cos(9 * T)


def equations(x, p):
    return np.stack([x[0] ** 2 + x[1] ** 2 - 4 * p[0], x[0] - p[1] * x[1]])


def cosine(x, p):
    return np.cos(p * x) - x


def bowl(x, p):
    return np.sum((x - p) ** 4 + (x - p) ** 2) + 0.3 * x[0] * x[1] + p[0] * x[1]


def decay(t, a, b):
    return a * np.exp(-b * t)


def programs(m):
    return {
        "root": (lambda p: m.root(equations, np.ones(2), (p,)).x, P),
        "root closure": (lambda p: m.root(lambda x: equations(x, p), np.ones(2), method="lm", tol=1e-14).x, P),
        "fsolve": (lambda p: m.fsolve(equations, np.ones(2), args=(p,), xtol=1e-13), P),
        "brentq": (lambda p: m.brentq(cosine, 0.0, 2.0, args=(p,)), 0.8),
        "bisect": (lambda p: m.bisect(lambda x: cosine(x, p), 0.0, 2.0, xtol=1e-14), 0.8),
        "toms748": (lambda p: m.toms748(cosine, 0.0, 2.0, args=(p,)), 0.8),
        "newton": (lambda p: m.newton(lambda x: cosine(x, p), np.ones(2), tol=1e-13), P),
        "root_scalar": (lambda p: m.root_scalar(cosine, (p,), bracket=(0.0, 2.0)).root, 0.8),
        "fixed_point": (lambda p: m.fixed_point(lambda x: np.cos(p * x), 0.5, xtol=1e-13), 0.8),
        "minimize": (lambda p: m.minimize(bowl, np.zeros(2), (p,), tol=1e-12).x, P),
        "minimize otherwise": (
            lambda p: (
                m.minimize(
                    lambda x: bowl(x, p), np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-11, "fatol": 1e-14}
                ).x
            ),
            P,
        ),
        "minimum": (lambda p: m.minimize(bowl, np.zeros(2), (p,), tol=1e-12).fun, P),
        "minimize bounds": (
            lambda p: m.minimize(bowl, np.zeros(2), (p,), bounds=[(None, 0.5), (None, None)], tol=1e-12).x,
            P,
        ),
        "minimize_scalar": (lambda p: m.minimize_scalar(lambda x: (x - p) ** 4 + (x + 1) ** 2, tol=1e-14).x, 0.8),
        "least_squares": (
            lambda y: m.least_squares(lambda x: x[0] * np.exp(-x[1] * T) - y, np.ones(2), xtol=1e-15, gtol=1e-15).x,
            Y,
        ),
        "curve_fit": (lambda y: m.curve_fit(decay, T, y, np.ones(2), xtol=1e-14, ftol=1e-14, gtol=1e-14)[0], Y),
        "curve_fit covariance": (lambda y: m.curve_fit(decay, T, y, np.ones(2), xtol=1e-14)[1] * 1e4, Y),
        "curve_fit weighed": (lambda y: m.curve_fit(decay, T, y, np.ones(2), SPREAD, xtol=1e-14)[0], Y),
        "curve_fit of known": (
            lambda y: m.curve_fit(decay, T, np.where(np.arange(12) == 2, np.nan, y), np.ones(2), nan_policy="omit")[0],
            Y,
        ),
    }


SPREAD = np.diag(0.1 + T / 9) + 0.02
OURS, THEIRS = programs(mirrored), programs(optimize)
ROUGH = ("minim", "curve", "least")


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, p), (theirs, _) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, p)
    if name == "minimum":
        np.testing.assert_allclose(out, theirs(p), rtol=1e-6)
    else:
        assert np.asarray(out).tobytes() == np.asarray(theirs(p)).tobytes()
        assert np.asarray(ours(p)).tobytes() == np.asarray(theirs(p)).tobytes()


@pytest.mark.parametrize("name", OURS)
def test_derivatives_are_right(name):
    ours, p = OURS[name]
    out, pull = pb.vjp(ours, p)
    seed = np.arange(1.0, 1 + np.size(out)).reshape(np.shape(out))
    (ct,) = pull(seed)
    direction = np.cos(np.arange(np.size(p))).reshape(np.shape(p))
    step = 1e-4
    differences = (ours(p + step * direction) - ours(p - step * direction)) / (2 * step)
    tangent = pb.jvp(ours, (p,), (direction,))[1]
    close = 1e-3 if name.startswith(ROUGH) else 1e-6
    np.testing.assert_allclose(np.sum(tangent * seed), np.sum(differences * seed), rtol=close)
    np.testing.assert_allclose(np.sum(ct * direction), np.sum(tangent * seed), rtol=1e-8)


def test_second_order_and_policies():
    f = OURS["root"][0]
    pb.testing.check_grads(f, (P,), order=2)

    def steps(p, policy):
        def step(k, u):
            return mirrored.brentq(lambda x: x + 0.1 * p * x**3 - u, -5.0, 5.0)

        return pb.fori_loop(0, 10, step, 1.0, policy=policy)

    gradients = {float(pb.grad(steps)(0.7, policy)) for policy in (pb.SaveAll(), pb.Recompute(), pb.Binomial(2))}
    assert len(gradients) == 1


def test_what_is_refused():
    with pytest.raises(pb.NotDifferentiableError, match=r"minimize: with constraints="):
        pb.grad(lambda p: mirrored.minimize(bowl, np.zeros(2), (p,), constraints={"type": "eq", "fun": np.sum}).fun)(P)
    with pytest.raises(pb.NotDifferentiableError, match=r"singular at their solution"):
        pb.grad(lambda p: np.sum(mirrored.root(lambda x: np.stack([np.sum(x - p)] * 2), P, method="lm").x))(P)


def test_an_unknown_near_its_bound_stays_there():
    """trust-constr and the bounded method end a little before the bound."""

    def bowl_of_two(x, q):
        return (x[0] - q[0]) ** 2 + q[1] * (x[1] - x[0]) ** 4 + x[1] ** 2

    q, bounds = np.array([1.3, 0.4]), [(0, 0.6), (None, None)]
    for method in ("L-BFGS-B", "trust-constr", "SLSQP"):
        slopes = pb.jacobian(
            lambda q, method=method: (
                mirrored.minimize(bowl_of_two, np.full(2, 0.5), (q,), method, bounds=bounds, tol=1e-10).x
            )
        )(q)
        np.testing.assert_allclose(slopes, [[0, 0], [0, 0.15625]], rtol=1e-2, atol=1e-4)
    for p, slope in ((0.7, 0.0), (0.3, 1.0)):
        found = pb.grad(
            lambda p: mirrored.minimize_scalar(lambda x: (x - p) ** 2, bounds=(0, 0.5), method="bounded").x
        )(p)
        np.testing.assert_allclose(found, slope, atol=1e-6)


def test_the_derivative_of_a_minimum_is_the_same_in_each_call():
    f = pb.grad(lambda p: np.sum(mirrored.minimize(lambda x: np.sum((x - p) ** 2 + x**4), np.zeros(1)).x))
    assert {float(f(0.7)) for _ in range(60)} == {float(f(0.7))}


def test_parts_of_results_without_a_derivative_raise():
    with pytest.raises(pb.MissingRuleError, match=r"minimize has no rule for its argument 'bounds'"):
        pb.grad(lambda p: mirrored.minimize(np.sum, np.ones(1), bounds=[(p, 2.0)]).x[0])(0.5)
    with pytest.raises(pb.NotDifferentiableError, match=r"the entry 'fjac' of this result"):
        pb.grad(lambda p: mirrored.root(lambda x: x**3 - p, np.ones(2)).fjac[0, 0])(0.5)
    with pytest.raises(pb.NotDifferentiableError, match=r"the entry 'qtf' of this result"):
        pb.grad(lambda p: mirrored.fsolve(lambda x: x**3 - p, np.ones(2), full_output=True)[1]["qtf"][0])(0.5)
    with pytest.raises(pb.NotDifferentiableError, match=r"the entry 'hess_inv' of this result.*pullback\.grad at x"):
        pb.grad(lambda p: mirrored.minimize(lambda x: np.sum(p * x**2), np.ones(1)).hess_inv[0, 0])(0.5)
