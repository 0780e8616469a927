"""Steps that go straight on: the same bits as one by one, and whatever differs ends the run at its own step."""

import threading
import warnings
from itertools import count

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, measured, require_same

import pullback as pb
from pullback.loops.stepping import straight_steps
from pullback.loops.stepping.held_steps import StepKind
from pullback.loops.stepping.staged_steps import StagedSteps
from pullback.scheduling.machine.actions import EndForward, Load, Record, Reverse, Save

X = np.array([0.3, -0.7, 1.1, 0.2])
Y = np.array([0.9, 0.1, -0.4, 2.0])


def plain(k, u, x):
    return u + 0.01 * (x * u * (1.0 - u))


pytestmark = pytest.mark.usefixtures("nothing_is_known")


@pytest.fixture
def single(monkeypatch):
    """How many steps were recorded one by one, once ``single.clear()`` has been called."""
    seen = []
    recorded = StagedSteps.recorded

    def counted(self, k, state, *, keeps=True):
        seen.append(k)
        return recorded(self, k, state, keeps=keeps)

    monkeypatch.setattr(StagedSteps, "recorded", counted)
    return seen


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)])
def test_steps_that_are_alike_are_not_looked_at_one_by_one(single, policy):
    f = loop_over(plain, n=40)
    for _ in range(2):
        single.clear()
        found = measured(f, X, policy, "numpy")
    assert len(single) <= 2
    assert found[1].tobytes() == measured(f, X, policy, "off")[1].tobytes()


def tuples(x):
    def body(k, carry):
        ((u, v), w), s = carry
        return ((u + 0.01 * v * x, v - 0.01 * u), w * 0.9 + u), s + u[0]

    return body, (((x, x * 0.5), np.ones(4)), 0.0)


def dicts(x):
    def body(k, carry):
        one, two = carry["pair"]
        return {"pair": [two * 0.9 + 0.01 * one * x, one - 0.01 * x], "last": (two,)}

    return body, {"pair": [x, np.cos(x)], "last": (x * 2.0,)}


def in_another_order(x):
    def body(k, carry):
        (a, b), c = carry
        return ((b, a), c + 0.01 * a * x) if k != 30 else ((a, b), c)

    return body, ((x, np.sin(x)), x * 0.5)


def kept(x):
    held = []

    def body(k, carry):
        held[:] = [carry["u"]] if k % 7 == 3 else []
        return {"u": (carry["u"][0] * 0.99 + 0.01 * x,)}

    return body, {"u": (x,)}


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)])
@pytest.mark.parametrize("nested", [tuples, dicts, in_another_order, kept])
def test_nested_states_go_straight_on(single, policy, nested):
    def f(x):
        body, start = nested(x)
        return sum(np.sum(leaf * leaf) for leaf in leaves_of(pb.fori_loop(0, 60, body, start)))

    for _ in range(3):
        single.clear()
        found = measured(f, X, policy, "numpy")
    if nested in (tuples, dicts):
        assert len(single) <= 2
    wanted = measured(f, X, policy, "off")
    assert (found[0].tobytes(), found[1].tobytes()) == (wanted[0].tobytes(), wanted[1].tobytes())


def leaves_of(tree):
    if isinstance(tree, dict):
        tree = tuple(tree.values())
    return [leaf for part in tree for leaf in leaves_of(part)] if isinstance(tree, tuple | list) else [tree]


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)])
@pytest.mark.parametrize("differentiated", [False, True])
def test_steps_with_rows_go_back_straight(monkeypatch, policy, differentiated):
    """As steps without rows do, whether somebody differentiates by them or not."""
    rows, seen, pulled = np.linspace(0.1, 1.0, 160).reshape(40, 4), [], StepKind.reverse

    def counted(self, step, seeds, *, own=False):
        seen.append(step.k)
        return pulled(self, step, seeds, own=own)

    def f(x, rows):
        return np.sum(pb.scan(lambda u, row: (u * row + np.cos(x * u), None), x, rows, staging=staging)[0] ** 2)

    monkeypatch.setattr(StepKind, "reverse", counted)
    found = {}
    for staging in ("numpy", "numpy", "off"):
        seen.clear()
        found[staging] = pb.grad(f, (0, 1) if differentiated else (0,), policy=policy)(X, rows), len(seen)
    for a, b in zip(found["numpy"][0], found["off"][0], strict=True):
        assert a.tobytes() == b.tobytes()
    assert found["numpy"][1] <= 4


@pytest.mark.share(2)
@pytest.mark.parametrize("odd", [3, 5, 6, 11])
@pytest.mark.parametrize(
    "otherwise",
    [
        lambda u, x: u * x,
        lambda u, x: u * (2.0 if pb.value(u)[0] > 0 else 1.0),
        lambda u, x: u.copy(),
        lambda u, x: u,
        lambda u, x: x * 1.0,
        lambda u, x: pb.stop_gradient(u) * x,
        lambda u, x: (u + u)[::-1],
        lambda u, x: pb.fori_loop(0, 3, lambda k, v: v * x, u),
    ],
    ids=["another operation", "a value", "a copy", "what came in", "no state", "a stop", "a view", "a loop"],
)
def test_a_step_that_does_something_else_ends_the_run(otherwise, odd):
    def body(k, u, x):
        return otherwise(u, x) if k == odd else plain(k, u, x)

    require_same(loop_over(body), X, Y)


def test_structures_numbers_and_outputs():
    def paired(x):
        def body(k, state):
            u, v, s = state
            return u + 0.1 * v, v - 0.1 * u * x, s + u[0]

        u, v, s = pb.fori_loop(0, 12, body, (x, x * 0.5, 0.0))
        return np.sum(u * v) + s

    def nested(x):
        return np.sum(pb.fori_loop(0, 12, lambda k, t: {"u": [t["u"][0] * x + 0.1]}, {"u": [x]})["u"][0])

    def scanned(x):
        table = np.linspace(0.0, 1.0, 12)
        last, rows = pb.scan(lambda u, t: (u * x + t, u[1:] * t), x, table)
        return np.sum(last) + np.sum(rows)

    for f in (paired, nested, scanned):
        require_same(f, X, Y)


def test_constants_and_counters_are_those_of_each_step():
    table, counter, buffer = np.arange(12.0).reshape(12, 1), [0], np.empty(4)

    def body(k, u, x):
        counter[0] += 1
        buffer[:] = k
        v = u * buffer + table[k]
        buffer[:] = 0.5
        return np.sin(v) * buffer * x

    require_same(loop_over(body), X, Y)
    counter[0] = 0
    measured(loop_over(body), X, pb.SaveAll(), "numpy")
    assert counter[0] == 12


def test_plain_arrays_meet_captured_values_in_ufuncs():
    table = np.linspace(0.1, 1.2, 12 * 4).reshape(12, 4)

    def body(k, u, x):
        v = np.multiply(table[k], x) + np.arctan2(table[k], x) * np.sin(x)
        return u * 0.5 + 0.1 * np.add(x, v) + np.maximum(table[k], u)

    require_same(loop_over(body), X, Y)


def test_large_tables_of_which_rows_look_alike_at_first():
    table = np.zeros((12, 200))
    table[:, 3] = np.arange(12.0) % 5  # between the elements that are looked at first

    def f(x):
        return np.sum(pb.fori_loop(0, 12, lambda k, u: 0.9 * u + table[k] * x + table[k, ::-1] * u, x))

    require_same(f, np.linspace(0.1, 0.9, 200), np.linspace(-1.0, 2.0, 200))


@pytest.mark.parametrize("where", [0, 4, 9])
def test_an_error_in_a_step_leaves_nothing(where):
    armed = False

    def body(k, u, x):
        v = u * x
        if armed and k == where:
            raise KeyError(k)
        return v + 0.1

    f = loop_over(body)
    recorded = measured(f, X, pb.Binomial(2), "off")
    for policy in (pb.SaveAll(), pb.Binomial(2)):
        armed = False
        measured(f, X, policy, "numpy")
        armed = True
        with pytest.raises(KeyError):
            measured(f, X, policy, "numpy")
    armed = False
    assert measured(f, X, pb.SaveAll(), "numpy")[1].tobytes() == recorded[1].tobytes()


def test_an_error_state_that_a_step_leaves_changed_is_seen_by_the_next():
    def body(k, u, x):
        v = u * x + 0.1
        if k == 5:
            np.seterr(over="ignore")
        return v

    with np.errstate():
        require_same(loop_over(body), X, policies=(pb.SaveAll(),))


def test_warnings_of_a_straight_run_name_the_line_of_the_body():
    def body(k, u, x):
        return u * x * 1e30

    f = loop_over(body)
    measured(f, np.abs(Y) * 1e-40, pb.SaveAll(), "numpy")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        measured(f, np.abs(Y), pb.SaveAll(), "numpy")
    line = body.__code__.co_firstlineno + 1
    assert ("overflow encountered in multiply", __file__, line) in {
        (str(w.message), w.filename, w.lineno) for w in told
    }


@pytest.mark.parametrize("n_steps", [12, 40])
def test_a_step_that_is_not_the_same_when_it_is_run_again_is_told(n_steps):
    drawn = [0]

    def body(k, u, x):
        drawn[0] += k == 7
        return u * x + float(drawn[0])

    for staging in ("off", "numpy"):
        with pytest.raises(pb.ReplayError):
            measured(loop_over(body, n_steps), X, pb.Binomial(3), staging)


def test_a_pull_in_another_thread():
    f = loop_over(plain, n=30)
    wanted = measured(f, X, pb.Binomial(3), "off")[1]
    measured(f, X, pb.Binomial(3), "numpy")
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(f, X, policy=pb.Binomial(3))
    found = []
    thread = threading.Thread(target=lambda: found.append(pull(np.float64(1.0))[0]))
    thread.start()
    thread.join()
    assert found[0].tobytes() == wanted.tobytes()


def test_several_seeds_go_back_side_by_side():
    def f(x):
        return pb.fori_loop(0, 15, lambda k, u: plain(k, u, x), x)

    for policy in (pb.SaveAll(), pb.Binomial(2)):
        found = []
        for staging in ("off", "numpy", "numpy"):
            with pb.using(staging=staging):
                found.append(pb.jacobian(f, mode="reverse", policy=policy)(X).tobytes())
        assert len(set(found)) == 1


class Early(pb.MemoryPolicy):
    """Its schedule ends after a ``Record``, or goes on with something else."""

    then = ()

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        yield Save("state", 0)
        for k in range(n):
            yield Record(k)
            yield Save("tape", k)
        yield EndForward()
        for k in reversed(range(1, n)):
            yield Load("tape", k)
            yield Reverse(k)
        yield Load("state", 0)
        yield Record(0)
        yield from self.then


class Wrong(Early):
    """The step that it reverses is not the one that it has recorded."""

    then = (Reverse(1),)


@pytest.mark.parametrize("policy", [Early(), Wrong()], ids=["early", "wrong"])
def test_a_schedule_that_goes_wrong_after_a_record_is_refused(policy):
    with pytest.raises(pb.ScheduleError):
        pb.grad(loop_over(plain), policy=policy)(X)


def test_nothing_of_a_step_stays_when_the_next_has_begun(monkeypatch):
    seen = []
    begins = straight_steps._begins_again

    def looked(run, inputs):
        again = begins(run, inputs)
        seen.append((len(run.constants), len(run.values), len(run.stands), len(run.outer), len(run.written)))
        return again

    monkeypatch.setattr(straight_steps, "_begins_again", looked)
    f = loop_over(plain)
    for _ in range(2):
        measured(f, X, pb.SaveAll(), "numpy")
    assert seen
    assert set(seen) == {(0, 0, 0, 0, 0)}


@pytest.mark.parametrize("staging", ["off", "numpy", "auto"])
@pytest.mark.parametrize("policy", [pb.Recompute(), pb.Recompute(3), *map(pb.Binomial, range(1, 6))], ids=repr)
def test_what_shows_in_the_gradient_alone_is_found_at_step_0_which_no_stage_runs_again(policy, staging):
    drawn = map(float, count(1)).__next__  # the loop cannot reach how far it has come

    def f(x):
        return np.sum(pb.fori_loop(0, 30, lambda k, u: u + (u - 1.0) * drawn(), x, staging=staging))

    with pytest.raises(pb.ReplayError, match="re-running step 0"):
        pb.grad(f, policy=policy)(np.ones(3))


@pytest.mark.parametrize("makes_a_constant", [False, True])
def test_where_somebody_asks_for_the_report_steps_are_recorded_by_functions_alone(monkeypatch, makes_a_constant):
    """They hold what each would by itself, small constants too."""
    proved, factor = [], np.linspace(0.9, 1.1, X.size)

    def counted(known, steps, k, stop, *others):
        reached = recorded_on(known, steps, k, stop, *others)
        proved.append(reached[0] - k)
        return reached

    def shared(x):
        return np.sum(pb.fori_loop(0, 80, lambda _, u: u + factor * (x * u * (1.0 - factor * u)), x))

    def made(x):
        def body(_, u):
            c = 0.1 * factor
            return u + c * (x * u * (1.0 - c * u))

        return np.sum(pb.fori_loop(0, 80, body, x))

    recorded_on = straight_steps.recorded_on
    monkeypatch.setattr(straight_steps, "recorded_on", counted)
    f, policy = made if makes_a_constant else shared, pb.SaveAll()
    for _ in range(2):
        proved.clear()
        _, pull = pb.vjp(f, X, policy=policy)
        (ct,) = pull(1.0)
    assert sum(proved) >= 70
    with pb.using(staging="off"):
        _, recorded = pb.vjp(f, X, policy=policy)
        assert recorded(1.0)[0].tobytes() == ct.tobytes()
    assert pull.report.bytes_by_reason == recorded.report.bytes_by_reason
    assert pull.report.peak_bytes == pb.plan(f, X, policy=policy).peak_bytes
