"""What a body is given and what it returns are its own; where it is called again, it meets what it met."""

import re
import warnings

import numpy as np
import pytest

import pullback as pb

X = np.array([0.31, 0.83, -0.52])
POLICIES = (pb.SaveAll(), pb.Binomial(2))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("first", [0, 4])
def test_a_slice_of_traced_xs_is_not_written(first, policy):
    """NumPy would write to ``xs``, and the cotangent would miss it."""

    def f(x, xs):
        def step(state, row):
            u, k = state
            if k >= first:
                row *= 0.5
            return (np.tanh(u + row), k + 1), None

        return np.sum(pb.scan(step, (x, 0), xs)[0][0]) + np.sum(xs)

    xs = np.cos(np.arange(24.0)).reshape(8, 3)
    before = xs.copy()
    with pytest.raises(pb.WriteError, match=r"a body writes to its slice of xs \(at .*:\d+\).*write to a copy"):
        pb.grad(f, (0, 1), policy=policy)(X, xs)
    assert np.array_equal(xs, before)


def test_a_later_write_to_what_is_captured_says_what_to_do():
    def f(x):
        c = np.sin(x)

        def body(k, u):
            if k == 5:
                c[0] = 0.5
            return u * c

        return np.sum(pb.fori_loop(0, 9, body, x))

    with pytest.raises(ValueError, match="read-only") as told:
        pb.grad(f, policy=pb.Binomial(2))(X)
    assert "as a value is that it captures; make it part of the loop's state" in told.value.__notes__[0]


def test_what_a_body_returns_and_keeps_is_not_written():
    kept = np.ones(3)

    def body(_, state):
        u, v = state
        v += 0.1 * u
        return np.tanh(u * v), kept

    def f(x):
        u, v = pb.fori_loop(0, 40, body, (x, x))
        return np.sum(u) + np.sum(v)

    value = f(X)
    assert np.array_equal(kept, np.ones(3))
    for policy in POLICIES:
        assert pb.value_and_grad(f, policy=policy)(X)[0] == value
    assert pb.jvp(f, (X,), (X,))[0] == value
    assert np.array_equal(kept, np.ones(3))


def test_an_array_that_nobody_keeps_is_not_copied():
    """It is the same one in the step after."""
    made, came = [], []

    def body(_, u):
        came.append(id(u))
        new = u * 0.5
        made.append(id(new))
        return new

    pb.fori_loop(0, 5, body, X)
    assert came[1:] == made[:4]
    pb.fori_loop(0, 5, lambda k, s: (body(k, s[0]), s[1]), (X, 1.0))
    assert came[6:] == made[5:9]


def test_a_loop_of_no_steps_returns_an_array_of_its_own():
    def f(x):
        start = x * 1.0
        for u in (
            pb.fori_loop(0, 0, lambda k, u: u, start),
            pb.while_loop(lambda u: False, lambda u: u, start),
            pb.scan(lambda u, row: (u, None), start, np.zeros((0, 2)))[0],
        ):
            u[0] = 3.0
        return np.sum(start * start)

    assert f(X) == np.sum(X * X) == pb.value_and_grad(f)(X)[0]
    assert np.array_equal(pb.grad(f)(X), 2 * X)
    assert pb.jvp(f, (X,), (X,))[1] == pytest.approx(2 * np.sum(X * X))


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(np.int8(100), np.int64(160)), (np.int8(-100), np.int8(100)), (np.uint8(250), 300), (np.array(2), np.array(5))],
)
def test_numbers_of_steps_do_not_wrap(lower, upper):
    seen = []

    def body(k, u):
        seen.append(k)
        return u

    pb.fori_loop(lower, upper, body, X)
    assert seen == list(range(int(lower), int(upper)))
    assert {type(k) for k in seen} == {int}


def test_a_bound_is_a_whole_number():
    with pytest.raises(pb.StructureError, match=r"fori_loop: upper takes a whole number, got float; write int\(n\)"):
        pb.fori_loop(0, 3.0, lambda k, u: u, X)
    with pytest.raises(pb.StructureError, match=r"scan: length= takes a whole number, got float"):
        pb.scan(lambda u, _: (u, None), X, length=3.0)


def _caught(k, u):
    try:
        return 0.1 * np.log(np.abs(k - 25.0) * (1.0 + 0.0 * u[0]))
    except (RuntimeWarning, FloatingPointError):
        return 0.3 * u[0]


@pytest.mark.parametrize("error", ["state", "filter"])
@pytest.mark.parametrize("form", ["plain", "in a checkpoint", "in a loop", "in marked steps"])
def test_a_body_catches_again_what_it_caught(form, error):
    def loop(x):
        if error == "state":
            with np.errstate(divide="raise"):
                return pb.fori_loop(0, 30, lambda k, u: np.tanh(u + _caught(k, u)), x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return pb.fori_loop(0, 30, lambda k, u: np.tanh(u + _caught(k, u)), x)

    def f(x):
        if form == "in a checkpoint":
            return np.sum(pb.checkpoint(loop)(x))
        if form == "in a loop":
            return np.sum(pb.fori_loop(0, 3, lambda _, u: loop(u), x))
        for _ in pb.steps(3 if form == "in marked steps" else 1):
            x = loop(x)
        return np.sum(x)

    with pb.using(staging="off"):
        wanted = pb.grad(f)(X)
    assert [np.array_equal(pb.grad(f)(X), wanted) for _ in range(3)] == [True] * 3
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert np.array_equal(pb.grad(f, policy=pb.Binomial(2))(X), wanted)
    assert not told


NOT_ITS_OWN = {
    "one number": lambda u: np.broadcast_to(0.5, (4,)),
    "one element": lambda u: np.broadcast_to(u[:1], (4,)),
    "windows": lambda u: np.lib.stride_tricks.as_strided(np.linspace(0.1, 0.7, 7), (4,), (0,)),
    "a diagonal": lambda u: np.diagonal(np.outer(u, u)),
    "read-only": lambda u: pb.value(u * 0.5),
}


@pytest.mark.parametrize("what", NOT_ITS_OWN)
def test_a_write_to_an_element_of_the_state_is_a_write_to_no_other(what):
    make, x = NOT_ITS_OWN[what], np.array([0.31, 0.83, -0.52, 0.17])

    def step(state):
        u, v = state
        v[0] += 0.1
        v[2:] *= 0.5
        return u * 0.9 + 0.1 * v, make(u)

    def total(x, loop):
        u, v = loop((x * 1.0, make(x * 1.0).copy() if what in ("a diagonal", "read-only") else make(x * 1.0)))
        return np.sum(u) + np.sum(v * np.arange(4.0))

    def by_hand(state):
        for _ in range(7):
            state = step(tuple(np.array(leaf) for leaf in state))
        return state

    def in_a_loop(state):
        return pb.fori_loop(0, 7, lambda _, state: step(state), state)

    wanted, found = total(x, by_hand), []
    assert total(x, in_a_loop) == wanted
    value, tangent = pb.jvp(lambda x: total(x, in_a_loop), (x,), (x,))
    for policy in (pb.SaveAll(), pb.Binomial(2), pb.Recompute(), pb.Periodic(3)):
        for staging in ("off", "numpy"):
            with pb.using(policy, staging=staging):
                found.append(pb.value_and_grad(lambda x: total(x, in_a_loop))(x))
    assert {float(part) for part, _ in found} == {float(wanted), float(value)}
    assert len({gradient.tobytes() for _, gradient in found}) == 1
    assert np.isclose(found[0][1] @ x, tangent, rtol=1e-12)


def test_an_error_in_a_step_that_is_run_again_says_so():
    def f(x):
        items = iter(range(9))
        return np.sum(pb.fori_loop(0, 9, lambda k, u: np.tanh(u * next(items)), x))

    with pytest.raises(StopIteration) as told:
        pb.grad(f, policy=pb.Binomial(2))(X)
    assert "was run again and raised this, which it did not in the first run" in told.value.__notes__[0]


@pytest.mark.parametrize(
    ("loop", "call"),
    [
        (lambda f, x: pb.fori_loop(0, 3, f, x), r"fori_loop calls body\(k, carry\)"),
        (lambda f, x: pb.scan(f, x, length=3), r"scan calls step\(carry, x\)"),
        (lambda f, x: pb.while_loop(lambda u: u[0] < 3, f, x), r"while_loop calls body\(carry\)"),
    ],
)
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_body_of_other_arguments_is_told_which_it_is_called_with(loop, call, policy):
    with pytest.raises(TypeError) as caught:
        pb.grad(lambda x: np.sum(loop(lambda a, b, c: a, x)), policy=policy)(X)
    assert re.match(rf"pullback: {call}; write the function with these arguments", caught.value.__notes__[0])


def test_a_type_error_within_a_body_is_the_users_own():
    with pytest.raises(TypeError) as caught:
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u[k]("x"), x)))(X)
    assert not any("calls body" in note for note in getattr(caught.value, "__notes__", ()))
