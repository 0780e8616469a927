"""What a body reads besides its arguments: changed after the first run it is put back or found out; changed by the body
itself it is found out where that matters. A state of zeros hides all of it from comparisons of states."""

import functools
import random
import types
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb

X, ZERO = np.array([0.3, 0.5]), np.zeros(2)
POLICIES = (pb.Recompute(), pb.Binomial(1), pb.Binomial(2), pb.Binomial(50))
SCALE = np.ones(2)
SWITCH = 1.0


class Model:
    """An object whose body is a method."""

    factor = np.ones(2)

    def __init__(self, c):
        self.c, self.random = c, np.random.default_rng(3)

    def times(self, _, u):
        return u * self.c * self.factor

    def noisy(self, _, u):
        return u * self.random.normal(size=2)


class Slotted:
    """An object without a ``__dict__``."""

    __slots__ = ("c",)

    def __init__(self, c):
        self.c = c

    def __call__(self, _, u):
        return u * self.c


def times(c, _, u):
    return u * c


def read(k, u):
    return u * SCALE * SWITCH


def reading(holder, read):
    """A body that reads something of what it closes over."""
    return lambda _, u: u * read(holder)


def helped(holder, helper):
    """A body that leaves the work to a helper, of what it closes over."""
    return lambda _, u: helper(holder)(u)


# Ways in which a body reads an array that it is not given.
READERS = {
    "a cell": lambda c: lambda _, u: u * c,
    "a default": lambda c: lambda _, u, c=c: u * c,
    "a keyword default": lambda c: lambda _, u, *, c=c: u * c,
    "an item of a dict": lambda c: reading({"c": c}, lambda d: d["c"]),
    "an item of a list": lambda c: reading([c], lambda d: d[0]),
    "an item of a tuple": lambda c: reading((c,), lambda d: d[0]),
    "an item of a deque": lambda c: reading(deque([c]), lambda d: d[0]),
    "an attribute": lambda c: reading(types.SimpleNamespace(c=c), lambda d: d.c),
    "an attribute of an attribute": lambda c: reading(
        types.SimpleNamespace(a=types.SimpleNamespace(c=c)), lambda d: d.a.c
    ),
    "a slot": Slotted,
    "a method": lambda c: Model(c).times,
    "an object in a cell": lambda c: helped(Model(c), lambda m: lambda u: m.times(0, u)),
    "a partial": lambda c: functools.partial(times, c),
    "a keyword of a partial": lambda c: functools.partial(lambda _, u, c: u * c, c=c),
    "a helper": lambda c: helped(lambda u: u * c, lambda f: f),
    "a helper in a list": lambda c: helped([lambda u: u * c], lambda fs: fs[0]),
    "a helper in a partial": lambda c: helped(functools.partial(lambda c, u: u * c, c), lambda f: f),
    "a decorated helper": lambda c: reading(functools.lru_cache(lambda: c), lambda f: f()),
}
LOOPS = {
    "fori_loop": lambda body, x: pb.fori_loop(0, 5, body, x),
    "scan": lambda body, x: pb.scan(lambda u, k: (body(k, u), None), x, np.arange(5.0))[0],
    "while_loop": lambda body, x: pb.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, body(0, s[1])), (0, x))[1],
}


def right_or_told(f, x, policy, change, expected):
    """The pull gives ``expected`` or raises ReplayError; never another number."""
    _, pull = pb.vjp(f, x.copy(), policy=policy)
    change()
    try:
        found = pull(1.0)[0]
    except pb.ReplayError as error:
        return str(error)
    np.testing.assert_array_equal(found, expected)
    return ""


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("way", READERS)
def test_an_array_that_is_overwritten_before_the_pull_is_found_out(way, loop, policy):
    c = np.ones(2)
    body = READERS[way](c)
    told = right_or_told(
        lambda x: np.sum(LOOPS[loop](body, x)), ZERO, policy, lambda: c.__setitem__(slice(None), 2.0), np.ones(2)
    )
    assert loop in told
    assert "part of the state" in told


@given(
    st.sampled_from(sorted(READERS)), st.sampled_from(sorted(LOOPS)), st.sampled_from(POLICIES),
    st.sampled_from([(0, 0), (1, 1)]), st.sampled_from([0.0, -1.0, 1.0]), st.booleans(),
)  # fmt: skip
def test_drawn_changes_are_right_or_told(way, loop, policy, places, to, twice):
    """Of any bit: also of a sign of zero, where the state shows none of it."""
    c = np.array([1.0, -0.0])
    body = READERS[way](c)

    def f(x):
        return np.sum(LOOPS[loop](body, x))

    expected = pb.grad(f)(ZERO)
    c[:] = [1.0, -0.0]
    for _ in range(1 + twice):
        right_or_told(f, ZERO, policy, lambda: c.__setitem__(places[0], to), expected)
        c[:] = [1.0, -0.0]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_xs_and_the_arrays_of_a_condition_are_watched(policy):
    xs = np.ones((5, 2))
    told = right_or_told(
        lambda x: np.sum(pb.scan(lambda u, row: (u * row, None), x, xs)[0]),
        ZERO, policy, lambda: xs.__setitem__(slice(None), 2.0), np.ones(2),
    )  # fmt: skip
    assert "scan" in told


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_names_that_are_bound_anew_are_put_back(policy, monkeypatch):
    """And afterwards they are bound as the user has bound them."""
    module = globals()
    model = Model(np.ones(2))
    for body, change in [
        (read, lambda: monkeypatch.setitem(module, "SCALE", np.full(2, 3.0))),
        (read, lambda: monkeypatch.setitem(module, "SWITCH", 4.0)),
        (model.times, lambda: setattr(model, "c", 5.0)),
        (model.times, lambda: setattr(model, "factor", 6.0)),
        (model.times, lambda: monkeypatch.setattr(Model, "factor", np.full(2, 7.0))),
    ]:
        assert right_or_told(lambda x, b=body: np.sum(pb.fori_loop(0, 5, b, x)), ZERO, policy, change, np.ones(2)) == ""
        model.c = np.ones(2)
        vars(model).pop("factor", None)
        monkeypatch.undo()
    monkeypatch.setitem(module, "SWITCH", 1.0)
    right_or_told(
        lambda x: np.sum(pb.fori_loop(0, 5, read, x)), ZERO, policy, lambda: module.update(SWITCH=4.0), ZERO + 1
    )
    assert SWITCH == 4.0


@pytest.mark.parametrize("policy", [pb.SaveAll(), *POLICIES], ids=repr)
@pytest.mark.parametrize("where", ["a dict", "an object", "a list", "a global"])
def test_a_parameter_that_is_put_somewhere_for_the_loop_alone(where, policy):
    holder, owner, items = {}, types.SimpleNamespace(w=None), [None]

    def f(x):
        w = np.sin(x)
        if where == "a dict":
            holder["w"] = w
        elif where == "an object":
            owner.w = w
        elif where == "a list":
            items[0] = w
        else:
            globals()["PUT"] = w
        found = {
            "a dict": lambda: holder["w"], "an object": lambda: owner.w, "a list": lambda: items[0],
            "a global": lambda: PUT,  # noqa: F821
        }[where]  # fmt: skip
        u = pb.fori_loop(0, 6, lambda _, u: u * found() + 0.1, x)
        holder.clear()
        owner.w, items[0] = 1.0, None
        globals().pop("PUT", None)
        return np.sum(u)

    expected = pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, lambda _, u: u * np.sin(x) + 0.1, x)))(X)
    np.testing.assert_allclose(pb.grad(f, policy=policy)(X), expected, rtol=1e-13)
    assert (holder, owner.w, items) == ({}, 1.0, [None])


def counted():
    t = 0.0

    def helper(u):
        return u * (1 + t)

    def body(_, u):
        nonlocal t
        t += 0.5
        return helper(u)

    return body


def doubled():
    c = np.ones(2)

    def body(_, u):
        c[:] *= 2
        return u * c

    return body


def set_late():
    settings = {"c": 1.0}

    def body(k, u):
        if k == 3:
            settings["c"] = 2.0
        return u * settings["c"]

    return body


def on_an_object():
    owner = types.SimpleNamespace(t=0)

    def body(_, u):
        owner.t += 1
        return u * owner.t

    return body


@pytest.mark.parametrize("x", [X, ZERO], ids=["shown", "hidden"])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("made", [counted, doubled, set_late, on_an_object])
def test_what_the_body_changes_and_reads_is_found_out(made, policy, x):
    def plain(x):
        body = made()
        for k in range(6):
            x = body(k, x)
        return np.sum(x)

    assert right_or_told(lambda x: np.sum(pb.fori_loop(0, 6, made(), x)), x, policy, lambda: None, pb.grad(plain)(x))
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(pb.fori_loop(0, 6, made(), x)))(x), pb.grad(plain)(x))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_variable_of_an_enclosing_function_goes_on_after_the_loop(policy):
    def f(x):
        t = 0

        def body(_, u):
            nonlocal t
            t += 1
            return u * 2

        u = pb.fori_loop(0, 5, body, x)
        return np.sum(u) * t

    assert np.array_equal(pb.grad(f, policy=policy)(X), [160.0, 160.0])
    assert f(X) == 160 * X.sum()


def logs():
    log, norms, scratch, count = [], np.zeros(9), np.zeros(2), {"n": 0}

    def body(k, u):
        count["n"] += 1
        if k % 3 == 2:
            log.append(k)
        norms[k] = np.sum(pb.value(u))
        scratch[:] = k
        return u * (scratch + 1.0)

    return body, log, norms, count


@pytest.mark.parametrize("x", [X, ZERO], ids=["shown", "hidden"])
@pytest.mark.parametrize("policy", [pb.SaveAll(), *POLICIES], ids=repr)
def test_logs_counters_and_scratch_are_the_bodys_own(policy, x):
    """What is written before it is read, or never read, does not matter; the calls are those that the policy says."""
    body, log, norms, count = logs()
    pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 9, body, x)), x, policy=policy)[1]
    assert (count["n"], log) == (9, [2, 5, 8])
    values = norms.copy()
    np.testing.assert_array_equal(pull(1.0)[0], np.full(2, 362880.0))
    assert np.array_equal(norms, values)
    with pb.profile() as report:
        body, log, norms, count = logs()
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x)), policy=policy)(x)
    assert count["n"] == report.n_forward


def keeps(world):
    """A body that leaves its last norm in every kind of place, and computes in scratch."""

    def body(k, u):
        nonlocal world
        norm = float(np.sum(pb.value(u)))
        world = {**world, "norm": norm}
        world["list"][0] = norm
        world["array"][0] = norm
        np.multiply(pb.value(u), 2.0, out=world["scratch"])
        return np.sin(u) + 0.1 * world["scratch"] * world["c"]

    return body


@pytest.mark.parametrize("nested", [False, True], ids=["alone", "nested"])
@pytest.mark.parametrize("policy", [pb.SaveAll(), *POLICIES, pb.Tiered(1, 2)], ids=repr)
def test_scratch_that_the_first_run_leaves_as_it_was(policy, nested):
    """As where the function was called before, or is called between the forward pass and the pull."""
    world = {"list": [0.0], "array": np.zeros(1), "scratch": np.zeros(2), "c": np.ones(2), "norm": 0.0}
    body = keeps(world)

    def f(x):
        if nested:
            return np.sum(pb.fori_loop(0, 1, lambda _, u: pb.fori_loop(0, 9, body, u), x))
        return np.sum(pb.fori_loop(0, 9, body, x))

    expected = pb.grad(f)(X)
    f(X)
    assert np.array_equal(pb.grad(f, policy=policy)(X), expected)
    f(X)
    pull = pb.vjp(f, X, policy=policy)[1]
    f(2 * X)
    assert np.array_equal(pull(1.0)[0], expected)
    f(3 * X)
    assert np.array_equal(pull(1.0)[0], expected)
    f(X)
    twice = pb.vjp(f, X, policy=policy)[1]
    assert all(np.array_equal(twice(1.0)[0], expected) for _ in range(2))
    world["c"][0] = 2.0  # what is read is found out as ever
    if not isinstance(policy, pb.SaveAll):
        with pytest.raises(pb.ReplayError, match=r"world\['c'\]"):
            pull(1.0)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_random_states_are_found_wherever_they_are(policy):
    state, model, python = np.random.RandomState(1), Model(1.0), random.Random(2)  # noqa: S311

    for body in [
        lambda _, u: u * state.rand(2),
        lambda _, u: u * random.random(),  # noqa: S311
        lambda _, u: u * python.random(),
        model.noisy,
        functools.partial(Model.noisy, model),
        helped([model.noisy], lambda fs: lambda u: fs[0](0, u)),
    ]:

        def gradient(chosen, body=body):
            state.seed(1)
            random.seed(1)
            python.seed(1)
            model.random = np.random.default_rng(3)
            return pb.grad(lambda x: np.sum(pb.fori_loop(0, 7, body, x)), policy=chosen)(ZERO)

        np.testing.assert_array_equal(gradient(policy), gradient(pb.SaveAll()))


def test_verify_says_what_is_compared():
    c = np.ones(2)

    def gradient(x, **options):
        _, pull = pb.vjp(
            lambda x: np.sum(pb.fori_loop(0, 5, lambda _, u: u * c, x, **options)), x, policy=pb.Binomial(1)
        )
        c[:] = 2.0
        try:
            return pull(1.0)[0]
        finally:
            c[:] = 1.0

    for options in ({}, {"verify": "all"}):
        for x in (X, ZERO):
            with pytest.raises(pb.ReplayError):
                gradient(x, **options)
    with pytest.raises(pb.ReplayError, match="other bytes than the first run, in leaf 0 of the carry"):
        gradient(X, verify="state")
    gradient(ZERO, verify="state")
    gradient(X, verify="off")
    with pb.using(verify="off"):
        gradient(X)
        with pb.using(pb.Binomial(2)):
            gradient(X)
        with pytest.raises(pb.ReplayError):
            gradient(X, verify="state")
    with pytest.raises(pb.PolicyError, match="verify= takes one of 'off', 'state', 'all', got 'some'"):
        gradient(X, verify="some")
    with pytest.raises(pb.PolicyError, match="verify= takes one of"), pb.using(verify=True):
        pass


def test_the_error_names_the_array_the_operation_and_the_line():
    c = np.ones(2)

    def body(_, u):
        return u * c

    told = right_or_told(
        lambda x: np.sum(pb.fori_loop(0, 5, body, x)), ZERO, pb.Binomial(2), lambda: c.fill(2.0), np.ones(2)
    )
    line = body.__code__.co_firstlineno + 1
    assert f"multiply at {__file__}:{line} read other values" in told
    assert "c (float64[2]), changed after the first run by up to 1;" in told


def test_an_array_that_comes_back_to_what_it_was_is_no_change():
    c = np.ones(2)
    _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 5, lambda _, u: u * c, x)), ZERO, policy=pb.Binomial(2))
    c[:] = 2.0
    with pytest.raises(pb.ReplayError):
        pull(1.0)
    c[:] = 1.0
    np.testing.assert_array_equal(pull(1.0)[0], np.ones(2))


def test_the_error_tells_by_how_much_runs_of_a_step_differ():
    calls = []

    def body(_, u):
        calls.append(0)
        return np.sin(u) * (1.0 + 0.001 * len(calls))

    with pytest.raises(pb.ReplayError, match=r"multiply at .*reads other values each time .*by up to 0\.001"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x)), policy=pb.Binomial(2))(X)


def test_save_all_calls_a_body_no_more_often_than_it_has_steps():
    """Where nothing is run again nothing is tried: an iterator, or the screen, would show it."""
    items, log = iter(range(100)), []

    def body(_, u):
        log.append(next(items))
        return u * 2.0

    _, pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, 5, body, x)), X)
    np.testing.assert_array_equal(pull(1.0)[0], np.full(2, 32.0))
    assert log == [0, 1, 2, 3, 4]
    assert next(items) == 5
