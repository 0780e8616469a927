"""The wave model, its setting, its inversion, and the handwritten adjoints that the benchmarks compare against."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from attrs import evolve

from pullback.demos import wave_data, wave_inversion, wave_model
from pullback.words.errors import PullbackError

REFERENCES = Path(__file__).resolve().parents[2] / "benchmarks" / "references"
SMALL = evolve(wave_data.DEFAULT, shape=(44, 56), n_steps=90, border=6)


def reference(name: str) -> ModuleType:
    """A module of ``benchmarks/references``, which is no package that tests could import."""
    spec = importlib.util.spec_from_file_location(f"benchmark_reference_{name}", REFERENCES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


wave_adjoint = reference("wave_adjoint")
schedules = reference("schedules")
chain = reference("chain")
elementwise = reference("elementwise")


@pytest.fixture(scope="module", params=[1, 3], ids=["one shot", "three shots"])
def survey(request: pytest.FixtureRequest) -> wave_data.WaveSurvey:
    return wave_data.make_survey(evolve(SMALL, n_shots=request.param))


def loop(lower: int, upper: int, body: wave_model.Body, state: wave_model.State) -> wave_model.State:
    for k in range(lower, upper):
        state = body(k, state)
    return state


def plane_problem(n: int, n_steps: int, courant: float) -> wave_model.WaveProblem:
    """A square of side 1 without damping, sources and receivers, speed 1."""
    dx = 1.0 / (n - 1)
    return wave_model.WaveProblem(
        dx=dx,
        dt=courant * dx,
        n_steps=n_steps,
        field_shape=(n, n),
        wavelet=np.zeros(n_steps),
        source_index=(1, 1),
        receiver_index=(..., np.array([n // 2]), np.array([n // 3])),
        damp=np.ones((n, n)),
        gain=np.ones((n - 2, n - 2)),
        data=np.zeros((n_steps, 1)),
        scale=1.0,
    )


def standing_wave_error(n: int) -> float:
    """Largest error at time 1/2 of the standing wave sin(pi z) sin(pi x) cos(sqrt(2) pi t), zero on the edges."""
    problem = plane_problem(n, (n - 1), 0.5)
    axis = np.linspace(0.0, 1.0, n)
    shape = np.outer(np.sin(np.pi * axis), np.sin(np.pi * axis))
    c2 = wave_model.scaled_speed(np.ones((n, n)), problem)
    u_prev, u = shape * np.cos(np.sqrt(2) * np.pi * problem.dt), shape
    for k in range(problem.n_steps):
        u_prev, u = u, wave_model.advance(c2, u_prev, u, problem, k)
    return float(np.max(np.abs(u - shape * np.cos(np.sqrt(2) * np.pi * problem.n_steps * problem.dt))))


def test_the_scheme_is_of_second_order() -> None:
    coarse, fine = standing_wave_error(17), standing_wave_error(33)
    assert 1.9 < np.log2(coarse / fine) < 2.1


def test_the_border_absorbs() -> None:
    problem = plane_problem(81, 400, 0.5)
    wavelet = wave_model.ricker(400, problem.dt, 12.0, 0.1)
    damp, gain = wave_model.absorbing_border((81, 81), 20, problem.dx, problem.dt, 1.0)
    closed = evolve(problem, wavelet=wavelet, source_index=(40, 40))
    c = np.ones((81, 81))
    late = [
        float(np.max(np.abs(wave_model.simulate(c, p)[300:]))) for p in (closed, evolve(closed, damp=damp, gain=gain))
    ]
    assert late[1] < 0.05 * late[0]


def test_ricker_peaks_at_its_delay_and_has_no_mean() -> None:
    wavelet = wave_model.ricker(1000, 1e-3, 5.0, 0.4)
    assert np.argmax(wavelet) == 400
    assert wavelet[400] == 1.0
    assert abs(np.sum(wavelet)) < 1e-9


def test_an_unstable_time_step_is_refused() -> None:
    wave_model.check_stable(np.full((3, 3), 3000.0), 10.0, 2e-3)
    with pytest.raises(PullbackError, match=r"c dt / dx = 0\.9 with c = 3000 m/s.*Take dt < 0\.002357 s"):
        wave_model.check_stable(np.full((3, 3), 3000.0), 10.0, 3e-3)


def test_the_ways_to_the_misfit_agree_bit_for_bit(survey: wave_data.WaveSurvey) -> None:
    c, problem = survey.initial_velocity, survey.problem
    expected = wave_model.misfit(c, problem)
    assert wave_model.misfit(c, problem, iter(range(problem.n_steps))) == expected
    assert wave_model.misfit_by_loop(c, problem, loop) == expected
    assert wave_adjoint.misfit_only(c, problem) == expected
    residual = np.stack(wave_model.simulate(c, problem)) - problem.data
    np.testing.assert_allclose(problem.scale * np.sum(residual**2), expected, rtol=1e-12)


def test_no_argument_is_written_to(survey: wave_data.WaveSurvey) -> None:
    c, problem = survey.initial_velocity.copy(), survey.problem
    init = wave_model.initial_state(problem)
    wave_model.make_body(c, problem)(40, init)
    assert np.array_equal(c, survey.initial_velocity)
    assert not np.any(init[0])
    assert not np.any(init[1])


def test_float32_stays_float32() -> None:
    survey = wave_data.make_survey(evolve(SMALL, dtype="float32"))
    c, problem = survey.initial_velocity, survey.problem
    assert c.dtype == problem.dtype == np.float32
    u_prev, u, loss = wave_model.make_body(c, problem)(0, wave_model.initial_state(problem))
    assert {u_prev.dtype, u.dtype, loss.dtype, wave_model.misfit(c, problem).dtype} == {np.dtype(np.float32)}
    assert all(r.dtype == np.float32 for r in wave_model.simulate(c, problem))
    value, gradient = wave_adjoint.value_and_gradient(c, problem)
    assert {value.dtype, gradient.dtype} == {np.dtype(np.float32)}
    double = wave_data.make_survey(SMALL)
    exact = wave_adjoint.value_and_gradient(double.initial_velocity, double.problem)[1]
    np.testing.assert_allclose(gradient, exact, atol=1e-4 * float(np.max(np.abs(exact))))


def test_data_come_from_a_finer_grid_with_noise() -> None:
    quiet = wave_data.make_survey(evolve(SMALL, noise=0.0))
    noisy = wave_data.make_survey(SMALL)
    again = wave_data.make_survey(SMALL)
    assert np.array_equal(noisy.problem.data, again.problem.data)
    added = noisy.problem.data - quiet.problem.data
    assert np.std(added) == pytest.approx(SMALL.noise * np.sqrt(np.mean(quiet.problem.data**2)), rel=0.05)
    modelling = wave_model.misfit(quiet.true_velocity, quiet.problem)
    assert 1e-4 < modelling < 0.05, "the true model fits its own data, but not exactly: they are from another grid"
    finer = wave_data.make_survey(evolve(SMALL, noise=0.0, refine=2.0))
    assert np.max(np.abs(finer.problem.data - quiet.problem.data)) < 0.3 * np.max(np.abs(quiet.problem.data))


def test_sources_between_the_finer_nodes_are_refused() -> None:
    with pytest.raises(PullbackError, match=r"with refine = 1\.3 the sources fall between the nodes"):
        wave_data.make_survey(evolve(SMALL, refine=1.3))


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch, survey: wave_data.WaveSurvey) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.cbook", None)
    monkeypatch.setitem(sys.modules, "scipy.optimize", None)
    with pytest.raises(PullbackError, match=r"matplotlib is missing: install pullback\[demo\]"):
        wave_data.load_terrain()
    with pytest.raises(PullbackError, match=r"scipy is missing: install pullback\[demo\]"):
        wave_inversion.invert(lambda c: (0.0, c), survey)


def test_the_section_is_the_same_ground_on_every_grid() -> None:
    terrain = wave_data.load_terrain()
    z, x = np.arange(0.0, 4500.0, 50.0), np.arange(0.0, 6400.0, 50.0)
    coarse, water = wave_data.velocity_section(terrain, z, x, 4500.0, 6400.0)
    fine, _ = wave_data.velocity_section(
        terrain, np.arange(0.0, 4500.0, 25.0), np.arange(0.0, 6400.0, 25.0), 4500.0, 6400.0
    )
    assert np.array_equal(coarse, fine[::2, ::2])
    assert 1500.0 == coarse.min() == coarse[water].max()
    assert 3500.0 < coarse.max() < 4500.0
    assert np.ptp(water.sum(axis=0)) >= 3, "the sea floor has relief"
    smooth = wave_data.smoothed(coarse, water, 8.0)
    assert np.array_equal(smooth[water], coarse[water])
    assert smooth[~water].min() > 1900.0, "no water is mixed into the ground"


@pytest.mark.parametrize("way", ["value_and_gradient", "value_and_gradient_from_states"])
def test_the_adjoint_equals_the_complex_step(survey: wave_data.WaveSurvey, way: str) -> None:
    c, problem = survey.initial_velocity, survey.problem
    value, gradient = getattr(wave_adjoint, way)(c, problem)
    assert value == wave_model.misfit(c, problem)
    for seed in range(3):
        direction = np.random.default_rng(seed).standard_normal(c.shape)
        derivative = float(np.imag(wave_model.misfit(c + 1e-30j * direction, problem))) / 1e-30
        assert np.sum(gradient * direction) == pytest.approx(derivative, rel=1e-9)


def test_the_adjoint_has_taylor_rate_two(survey: wave_data.WaveSurvey) -> None:
    c, problem = survey.initial_velocity, survey.problem
    value, gradient = wave_adjoint.value_and_gradient(c, problem)
    direction = 20.0 * np.random.default_rng(1).standard_normal(c.shape)
    slope = np.sum(gradient * direction)
    rest = [abs(wave_model.misfit(c + h * direction, problem) - value - h * slope) for h in (0.25, 0.125, 0.0625)]
    assert np.log2(np.array(rest[:-1]) / rest[1:]) == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("snapshots", [1, 2, 5, 89])
def test_a_schedule_gives_the_same_bits(survey: wave_data.WaveSurvey, snapshots: int) -> None:
    c, problem = survey.initial_velocity, survey.problem
    value, gradient = wave_adjoint.value_and_gradient(c, problem)
    actions = schedules.binomial(problem.n_steps, snapshots)
    scheduled_value, scheduled = wave_adjoint.value_and_gradient_by_schedule(c, problem, actions)
    assert scheduled_value == value
    assert np.array_equal(scheduled, gradient)
    assert np.array_equal(wave_adjoint.value_and_gradient_from_states(c, problem)[1], gradient)


@pytest.mark.parametrize(
    ("n", "snapshots", "forward"), [(10, 3, 25), (100, 10, 322), (100, 50, 248), (7, 1, 28), (1, 1, 1)]
)
def test_the_reference_schedule_is_optimal(n: int, snapshots: int, forward: int) -> None:
    actions = schedules.binomial(n, snapshots)
    advanced = sum(action[2] - action[1] for action in actions if action[0] == "Advance")
    held = peak = 0
    for action in actions:
        held += (action[0] == "Save") - (action[0] == "Delete")
        peak = max(peak, held)
    assert advanced + sum(action[0] == "Record" for action in actions) == forward
    assert (held, peak <= snapshots) == (0, True)
    assert [action[1] for action in actions if action[0] == "Reverse"] == list(reversed(range(n)))


def test_a_wrong_schedule_is_refused(survey: wave_data.WaveSurvey) -> None:
    c, problem = survey.initial_velocity, survey.problem
    with pytest.raises(ValueError, match="asks for step 3, but the live state is the start of step 2"):
        wave_adjoint.value_and_gradient_by_schedule(c, problem, [("Advance", 0, 2), ("Record", 3)])
    with pytest.raises(ValueError, match="unknown action 'Jump'"):
        wave_adjoint.value_and_gradient_by_schedule(c, problem, [("Jump", 3)])


def test_the_inversion_lowers_misfit_and_model_error() -> None:
    survey = wave_data.make_survey(evolve(SMALL, shape=(60, 80), n_steps=250, border=8))
    seen: list[tuple[int, float, float]] = []

    def value_and_gradient(c: Any) -> tuple[Any, Any]:
        return wave_adjoint.value_and_gradient(c, survey.problem)  # type: ignore[no-any-return]  # loaded by path

    found = wave_inversion.invert(value_and_gradient, survey, 6, lambda *entry: seen.append(entry))
    assert seen == list(zip(range(7), found.misfits, found.model_errors, strict=True))
    assert found.misfits[0] == pytest.approx(float(wave_model.misfit(survey.initial_velocity, survey.problem)))
    assert found.misfits[-1] < 0.4 * found.misfits[0]
    assert found.model_errors[-1] < 0.8 * found.model_errors[0]
    assert np.array_equal(found.velocity[survey.water], survey.initial_velocity[survey.water])


@pytest.mark.parametrize("operands", [(np.array([0.9, 1.1, 1.2, 0.8]), np.array([0.1, -0.1, 0.2, 0.3])), (0.9, 0.1)])
def test_the_chain_by_hand(operands: tuple[Any, Any]) -> None:
    x = np.array([0.1, 0.2, 0.3, 0.4])
    value, gradient = chain.constant_operands(x, *operands, rounds=20)
    assert value == chain.program(x, *operands, rounds=20)
    steps = 1e-30j * np.eye(4)
    np.testing.assert_allclose(
        gradient, [np.imag(chain.program(x + step, *operands, rounds=20)) / 1e-30 for step in steps], rtol=1e-12
    )


@pytest.mark.parametrize(
    ("module", "names"), [(chain, ["traced_operands"]), (elementwise, ["traced_operands", "traced_operands_tuned"])]
)
def test_traced_operands_by_hand(module: ModuleType, names: list[str]) -> None:
    operands = [np.random.default_rng(seed).uniform(0.5, 1.5, 4) for seed in range(3)]
    for name in names:
        value, *gradients = getattr(module, name)(*operands)
        assert value == module.program(*operands)
        for place, gradient in enumerate(gradients):
            for element, step in enumerate(1e-30j * np.eye(4)):
                moved = [operand + step if place == i else operand for i, operand in enumerate(operands)]
                assert gradient[element] == pytest.approx(np.imag(module.program(*moved)) / 1e-30, rel=1e-11, abs=1e-14)


@pytest.mark.parametrize("way", ["scalar_operands", "scalar_operands_tuned"])
def test_scalar_operands_by_hand(way: str) -> None:
    x = np.random.default_rng(0).standard_normal(50)
    value, gradient = getattr(elementwise, way)(x, 0.7, 0.2)
    assert value == pytest.approx(elementwise.program(x, 0.7, 0.2), rel=1e-15)
    expected = elementwise.traced_operands(x, np.full(50, 0.7), np.full(50, 0.2))[1]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-15)
