"""progress=True: how far a gradient is, by the schedule, and nothing where nobody asks."""

import io

import numpy as np
import pytest
from rich.console import Console

import pullback as pb
from pullback.instruments.watching import progress
from pullback.instruments.watching.progress import AGAIN, REVERSE, SWEEP, Course, executed_again, in_words, told

N = 30


def growth(x):
    return np.sum(pb.fori_loop(0, N, lambda _, u: u + 0.01 * np.sin(u) * u, x))


def marked(x):
    for _ in pb.steps(N):
        x = np.sin(x) * 1.5
    return np.sum(x)


def marked_and_shown(x):
    for _ in pb.steps(N, progress=True):
        x = np.sin(x) * 1.5
    return np.sum(x)


def nested(x):
    return np.sum(pb.fori_loop(0, N, lambda _, u: pb.fori_loop(0, 3, lambda _, v: np.sin(v), u), x))


@pytest.fixture
def pictures(monkeypatch):
    """What would be drawn: the steps done and to be done, and the seconds left; None where a bar is taken away."""
    seen = []

    class Bar:
        def show(self, course):
            parts = {name: (part.done, part.total) for name, part in course.parts.items()}
            seen.append((parts, course.seconds_left))

        def close(self):
            seen.append(None)

    monkeypatch.setattr(progress, "_Bar", Bar)
    monkeypatch.setattr(progress, "EACH", -1.0)
    return seen


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(3), pb.Budget("60 kB")], ids=str)
@pytest.mark.parametrize("f", [growth, marked, nested])
def test_every_step_is_counted_as_the_schedule_says(f, policy, pictures):
    x = np.linspace(0.1, 1.0, 10)
    plain = pb.grad(f, policy=policy)(x)
    shown = pb.grad(f, policy=policy, progress=True)(x)
    np.testing.assert_array_equal(shown, plain)
    last, left = pictures[-2]
    assert pictures[-1] is None
    assert last[SWEEP] == last[REVERSE] == (N, N)
    assert last[AGAIN][0] == last[AGAIN][1]
    if f is not nested:
        assert last[AGAIN][0] == pb.plan(f, x, policy=policy).n_forward - N
    assert left == 0
    if f is nested and policy.counts_bytes:
        return  # what the loops inside need is known when they have run
    known = [parts[AGAIN][1] for parts, _ in filter(None, pictures) if parts[REVERSE][0]]
    assert set(known) == {last[AGAIN][1]}  # from the schedule, before it was done
    remaining = [left for _, left in filter(None, pictures) if left is not None]
    assert remaining[0] > remaining[-1] == 0


def test_a_pull_that_comes_later_and_again(pictures):
    out, pull = pb.vjp(growth, np.ones(3), policy=pb.Binomial(3), progress=True)
    forward = len(pictures)
    assert pictures[-1] is None
    pull(np.ones_like(out))
    assert len(pictures) > forward + N
    assert pictures[-1] is None
    first = len(pictures)
    pull(np.ones_like(out))
    assert len(pictures) > first + N


def test_where_progress_is_said(pictures):
    with pb.using(progress=True):
        pb.value_and_grad(growth)(np.ones(3))
        assert pictures
        pictures.clear()
        with pb.using(progress=False):
            pb.grad(growth)(np.ones(3))
        pb.grad(growth, progress=False)(np.ones(3))
    pb.grad(growth)(np.ones(3))
    assert not pictures
    pb.grad(lambda x: np.sum(pb.fori_loop(0, N, lambda _, u: np.sin(u), x, progress=True)))(np.ones(3))
    assert pictures[-2][0][REVERSE] == (N, N)
    plain = pb.grad(marked)(np.ones(3))
    for policy in (pb.SaveAll(), pb.Binomial(3), pb.Recompute(), pb.Budget("1 MB"), "auto"):
        pictures.clear()
        np.testing.assert_array_equal(pb.grad(marked_and_shown, policy=policy)(np.ones(3)), plain)
        assert pictures[-1] is None
        assert max(parts[SWEEP] for parts, _ in filter(None, pictures)) == (N, N)
        assert pictures[-2][0][REVERSE] == (N, N)  # under "auto" it is a program that is known by then
    with pytest.raises(pb.PolicyError, match=r"progress= takes True or False, got 'yes'"):
        pb.grad(growth, progress="yes")(np.ones(3))


def test_forward_mode_has_a_sweep(pictures):
    def walked(x):
        return pb.fori_loop(0, N, lambda _, u: np.sin(u), x)

    for call in (
        lambda: pb.jvp(walked, (np.ones(3),), (np.ones(3),)),
        lambda: pb.jacobian(walked, mode="forward")(np.ones(3)),
    ):
        pictures.clear()
        with pb.using(progress=True):
            call()
        assert pictures[-1] is None
        assert pictures[-2] == ({SWEEP: (N, N), AGAIN: (0, 0), REVERSE: (0, 0)}, 0.0)


def test_a_bar_goes_when_the_function_fails(pictures):
    def failing(x):
        return np.sum(pb.fori_loop(0, N, lambda k, u: u if k < 5 else 1 / 0, x))

    def shown(x):
        return np.sum(pb.fori_loop(0, N, lambda k, u: u if k < 5 else 1 / 0, x, progress=True))

    for call in (
        lambda: pb.grad(failing, progress=True)(np.ones(3)),
        lambda: pb.grad(shown)(np.ones(3)),
        lambda: pb.jvp(shown, (np.ones(3),), (np.ones(3),)),
    ):
        pictures.clear()
        with pytest.raises(ZeroDivisionError):
            call()
        assert pictures[-1] is None


def test_what_stands_on_a_terminal(monkeypatch):
    bar = told(None).course
    drawn = io.StringIO()
    shower = bar.show.__self__
    shower.console = Console(file=drawn, force_terminal=True, width=100)
    bar.begins(100, 50)
    for name, n, seconds in ((SWEEP, 100, 10.0), (AGAIN, 25, 2.5), (REVERSE, 50, 10.0)):
        bar.parts[name].done, bar.parts[name].seconds = n, seconds
    bar.end()
    text = drawn.getvalue()
    for words in ("sweep", "100/100", "recompute", "25/50", "reverse", "50/100", "about 0:12 left"):
        assert words in text


def test_who_waits_for_a_backend_is_told_so(monkeypatch):
    """While it compiles; the seconds are those of no step."""
    said = []
    shown = lambda _, course: said.append((course.waiting, course.parts[SWEEP].seconds))  # noqa: E731
    monkeypatch.setattr(progress._Bar, "show", shown)
    x = np.linspace(0.1, 1.0, 40_000)
    f = lambda x: np.sum(pb.fori_loop(0, 9, lambda _, u: u + 0.1 * u * (1 - u), x, staging="numba"))  # noqa: E731
    pb.grad(f, progress=True)(x)
    words = [why for why, _ in said]
    begun = words.index("compiling")
    assert words[begun + 1] == ""
    assert said[begun][1] == said[begun + 1][1]


def test_nothing_is_written_where_nobody_looks(capfd):
    pb.grad(growth, progress=True)(np.ones(3))
    assert capfd.readouterr() == ("", "")


def test_what_remains_where_the_schedule_is_not_known():
    course = Course(lambda _: None)
    course.begins(None, None)
    assert course.seconds_left is None
    course = Course(lambda _: None)
    course.begins(10, None)
    course.parts[SWEEP].done, course.parts[SWEEP].seconds = 10, 1.0
    assert course.seconds_left is None
    course.parts[REVERSE].done, course.parts[REVERSE].seconds, course.parts[AGAIN].seconds = 5, 1.0, 2.0
    assert course.seconds_left == pytest.approx(3.0)
    assert executed_again(pb.Binomial(3).schedule(None), None, {}) is None
    assert executed_again(pb.Binomial(3).schedule(30), 30, {}) == 85
    assert [in_words(s) for s in (0.4, 65, 3723)] == ["0:00", "1:05", "1:02:03"]
