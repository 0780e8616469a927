"""A backend is told the plan of each function, and its kernels are used where they give NumPy's bytes."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, loop_over, measured, stages

import pullback as pb
from pullback.backends import Kernel, Ref
from pullback.testing.comparing.bits import same_bits
from pullback.words import plugins

X = np.linspace(0.5, 1.5, 60).reshape(6, 10)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def times(a, b, out):
    np.multiply(a, b, out)
    return False


def products(plan, function=times):
    """The backend of docs/backends.md."""
    order = []
    for place, call in enumerate(plan.calls):
        values = [plan.values[n] for n in (*call.reads, call.makes)]
        ours = call.function is np.multiply and all(isinstance(x, Ref) for x in call.args)
        if ours and all(v.is_array and v.dense and v.shape == v.whole == X.shape for v in values):
            order.append(Kernel((place,), function, tuple(v.memory for v in values), text="out = a * b"))
        else:
            order.append(place)
    return order


@pytest.fixture
def installed(monkeypatch):
    """Installs a backend under the name ``toy``."""
    found = {}
    monkeypatch.setattr(plugins, "backend", found.__getitem__)
    monkeypatch.setattr("pullback.memory.in_force.backend", found.__getitem__)
    return lambda backend: found.update(toy=backend)


def body(k, u, x):
    v = u * x
    w = np.sin(v) * v
    w[1:-1, 2:] += v[:-2, 1:-1] * u[2:, 1:-1]
    return w * 0.5


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_kernels_give_the_bits_of_recorded_steps(installed, policy):
    installed(products)
    recorded = measured(loop_over(body), X, policy, "off")
    for _ in range(2):
        assert same_bits(measured(loop_over(body), X, policy, "toy"), recorded)
    (stage,) = stages()
    assert stage.record.kernels
    assert stage.reverse.kernels
    assert not stage.notes


def test_stages_of_two_backends_are_two(installed):
    installed(products)
    f = loop_over(body)
    for staging in ("numpy", "toy", "numpy"):
        measured(f, X, pb.SaveAll(), staging)
    assert sorted(bool(stage.record.kernels) for stage in stages()) == [False, True]


def test_the_texts_show_the_kernels(installed):
    installed(products)

    def step(k, u):
        return u * u

    pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, step, x, staging="toy")))(X)
    told = str(pb.explain_stage(step))
    assert "times(v0, v0, v" in told
    assert "of record:\nout = a * b" in told


def wrong(a, b, out):
    np.multiply(a, b, out)
    out += 1e-12
    return False


def failing(a, b, out):
    raise RuntimeError("out of order")


def unable(plan):
    raise LookupError("no device")


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (lambda plan: products(plan, wrong), "other bytes than were recorded"),
        (lambda plan: products(plan, failing), "RuntimeError: out of order"),
        (lambda plan: [*products(plan), 0], "ValueError: a backend has to do each of the calls"),
        (lambda plan: products(plan)[1:], "ValueError: a backend has to do each of the calls"),
        (unable, "LookupError: no device"),
    ],
    ids=["wrong", "failing", "twice", "forgotten", "unable"],
)
def test_what_goes_wrong_leaves_numpys_functions(installed, backend, said):
    installed(backend)
    recorded = measured(loop_over(body), X, pb.SaveAll(), "off")
    assert same_bits(measured(loop_over(body), X, pb.SaveAll(), "toy"), recorded)
    (stage,) = stages()
    assert not stage.record.kernels
    assert any(said in note for note in stage.notes)


def test_kernels_run_under_the_default_error_state_alone(installed):
    ran = []

    def counted(a, b, out):
        ran.append(np.geterr()["divide"])
        return times(a, b, out)

    installed(lambda plan: products(plan, counted))
    f = loop_over(body)
    measured(f, X, pb.SaveAll(), "toy")
    for how in ({"divide": "ignore"}, {"invalid": "ignore"}, {"all": "ignore"}):
        ran.clear()
        with np.errstate(**how), pb.using(staging="toy"):
            _, pull = pb.vjp(f, X)
        assert not ran
        pull.close()
    with pb.using(staging="toy"):
        pb.vjp(f, X)
    assert set(ran) == {"call"}  # of which the user hears as of a warning


def test_a_kernel_that_says_so_has_the_calls_made_after_all(installed):
    said = []

    def warned(a, b, out):
        out[...] = np.nan  # whatever it leaves is computed again
        said.append(1)
        return True

    installed(lambda plan: products(plan, warned if plan.warns else times))
    recorded = measured(loop_over(body), X, pb.SaveAll(), "off")
    assert same_bits(measured(loop_over(body), X, pb.SaveAll(), "toy"), recorded)
    assert said


def test_the_plan_says_where_values_lie(installed):
    plans = {}

    def looking(plan):
        plans[plan.name] = plan
        return range(len(plan.calls))

    def step(k, u):
        v = u * 0.5
        v[1:, 2:] += u[:-1, 1:-1]
        return v

    installed(looking)
    f = lambda x: np.sum(pb.fori_loop(0, 9, step, x, staging="toy"))  # noqa: E731
    pb.grad(f)(X)
    assert set(plans) == {"record", "reverse", "reverse_own"}  # no step is run without being recorded
    pb.grad(f, policy=pb.Binomial(2))(X)
    assert set(plans) == {"record", "advance", "reverse", "reverse_own"}
    plan = plans["record"]
    product, view, write = (next(c for c in plan.calls if c.kind == kind) for kind in ("ufunc", "view", "write"))
    assert product.function is np.multiply
    seen = plan.values[view.makes]
    assert (seen.memory, seen.starts, seen.whole) == ("v0", (0, 1), (6, 10))
    where = write.write
    assert (where.starts, where.shape, where.sign, where.in_place) == ((1, 2), (5, 8), "+=", True)
    assert plan.values[write.makes].memory == plan.values[product.makes].memory
    assert plan.warns
    assert not plans["reverse"].warns
