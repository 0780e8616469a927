"""pullback_scipy.integrate: SciPy's values, derivatives of the steps that it took, under every policy."""

import numpy as np
import pytest
from scipy import integrate

import pullback as pb
from pullback_scipy import integrate as mirrored

RNG = np.random.default_rng(3)
Y, X = RNG.normal(size=(3, 8)), np.sort(RNG.uniform(size=8))
RATES = np.array([1.1, 0.4, 0.1, 0.4])
START = np.array([10.0, 5.0])
EQUAL = {"first_step": 0.05, "max_step": 0.05, "rtol": 1.0, "atol": 1.0}
FINE = {"rtol": 1e-9, "atol": 1e-9}
TIMES = np.linspace(0.0, 4.0, 9)


def prey(t, y, rates):
    return np.stack([y[0] * (rates[0] - rates[1] * y[1]), y[1] * (rates[2] * y[0] - rates[3])])


def programs(m):
    return {
        "trapezoid": (m.trapezoid, Y),
        "trapezoid x": (m.trapezoid, Y, X),
        "trapezoid axis": (lambda y, dx: m.trapezoid(y, dx=dx, axis=0), Y, 0.3),
        "cumulative_trapezoid": (lambda y, x: m.cumulative_trapezoid(y, x, initial=0), Y, X),
        "simpson": (lambda y: m.simpson(y, dx=0.3), Y[:, :7]),
        "simpson even": (m.simpson, Y),
        "simpson x": (m.simpson, Y[0], X),
        "simpson odd x": (lambda y, x: m.simpson(y, x=x), Y[:, :7], X[:7]),
        "simpson of an empty interval": (lambda y: m.simpson(y, x=np.array([0, 1, 1, 2, 3, 4, 5.0])), Y[:, :7]),
        "quad complex": (
            lambda p: np.imag(m.quad(lambda x: np.exp(1j * p * x), 0.0, 2.0, complex_func=True)[0]),
            1.3,
        ),
        "simpson axis": (lambda y: m.simpson(y, axis=0), Y),
        "quad": (lambda p: m.quad(lambda x, p: np.exp(-p * x) * np.sin(x), 0.0, 2.0, args=(p,))[0], 1.3),
        "quad bounds": (lambda p: m.quad(lambda x: np.exp(-p * x) * x, p, p**2)[0], 1.3),
        "quad infinite": (lambda p: m.quad(lambda x: np.exp(-p * x * x), p, np.inf)[0], 0.8),
        "quad whole line": (lambda p: m.quad(lambda x: np.exp(-p * x * x + x), -np.inf, np.inf)[0], 0.8),
        "quad many intervals": (lambda p: m.quad(lambda x: np.abs(x - 0.3) ** p, 0.0, 1.0)[0], 0.8),
        "quad from the larger bound": (lambda a, b: m.quad(lambda x: np.exp(-a * x * x), b, a)[0], 0.3, 1.2),
        "quad from infinity": (lambda a: m.quad(lambda x: np.exp(-a * x * x), np.inf, a)[0], 0.8),
        "fixed_quad": (lambda a: m.fixed_quad(np.sin, a, 2.0)[0], 0.3),
        "cumulative_trapezoid of one": (lambda y: m.cumulative_trapezoid(y, initial=0), Y[:, :1]),
        "solve_ivp": (lambda r, y0: m.solve_ivp(prey, (0.0, 2.0), y0, args=(r,), **EQUAL).y, RATES, START),
        "solve_ivp t_eval": (
            lambda r, y0: m.solve_ivp(prey, (0.0, 4.0), y0, t_eval=TIMES, args=(r,), **FINE).y,
            RATES,
            START,
        ),
        "solve_ivp back": (
            lambda r, y0: m.solve_ivp(prey, (2.0, 0.0), y0, "RK23", TIMES[4::-2], args=(r,), rtol=1e-7, atol=1e-7).y,
            RATES,
            START,
        ),
        "solve_ivp stiff": (
            lambda r, y0: m.solve_ivp(prey, (0.0, 1.0), y0, "BDF", [1.0], args=(r,), rtol=1e-7, atol=1e-7).y,
            RATES,
            START,
        ),
        "odeint": (
            lambda r, y0: m.odeint(lambda y, t: prey(t, y, r), y0, TIMES[:4], rtol=1e-9, atol=1e-9),
            RATES,
            START,
        ),
    }


OURS, THEIRS = programs(mirrored), programs(integrate)


@pytest.mark.parametrize("name", OURS)
def test_values_are_those_of_scipy(name):
    (ours, *operands), (theirs, *_) = OURS[name], THEIRS[name]
    out, _ = pb.vjp(ours, *operands)
    expected = np.asarray(theirs(*operands))
    if name == "fixed_quad":
        np.testing.assert_allclose(out, expected, rtol=1e-14)
    else:
        assert np.asarray(out).tobytes() == expected.tobytes()


@pytest.mark.parametrize("name", OURS)
def test_derivatives_are_right(name):
    f, *operands = OURS[name]
    out, pull = pb.vjp(f, *operands)
    seed = np.cos(np.arange(np.size(out))).reshape(np.shape(out))
    directions = [np.sin(1 + np.arange(np.size(x))).reshape(np.shape(x)) for x in operands]
    step = 1e-5

    def moved(s):
        return np.sum(seed * f(*(x + s * v for x, v in zip(operands, directions, strict=True))))

    # Where the steps depend on the operands, differences have a derivative of theirs that the rule has not.
    close = {"solve_ivp": 1e-3, "odeint": 1e-3, "quad many": 1e-5}.get(
        " ".join(name.split()[: 2 if "many" in name else 1])
    )
    differences = (moved(step) - moved(-step)) / (2 * step)
    given = sum(np.sum(ct * v) for ct, v in zip(pull(seed), directions, strict=True))
    np.testing.assert_allclose(given, differences, rtol=close or 1e-7)


def test_the_trapezoidal_rule_has_the_dtype_of_the_samples():
    y = Y.astype(np.float32)
    assert pb.vjp(lambda y: mirrored.trapezoid(y, X), y)[0].tobytes() == integrate.trapezoid(y, X).tobytes()


def test_a_solution_has_the_memory_order_and_the_counts_of_scipy():
    """The sum of an array takes its elements in the order of the memory."""
    for method in ("RK23", "DOP853", "BDF"):
        for more in ({}, {"t_eval": TIMES[:4]}):
            call = {"fun": prey, "t_span": (0.0, 2.0), "y0": START, "method": method, "args": (RATES,), **more}
            expected = integrate.solve_ivp(**call)
            found = mirrored.solve_ivp(**call)
            assert (found.nfev, np.sum(found.y)) == (expected.nfev, np.sum(expected.y))
            total, _ = pb.vjp(lambda y0, call=call: np.sum(mirrored.solve_ivp(**{**call, "y0": y0}).y), START)
            assert total == np.sum(expected.y)


def test_the_derivative_is_that_of_the_steps():
    """With steps of one width nothing about them depends on the operands."""

    def last(r, policy=None):
        with pb.using(policy or pb.SaveAll()):
            return np.sum(
                mirrored.solve_ivp(
                    prey, (0.0, 2.0), START, t_eval=TIMES[:4], args=(r,), max_step=0.05, first_step=0.05, rtol=1e-2,
                ).y
            )  # fmt: skip

    pb.testing.taylor_test(last, RATES)
    gradients = {pb.grad(last)(RATES, policy).tobytes() for policy in (None, pb.Recompute(), pb.Binomial(4))}
    assert len(gradients) == 1


def test_what_is_refused():
    with pytest.raises(pb.MissingRuleError, match=r"solve_ivp has no rule for t_span and t_eval"):
        pb.grad(lambda t: mirrored.solve_ivp(lambda t, y: -y, (0.0, t), np.ones(1)).y[0, -1])(1.0)
    for name, used in (("sol", lambda s: s.sol(0.5)[0]), ("t_events", lambda s: s.t_events[0][0])):
        with pytest.raises(pb.NotDifferentiableError, match=f"the entry '{name}' of this result has no derivative"):
            pb.grad(
                lambda r, used=used: used(
                    mirrored.solve_ivp(
                        lambda t, y: -r * y, (0.0, 2.0), np.ones(1), dense_output=True, events=lambda t, y: y[0] - 0.5
                    )
                )
            )(1.0)
    with pytest.raises(ValueError, match="initial"):
        pb.grad(lambda y: mirrored.cumulative_trapezoid(y, initial=2.0)[0])(np.ones(3))
    with pytest.raises(pb.NotDifferentiableError, match=r"quad: with weight='cos'"):
        pb.grad(lambda a: mirrored.quad(np.exp, a, 1.0, weight="cos", wvar=2.0)[0])(0.0)
