"""Schedules that the machine has seen to their end are carried out again without it, and by nobody else's leave."""

import numpy as np
import pytest

import pullback as pb
from pullback.memory.executor import carry_out, carry_out_known
from pullback.scheduling.machine.actions import EndForward, EndReverse, Reverse, Save, Transfer
from pullback.scheduling.machine.known_schedules import BACK, KEEP, RECORD, REVERSE, Numbers
from pullback.scheduling.machine.machine import Machine
from pullback.scheduling.machine.schedule import SEEN

N, X = 23, np.array([0.3, -0.7, 1.1])


@pytest.fixture(autouse=True)
def nothing_is_known():
    SEEN.clear()
    yield
    SEEN.clear()


@pytest.fixture
def applied(monkeypatch):
    """The actions that a machine has been asked about, once ``applied.clear()`` has been called."""
    seen = []
    apply = Machine.apply

    def noted(self, action):
        seen.append(action)
        apply(self, action)

    monkeypatch.setattr(Machine, "apply", noted)
    return seen


def looped(x):
    return np.sum(pb.fori_loop(0, N, lambda k, u: u + 0.01 * np.sin(u) * k, x) ** 2)


def marked(x):
    for k in pb.steps(N):
        x = x + 0.01 * np.sin(x) * k
    return np.sum(x * x)


@pytest.mark.parametrize("f", [looped, marked])
@pytest.mark.parametrize("staging", ["numpy", "off"])
def test_a_schedule_is_checked_twice_and_then_known(f, staging, applied):
    wanted = pb.grad(f)(X)
    counts, figures = [], []
    with pb.using(pb.Binomial(3), staging=staging):
        for scale in (1.0, 0.5, 1.0, 0.5):
            applied.clear()
            _, pull = pb.vjp(f, scale * X)
            (found,) = pull(1.0)
            counts.append(len(applied))
            figures.append((pull.report.n_forward, pull.report.peak_bytes))
            pull.close()
            assert scale != 1.0 or found.tobytes() == wanted.tobytes()
    assert counts[0] == counts[1] > 3 * N
    assert counts[2] == counts[3] < 20
    assert len(set(figures)) == 1


def test_other_lengths_and_slots_are_other_schedules(applied):
    for _ in range(3):
        for policy in (pb.Binomial(3), pb.Binomial(4)):
            assert pb.grad(looped, policy=policy)(X).tobytes() == pb.grad(looped)(X).tobytes()
    assert {(key[1].snapshots, key[2]) for key in SEEN} == {(3, N), (4, N)}


def test_a_policy_of_the_users_is_asked_and_checked_each_time(applied):
    asked = []

    class Mine(pb.Binomial):
        def begin(self, n, *, state_bytes, tape_bytes):
            asked.append(n)
            schedule = super().begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)
            return type(schedule)(iter(schedule), n, policy=self)

    for _ in range(4):
        applied.clear()
        pb.grad(looped, policy=Mine(3))(X)
        assert len(applied) > 3 * N
    assert asked == [N] * 4


def test_an_error_in_between_leaves_nothing_known():
    def f(x, last):
        def body(k, u):
            if last and k == 5 and len(runs) > N:
                raise ValueError("no")
            runs.append(k)
            return np.sin(u)

        return np.sum(pb.fori_loop(0, N, body, x, staging="off", verify="off"))

    for last in (False, True, True, False):
        runs: list[int] = []
        gradient = pb.grad(lambda x: f(x, last), policy=pb.Binomial(3))  # noqa: B023
        if last:
            with pytest.raises(ValueError, match="no"):
                gradient(X)
        else:
            gradient(X)
    assert list(SEEN.values()) != [None]
    assert pb.grad(looped, policy=pb.Binomial(3))(X).tobytes() == pb.grad(looped)(X).tobytes()


def test_a_loop_that_ends_sooner_is_another_schedule():
    def f(x, stop):
        for k in pb.steps(N):
            if k == stop:
                break
            x = np.sin(x) * 1.01
        return np.sum(x)

    for stop in (7, N, 7, N, 7, N, 9):
        found = pb.grad(lambda x: f(x, stop), policy=pb.Binomial(3))(X)  # noqa: B023
        assert found.tobytes() == pb.grad(lambda x: f(x, stop))(X).tobytes()  # noqa: B023


def test_a_loop_of_unknown_length_that_ends_after_as_many_steps_is_known(applied):
    def f(x, n):
        return np.sum(pb.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, np.sin(s[1]) * 1.01), (0, x))[1])

    reverses = []
    for n in (N, 9, N, 9, N, 9):
        applied.clear()
        found = pb.grad(lambda x: f(x, n), policy=pb.Binomial(3))(X)  # noqa: B023
        reverses.append(sum(type(action) is Reverse for action in applied))
        assert found.tobytes() == pb.grad(lambda x: f(x, n))(X).tobytes()  # noqa: B023
    assert reverses == [N, 9, N, 9, 0, 0]
    applied.clear()
    pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda _, u: np.sin(u), x)), policy=pb.Binomial(3))(X)
    assert applied  # of known length it is another schedule


class Noting:
    """A chain that notes what it is asked for."""

    def __init__(self):
        self.seen = []

    def __getattr__(self, name):
        return lambda *given: self.seen.append((name, *given)) or given[-1]


POLICIES = [
    pb.SaveAll(), pb.Recompute(), pb.Binomial(3), pb.Mixed(5), pb.Periodic(7), pb.Budget(900), pb.Budget(10**6),
]  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_rows_are_the_actions_that_they_stand_for(policy):
    sizes = {"state_bytes": 100, "tape_bytes": 100}
    actions = [a for a in policy.schedule(N, **sizes) if type(a) not in (EndForward, EndReverse)]
    one_by_one, together, numbers = Noting(), Noting(), Numbers()
    machine = Machine(N)
    for action in policy.schedule(N, **sizes):
        carry_out(action, machine, one_by_one)
    assert all(map(numbers.take, actions))
    each = numbers.taken()
    together.record_and_reverse = lambda k: together.seen.extend((("record", k), ("reverse", k)))
    carry_out_known(together, each)
    assert together.seen == one_by_one.seen
    assert not numbers.taken()
    assert len(each) <= 3 * len(actions)


def test_a_leaf_is_two_rows():
    numbers, found = Numbers(), []
    for action in pb.SaveAll().schedule(1000):
        if type(action) in (EndForward, EndReverse):
            found.append(list(numbers.taken()))
        else:
            assert numbers.take(action)
    assert found == [[KEEP, 0, 999, RECORD, 999, 0], [REVERSE, 999, 0, BACK, 998, 0]]


def test_actions_of_other_tiers_are_no_numbers():
    numbers = Numbers()
    assert not numbers.take(Save("state", 0, "disk"))
    assert not numbers.take(Transfer("state", 0, "memory", "disk"))
    assert not numbers.taken()
