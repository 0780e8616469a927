"""What an error shows of the way that it came: the user's frames, and one of pullback."""

import inspect
import traceback
import warnings
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.words import call_sites

X = np.array([1.0, 2.0, 3.0])
ROOT = str(Path(pb.__file__).parent)


def helper(x):
    return np.sum(float(x[0]) * x)


def body(k, u):
    return u * helper(u)


def looped(x):
    return np.sum(pb.fori_loop(0, 3, body, x))


def inner(x):
    return pb.grad(looped)(x)[0]


def failing(x):
    message = "my own"
    raise ValueError(message)


@pb.primitive
def doubled(x):
    return 2.0 * x


doubled.vjp("x", fn=lambda ct: failing(ct))  # noqa: PLW0108 - a frame of the user's in the reverse pass

PROGRAMS = {
    "grad": (lambda: pb.grad(helper)(X), ["helper"]),
    "value_and_grad": (lambda: pb.value_and_grad(helper)(X), ["helper"]),
    "a loop": (lambda: pb.grad(looped)(X), ["looped", "body", "helper"]),
    "a loop under a policy": (lambda: pb.grad(looped, policy=pb.Binomial(2))(X), ["looped", "body", "helper"]),
    "a gradient in a gradient": (lambda: pb.grad(inner)(X), ["inner", "looped", "body", "helper"]),
    "vjp": (lambda: pb.vjp(helper, X), ["helper"]),
    "pull": (lambda: pb.vjp(np.sin, X)[1](np.ones(4)), []),
    "jvp": (lambda: pb.jvp(helper, (X,), (X,)), ["helper"]),
    "hvp": (lambda: pb.hvp(failing, (X,), (X,)), ["failing"]),
    "linearize": (lambda: pb.linearize(failing, X), ["failing"]),
    "jacobian": (lambda: pb.jacobian(failing)(X), ["failing"]),
    "hessian": (lambda: pb.hessian(failing)(X), ["failing"]),
    "sparse_jacobian": (lambda: pb.sparse_jacobian(failing)(X), ["failing"]),
    "elementwise_grad": (lambda: pb.elementwise_grad(failing)(X), ["failing"]),
    "checkpoint": (lambda: pb.grad(pb.checkpoint(helper))(X), ["helper"]),
    "the reverse pass": (lambda: pb.grad(lambda x: np.sum(doubled(x)))(X), ["<lambda>", "failing"]),
    "plan": (lambda: pb.plan(failing, X), ["failing"]),
    "profile": (lambda: pb.profile(failing, X), ["failing"]),
    "record": (lambda: pb.record(failing, X), ["failing"]),
    "saved": (lambda: pb.saved(failing, X), ["failing"]),
    "dependencies": (lambda: pb.dependencies(failing, X), ["failing"]),
    "fun_and_grad": (lambda: pb.fun_and_grad(failing, X)(X), ["failing"]),
    "odeint": (lambda: pb.odeint(lambda y, t: failing(y), X, np.arange(2.0)), ["<lambda>", "failing"]),
    "fixed_point": (lambda: pb.fixed_point(lambda p, x: failing(x), X, X), ["<lambda>", "failing"]),
    "custom_root": (lambda: pb.custom_root(np.sin, X, lambda f, x: failing(x), None), ["<lambda>", "failing"]),
    "check_grads": (lambda: pb.testing.check_grads(failing, (X,)), ["failing"]),
    "a wrong output": (lambda: pb.grad(np.sin)(X), []),
}


def frames(error):
    """(file, function) of every frame that a traceback shows, without this file's first ones."""
    shown = [(f.filename, f.name) for f in traceback.extract_tb(error.__traceback__)]
    return shown[next(k for k, (file, _) in enumerate(shown) if file.startswith(ROOT)) :]


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_error_shows_the_users_frames_and_one_of_ours(name, monkeypatch):
    run, users = PROGRAMS[name]
    monkeypatch.delenv("PULLBACK_TRACEBACK", raising=False)
    with pytest.raises((pb.PullbackError, ValueError)) as caught:
        run()
    ours, *others = frames(caught.value)
    assert ours[1] == "called"
    assert [name for file, name in others] == users, others
    assert all(file == __file__ for file, _ in others)
    monkeypatch.setenv("PULLBACK_TRACEBACK", "full")
    with pytest.raises((pb.PullbackError, ValueError)) as caught:
        run()
    full = frames(caught.value)
    assert sum(file.startswith(ROOT) for file, _ in full) > 1
    assert [pair for pair in full if pair[0] == __file__] == others


def test_what_led_to_an_error_is_shortened_too(monkeypatch):
    monkeypatch.delenv("PULLBACK_TRACEBACK", raising=False)

    def f(x):
        try:
            return float(x[0])
        except pb.ConversionError as error:
            message = "mine"
            raise RuntimeError(message) from error

    with pytest.raises(RuntimeError) as caught:
        pb.grad(f)(X)
    cause = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert next(frame.name for frame in cause) == "f"
    assert sum(frame.filename.startswith(ROOT) for frame in cause) <= 1


def test_frames_of_a_library_that_the_user_calls_stay(monkeypatch):
    monkeypatch.delenv("PULLBACK_TRACEBACK", raising=False)
    with pytest.raises(AssertionError) as caught:
        pb.grad(lambda x: np.testing.assert_allclose(pb.value(x), 0.0))(X)
    assert any("numpy" in file for file, _ in frames(caught.value))


def test_public_functions_keep_their_names_and_signatures():
    for function in (pb.vjp, pb.jvp, pb.fori_loop, pb.odeint, pb.hvp, pb.Binomial):
        assert function.__doc__
    assert str(inspect.signature(pb.jvp)).startswith("(f: ")
    assert pb.grad(helper).__name__ == "helper"


def warned(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [(w.category, w.filename, w.lineno) for w in caught]


class Known(pb.MemoryPolicy):
    """Needs to know the number of steps."""

    def actions(self, n, *, state_bytes, tape_bytes):
        return pb.SaveAll().schedule(n)


def many_constants(x):
    u = x
    for k in pb.steps(4):
        u = u * np.full(200_000, 1.0 + k)
    return np.sum(u)


def test_a_warning_of_ours_names_the_users_line():
    here = inspect.currentframe()
    line = here.f_lineno + 1
    found = warned(lambda: pb.grad(lambda x: np.sum(np.sin(x)), policy=Known())(X))
    assert found == [(pb.PolicyWarning, __file__, line)]
    line = here.f_lineno + 1
    found = warned(lambda: pb.grad(lambda x: np.sum(np.nanmax(x * np.nan)))(X))
    assert (RuntimeWarning, __file__, line) in found
    (kind, file, _), *_ = warned(lambda: pb.grad(many_constants, policy=pb.Binomial(1))(np.ones(200_000)))
    assert (kind, file) == (pb.PolicyWarning, __file__)


def test_equal_code_is_one_place_and_leaves_nothing():
    """Copies of a function, which come by pickle with each task of a worker, have the call sites of the first."""

    def copy():
        return eval("lambda: call_sites.site_here()", globals())  # noqa: S307 - a code object each

    first, other = copy(), copy()
    site = first()
    assert other() == site
    number, known = id(other.__code__), len(call_sites._SITES)
    assert number in call_sites._SITES_OF
    del other
    assert number not in call_sites._SITES_OF
    assert len(call_sites._SITES) == known
    assert first() == site
