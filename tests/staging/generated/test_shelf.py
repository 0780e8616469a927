"""What is known of a body's steps: when a stage is made, shared, and when nothing more is tried."""

from types import SimpleNamespace

import numpy as np
from tests.staging.generated.both_ways import N, loop_over, require_same, shelves, stages, variants

import pullback as pb
from pullback.staging.generated import shelf
from pullback.staging.generated.shelf import MOST_BODIES, MOST_VARIANTS, shelf_of

X = np.linspace(0.1, 1.2, 40)


def gradient(body, n=N, staging="numpy", x=X):
    return pb.grad(lambda x: np.sum(pb.fori_loop(0, n, body, x, staging=staging)))(x)


def sines(k, u):
    return np.sin(u) * 0.9


def test_a_step_is_staged_when_it_has_come_twice_beside_the_first():
    gradient(sines, 2)
    assert not stages()
    gradient(sines, 2)
    assert len(stages()) == 1


def test_stages_are_shared_by_the_loops_over_one_body():
    gradient(sines)
    first = stages()
    gradient(sines, x=X * 2)
    assert stages() == first
    assert shelf_of(sines) is shelf_of(sines)
    assert shelf_of(sines) is not shelf_of(lambda k, u: np.sin(u) * 0.9)


def test_closures_over_other_things_share_a_body():
    def scaled(c):
        return lambda k, u: np.sin(u) * c

    for c in (0.9, np.float32(0.5), np.linspace(0, 1, 40), 0.1):
        body = scaled(c)
        for _ in range(2):
            assert gradient(body).tobytes() == gradient(body, staging="off").tobytes()
    assert len(shelves()) == 1
    assert len(stages()) == 3


def test_stages_of_loops_that_hold_all_steps_have_what_these_need_until_others_come():
    gradient(sines)
    [held] = stages()
    assert held.advance is held.record
    assert held.reverse_own is not held.reverse
    assert held.both is held.leaf is None
    for policy in (pb.Binomial(2), pb.SaveAll()):
        with pb.using(policy):
            gradient(sines)
        [whole] = stages()
        assert whole.advance is not whole.record
        assert whole.both is not None


def test_off_learns_nothing():
    gradient(sines, staging="off")
    assert not shelves()


def test_a_short_loop_is_not_staged_by_itself():
    gradient(sines, 5, staging="auto")
    assert not stages()
    gradient(sines, 100, staging="auto")
    assert len(stages()) == 1


def test_a_body_of_too_many_kinds_of_steps_stays_recorded():
    def narrowing(k, u, x):
        v = u * x
        v[k:] += np.sin(u[k:])
        return v

    require_same(loop_over(narrowing, 30), X)
    (found,) = variants()
    assert found.over
    assert len(found.seen) + found.n_failed > MOST_VARIANTS


def test_few_kinds_of_steps_are_all_staged():
    def one_of_four(k, u, x):
        v = u * x
        v[k % 4 :] += np.sin(u[k % 4 :])
        return v

    require_same(loop_over(one_of_four, 30), X)
    (found,) = variants()
    assert not found.over
    assert len(found.stages) == 4


def test_why_is_told_once():
    found = shelf.Variants(())
    for _ in range(3):
        found.failed("a reason")
    assert found.why == ["a reason"]
    assert found.n_failed == 3


def test_what_is_no_function_has_a_shelf_of_its_own():
    class Body:
        def __call__(self, k, u):
            return np.sin(u) * 0.9

    body = Body()
    assert gradient(body).tobytes() == gradient(sines, staging="off").tobytes()
    assert shelf_of(body) is not shelf_of(body)


def test_copies_of_a_function_share_a_shelf():
    one, other = (eval("lambda k, u: u * 0.5") for _ in range(2))  # noqa: S307 - a code object each
    assert one.__code__ is not other.__code__
    assert shelf_of(one) is shelf_of(other)
    assert shelf_of(one) in shelf.shelves_of(other)
    elsewhere = eval(compile("lambda k, u: u * 0.5", "elsewhere.py", "eval"))  # noqa: S307 - the same in another file
    assert shelf_of(one) is not shelf_of(elsewhere)


def test_the_oldest_bodies_are_forgotten():
    made = [eval(f"lambda k, u: {k}") for k in range(MOST_BODIES + 1)]  # noqa: S307 - other code each
    for body in made:
        shelf_of(body)
    assert len(shelf._SHELVES) == MOST_BODIES
    shelf.forget()
    assert not shelf._SHELVES


def test_another_thread_may_learn_the_same_at_the_same_time(monkeypatch):
    known = shelf.Variants("kinds")
    step = SimpleNamespace(operations=["sin"])
    same_as = shelf.same

    def interrupted(a, b):
        monkeypatch.setattr(shelf, "same", same_as)
        assert known.learn(step) == "stage"  # in the other thread
        known.stages.clear()  # this one has not seen it yet
        return same_as(a, b)

    monkeypatch.setattr(shelf, "stage_of", lambda step, backend: "stage")
    assert known.learn(step) is None
    monkeypatch.setattr(shelf, "same", interrupted)
    assert known.learn(step) == "stage"
    assert not known.seen
