"""``odeint`` against exact solutions: values, first and second derivatives by y0, t and parameters; the same bits
under every policy."""

import numpy as np
import pytest

import pullback as pb
from pullback.solving.ode_solver import DOPRI5, RK4

Y0, T, RATES = np.array([1.0, 2.0]), np.array([0.2, 0.7, 1.5, 3.0]), np.array([0.7, 1.1])
TANGENTS = np.array([0.3, -1.0]), np.array([0.1, -0.2, 0.3, 0.4]), np.array([1.0, 0.5])
WAYS = [{}, {"steps_per_interval": 12}, {"steps_per_interval": 40, "method": "rk4"}]


def slope(y, t, rates):
    return -rates * y * np.cos(t)


def exact(y0, t, rates):
    return y0 * np.exp(-rates * (np.sin(t) - np.sin(t[0]))[:, None])


def solved(**options):
    return lambda y0, t, rates: pb.odeint(slope, y0, t, rates, **options)


def loss(solution):
    return lambda *given: np.sum(np.sin(solution(*given)))


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_values_and_derivatives_are_those_of_the_exact_solution(options):
    at, solution = (Y0, T, RATES), solved(**options)
    np.testing.assert_allclose(solution(*at), exact(*at), rtol=1e-7)
    slopes, wanted = pb.grad(loss(solution), (0, 1, 2)), pb.grad(loss(exact), (0, 1, 2))
    products = pb.jvp(wanted, at, TANGENTS)[1]
    for found, exactly in (
        (slopes(*at), wanted(*at)),
        (pb.jvp(slopes, at, TANGENTS)[1], products),
        (pb.grad(lambda *x: pb.jvp(loss(solution), x, TANGENTS)[1], (0, 1, 2))(*at), products),
    ):
        for a, b in zip(found, exactly, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(pb.jvp(solution, at, TANGENTS)[1], pb.jvp(exact, at, TANGENTS)[1], rtol=1e-5, atol=1e-6)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "options", [{}, {"steps_per_interval": 4}, {"steps_per_interval": 7, "method": "rk4"}], ids=str
)
@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Binomial(2), pb.Binomial(1)], ids=str)
def test_policies_have_the_bits_of_save_all(options, policy):
    at = Y0, T, RATES
    slopes = lambda p: pb.grad(loss(solved(policy=p, **options)), (0, 1, 2))  # noqa: E731
    around = pb.grad(loss(solved(**options)), (0, 1, 2), policy=policy)
    for found, wanted, other in zip(slopes(policy)(*at), slopes(None)(*at), around(*at), strict=True):
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(other, wanted)
    for found, wanted in zip(
        pb.jvp(slopes(policy), at, TANGENTS)[1], pb.jvp(slopes(None), at, TANGENTS)[1], strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_the_orders_of_the_methods():
    """Halving the step divides the error by 2 to the order."""
    for method, order, n in (("rk4", 4, 8), ("dopri5", 5, 4)):
        errors = [
            np.max(np.abs(solved(method=method, steps_per_interval=k)(Y0, T, RATES) - exact(Y0, T, RATES)))
            for k in (n, 2 * n)
        ]
        assert order - 0.4 < np.log2(errors[0] / errors[1]) < order + 0.7


@pytest.mark.parametrize("tableau", [RK4, DOPRI5], ids=["rk4", "dopri5"])
def test_the_tableaus_meet_the_conditions_of_order_three(tableau):
    c, b = np.array(tableau.c), np.array(tableau.b)
    a = np.array([[*row, *np.zeros(len(c) - len(row))] for row in tableau.a])
    np.testing.assert_allclose(a.sum(axis=1), c, atol=1e-14)
    np.testing.assert_allclose(
        [b.sum(), b @ c, b @ c**2, b @ a @ c, b @ c**3], [1, 1 / 2, 1 / 3, 1 / 6, 1 / 4], atol=1e-14
    )
    if tableau.e:
        e = np.array(tableau.e)
        np.testing.assert_allclose([e.sum(), e @ c, e @ c**2, e @ c**3], np.zeros(4), atol=1e-15)


def test_the_tolerance_is_met_and_a_looser_one_takes_fewer_slopes():
    def run(rtol):
        calls = []

        def counted(y, t):
            calls.append(t)
            return y * np.cos(t)

        y = pb.odeint(counted, np.ones(1), np.array([0.0, 6.0]), rtol=rtol, atol=1e-12)
        return abs(y[-1, 0] - np.exp(np.sin(6.0))), len(calls)

    (tight, many), (loose, few) = run(1e-9), run(1e-4)
    assert tight < 1e-8 < loose < 1e-3
    assert few < many / 2


def test_a_structure_with_the_period_of_its_solution():
    def orbit(y, t, w):
        return {"x": w * y["v"], "v": -w * y["x"]}

    def end(w):
        y = pb.odeint(orbit, {"x": np.float32(1), "v": np.float64(0)}, [0.0, 1.0], w)
        assert y["x"].dtype == np.float32
        assert y["v"].dtype == np.float64
        return y["v"][-1]

    np.testing.assert_allclose(pb.grad(end)(2.0), -np.cos(2.0), rtol=1e-5)


def test_time_may_run_backwards_stand_still_and_be_one_moment():
    np.testing.assert_allclose(pb.odeint(lambda y, t: -y, 1.0, [2.0, 0.0]), [1.0, np.exp(2)], rtol=1e-7)
    np.testing.assert_array_equal(pb.odeint(lambda y, t: -y, 1.0, [2.0, 2.0]), [1.0, 1.0])
    np.testing.assert_array_equal(pb.odeint(lambda y, t: -y, 1, [2.0]), [1.0])
    assert pb.grad(lambda y: np.sum(pb.odeint(lambda y, t: -y, y, [2.0])))(3.0) == 1.0


def test_what_the_slope_closes_over_is_found():
    def f(rate):
        return pb.odeint(lambda y, t: -rate * y, 1.0, [0.0, 2.0])[-1]

    np.testing.assert_allclose(pb.grad(f)(0.5), -2 * np.exp(-1.0), rtol=1e-7)
    np.testing.assert_allclose(pb.jvp(pb.grad(f), (0.5,), (1.0,))[1], 4 * np.exp(-1.0), rtol=1e-6)


def test_a_step_inside_a_loop_and_inside_marked_steps():
    def by_loop(rate, policy):
        return pb.fori_loop(
            0, 5, lambda _, y: pb.odeint(lambda y, t: -rate * y, y, [0.0, 0.4], rtol=1e-6)[-1], 1.0, policy=policy
        )

    def by_steps(rate):
        y = rate * 0.0 + 1.0
        for _ in pb.steps(5):
            y = pb.odeint(lambda y, t: -rate * y, y, [0.0, 0.4], rtol=1e-6)[-1]
        return y

    for policy in (pb.SaveAll(), pb.Recompute(), pb.Binomial(2)):
        np.testing.assert_array_equal(pb.grad(by_loop)(0.5, policy), pb.grad(by_loop)(0.5, pb.SaveAll()))
        np.testing.assert_array_equal(pb.grad(by_steps, policy=policy)(0.5), pb.grad(by_steps)(0.5))
    np.testing.assert_allclose(pb.grad(by_steps)(0.5), -2 * np.exp(-1.0), rtol=1e-4)
    np.testing.assert_allclose(pb.grad(by_loop)(0.5, None), -2 * np.exp(-1.0), rtol=1e-4)


@pytest.mark.parametrize("times", [np.array([0.0, 1.0]), np.linspace(0, 1, 401)], ids=["one interval", "many"])
def test_what_is_held_does_not_grow_with_the_steps(times):
    def peak(n):
        short = times if len(times) == 2 else times[: n + 1]
        options = {"steps_per_interval": n if len(times) == 2 else 1, "policy": pb.Binomial(4)}
        _, pull = pb.vjp(lambda y: pb.odeint(lambda y, t: -y, y, short, **options)[-1], np.ones(1000))
        pull(np.ones(1000))
        return pull.report.peak_bytes

    rows = 0 if len(times) == 2 else 300
    assert peak(400) == peak(100) + rows * 8_000, "the cotangent has a row for each of the times"


def test_refusals():
    with pytest.raises(
        pb.ConvergenceError, match=r"\d+ steps, of which \d+ were taken, lead from t = 0 to 1 and not to 2"
    ) as caught:
        pb.odeint(lambda y, t: y * y, 1.0, [0.0, 2.0])
    assert 0.99 < caught.value.residual < 1.01
    with pytest.raises(pb.ConvergenceError, match=r"odeint: 3 steps, of which") as caught:
        pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], max_steps=3)
    assert caught.value.n_steps == 3
    with pytest.raises(pb.StructureError, match="method='rk4'; take 'dopri5', or 'rk4' with steps_per_interval="):
        pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], method="rk4")
    with pytest.raises(pb.StructureError, match="method='bdf'"):
        pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], method="bdf")
    with pytest.raises(pb.StructureError, match="steps_per_interval=0; take 1 or more"):
        pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], steps_per_interval=0)
    with pytest.raises(pb.StructureError, match=r"t has shape \(\); give a vector of times"):
        pb.odeint(lambda y, t: -y, 1.0, 2.0)
    with pytest.raises(pb.StructureError, match=r"f returned float64\[\] for a leaf float64\[2\] of the state"):
        pb.odeint(lambda y, t: np.sum(y), Y0, [0.0, 2.0])
    with pytest.raises(pb.StructureError, match=r"f returned the structure .*, the state has"):
        pb.odeint(lambda y, t: (y,), Y0, [0.0, 2.0])
    for t, said in (
        ([0.0, np.nan], r"t\[1\] is nan"),
        ([0.0, np.inf], r"t\[1\] is inf"),
        ([0.0, 1j], "dtype complex128"),
        (["a"], "dtype <U1"),
    ):
        with pytest.raises(pb.StructureError, match=f"odeint: .*{said}; give (finite|real) times"):
            pb.odeint(lambda y, t: -y, 1.0, t)
    for tolerances in ({"rtol": -1.0}, {"rtol": 0.0, "atol": 0.0}, {"atol": np.nan}):
        with pytest.raises(
            pb.StructureError, match=r"rtol=.* and atol=.*; give tolerances of 0 or more, and not 0 for both"
        ):
            pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], **tolerances)
    with pytest.raises(pb.StructureError, match=r"steps_per_interval=2.5; take 1 or more, an integer"):
        pb.odeint(lambda y, t: -y, 1.0, [0.0, 2.0], steps_per_interval=2.5)
    with pytest.raises(
        pb.StructureError,
        match=r"f returned complex128\[2\] for a leaf float64\[2\] of the state; start from a complex y0",
    ):
        pb.odeint(lambda y, t: 1j * y, Y0, [0.0, 2.0])


def test_a_slope_in_one_buffer():
    """Where no trace is under way, ``f`` may fill the same array at each call, as it may for SciPy."""
    slope = np.empty(2)
    for options in ({}, {"steps_per_interval": 3, "method": "rk4"}):
        found = pb.odeint(lambda y, t: np.negative(y, out=slope), Y0, [0.0, 1.0], **options)
        assert np.array_equal(found, pb.odeint(lambda y, t: -y, Y0, [0.0, 1.0], **options))
