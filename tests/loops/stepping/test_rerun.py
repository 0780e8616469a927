"""What a loop's body may not do: change its carry, what it captures, or what it does from one call to the next."""

from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.memory.in_force import depth
from pullback.tracing import results_into_operands
from pullback.words.errors import ReplayError, StructureError, TracerError, WriteError

X = np.array([0.3, -0.7, 1.1])


COUNTER = [0]
TABLE = np.ones(3)


@pytest.mark.parametrize("policy", [pb.Recompute(3), pb.Binomial(1), pb.Binomial(2)], ids=repr)
def test_a_body_that_does_not_repeat_itself(policy):
    def body(k, u):
        COUNTER[0] += 1
        return u * (1 + 0.01 * COUNTER[0])

    with pytest.raises(
        ReplayError,
        match=r"fori_loop: re-running the loop reached step \d+ with other bytes.*leaf 0.*global counter.*state",
    ):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x, policy=policy)))(X)
    assert depth() == 0


@pytest.mark.parametrize("policy", [pb.Recompute(3), pb.Binomial(1), pb.Binomial(2)], ids=repr)
def test_a_global_array_changed_during_the_loop(policy):
    def body(k, u):
        out = u * TABLE
        TABLE[0] += 0.5
        return out

    try:
        with pytest.raises(ReplayError, match=r"other bytes.*array or object changed from outside"):
            pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x, policy=policy)))(X)
    finally:
        TABLE[:] = 1


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(2)], ids=repr)
def test_a_captured_array_changed_between_forward_and_reverse(policy):
    c = np.array([1.0, 0.5, 2.0])

    def f(x):
        u = pb.fori_loop(0, 9, lambda k, u: np.sin(u) * c, x, policy=policy)
        c[:] = 100.0
        return np.sum(u)

    expected = pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u) * np.array([1.0, 0.5, 2.0]), x)))(X)
    try:
        found = pb.grad(f)(X)
    except ReplayError:
        return
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2)], ids=repr)
def test_writing_to_a_captured_value_raises(policy):
    def f(x):
        w = x * 2

        def body(k, u):
            w[0] = 1.0
            return u * w

        return np.sum(pb.fori_loop(0, 5, body, x, policy=policy))

    def g(x):
        w = np.zeros_like(x)

        def body(k, u):
            w[k % 3] = u[0]
            return u * 2

        return np.sum(pb.fori_loop(0, 5, body, x, policy=policy)) + np.sum(w)

    for bad in (f, g):
        with pytest.raises(
            WriteError,
            match=r"writes to a value it captures \(at .*test_rerun\.py:\d+\); make it part of the loop's state",
        ):
            pb.grad(bad)(X)
        assert depth() == 0


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(2)], ids=repr)
@pytest.mark.parametrize("plain", [False, True])
def test_a_traced_value_of_an_object_that_a_later_step_reads_first(policy, plain):
    def f(x):
        model = SimpleNamespace(w=x * 2)
        start = np.ones(3) if plain else x
        return np.sum(pb.fori_loop(0, 5, lambda k, u: u * model.w if k > 2 else u * 1.5, start, policy=policy))

    with pytest.raises(TracerError, match=r"step \d uses a traced value of an object.*k = model\.k"):
        pb.grad(f)(X)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(2), pb.Binomial(2)], ids=repr)
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda k, u: u[:2],
            r"leaf 0 of the carry is float64\[3\] before step 0 and float64\[2\] after it.*shape and dtype",
        ),
        (lambda k, u: u.astype(np.float32), r"leaf 0 of the carry is float64\[3\] before step 0 and float32\[3\]"),
        (lambda k, u: np.sum(u), r"leaf 0 of the carry is float64\[3\] before step 0 and float64\[\]"),
        (lambda k, u: (u, u), r"the carry had structure .* and step 0 returned"),
        (lambda k, u: None, r"the carry had structure .* and step 0 returned"),
        (lambda k, u: u if k < 3 else u[:2], r"before step 3 and float64\[2\] after it"),
        (lambda k, u: u + 1j, r"complex128\[3\] after it"),
    ],
)
def test_a_carry_that_changes(policy, body, message):
    with pytest.raises(StructureError, match=message):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 5, body, x, policy=policy)))(X)
    assert depth() == 0


def test_scan_is_told_its_faults():
    with pytest.raises(StructureError, match=r"leading axes of xs and length= are \[3, 4\]"):
        pb.scan(lambda c, x: (c, None), X, np.zeros(3), length=4)
    with pytest.raises(StructureError, match=r"xs has no array, and no length= is given; pass length="):
        pb.scan(lambda c, x: (c, None), X)
    with pytest.raises(
        StructureError, match=r"step 0 returned Tracer.*return \(carry, y\)|step 0 returned .*return \(carry, y\)"
    ):
        pb.grad(lambda x: np.sum(pb.scan(lambda c, d: c * d, x, np.ones(3))[0]))(X)


CHANGED = (
    r"other bytes than (in )?the first run, in leaf 0 of (the carry|its output)\. The body reads something that "
    r"changed in between"
)


def _overwriting(loop):
    def f(x):
        matrix = np.eye(3) * 2 + 0.1
        result = loop(matrix, x)
        matrix[...] = 7.0
        return np.sum(result)

    return f


OVERWRITING = {
    "carry": _overwriting(lambda m, x: pb.fori_loop(0, 4, lambda _, u: m @ np.sin(u), x)),
    "outputs": _overwriting(lambda m, x: pb.scan(lambda c, v: (c, m @ np.sin(v)), 0.0, np.stack([x, 2 * x, 3 * x]))[1]),
}


@pytest.mark.parametrize("policy", [pb.Binomial(1), pb.Recompute()], ids=repr)
@pytest.mark.parametrize("name", OVERWRITING)
def test_an_array_overwritten_after_the_loop_is_found_out_in_either_order(name, policy):
    f, x = OVERWRITING[name], np.array([1.0, 2.0, 3.0])
    with pytest.raises(pb.ReplayError, match=CHANGED):
        pb.grad(f, policy=policy)(x)
    with pytest.raises(pb.ReplayError, match=CHANGED):
        pb.hvp(f, (x,), (x,), policy=policy)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(2), pb.Recompute()], ids=repr)
@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize(
    "loop",
    [
        lambda matrix, x, n: pb.fori_loop(0, n, lambda _, u: matrix @ np.sin(u), x),
        lambda matrix, x, n: pb.scan(lambda c, _: (c, matrix @ x), (), length=n)[1],
    ],
    ids=["carry", "outputs"],
)
def test_an_array_overwritten_between_two_calls_of_a_pull_is_found_out(loop, n, policy):
    matrix, x = np.eye(3) * 2 + 0.1, np.array([1.0, 2.0, 3.0])
    _, pull = pb.vjp(lambda x: np.sum(loop(matrix, x, n)), x, policy=policy)
    assert np.array_equal(pull(1.0)[0], pull(1.0)[0])
    matrix *= 1.5
    for _ in range(2):
        with pytest.raises(pb.ReplayError, match=CHANGED):
            pull(1.0)
    pull.close()


RETURNED = {
    "the same array twice": lambda u, v: (u * 0.5,) * 2,
    "what came": lambda u, v: (v, u),
    "a view": lambda u, v: (u[::-1] * 1.0, v[::-1]),
    "part of another": lambda u, v: (v, v[:]),
    "other strides": lambda u, v: (u.reshape(2, 2).T.reshape(4) * 0.5, np.repeat(v, 2)[::2]),
}


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(3), pb.Binomial(2)], ids=repr)
@pytest.mark.parametrize("staging", ["off", "numpy"])
@pytest.mark.parametrize("name", RETURNED)
def test_a_body_that_writes_to_leaves_which_share_memory(name, staging, policy):
    def body(k, state):
        u, v = state
        u[0] += 0.1
        v[1] *= 0.5
        return RETURNED[name](u, v)

    def by(loop):
        def f(x):
            u, v = loop(x * 1.0, x + 1.0)
            return np.sum(u * v)

        return f

    def plainly(u, v):
        for k in range(9):
            u, v = (w * 1.0 for w in body(k, (u, v)))
        return u, v

    looped = by(lambda u, v: pb.fori_loop(0, 9, body, (u, v), staging=staging, policy=policy))
    x = np.array([0.3, -0.7, 1.1, 0.2])
    np.testing.assert_allclose(pb.grad(looped)(x), pb.grad(by(plainly))(x), rtol=1e-13)


@pytest.mark.parametrize("staging", ["off", "numpy"])
def test_a_generator_that_takes_the_place_of_the_legacy_one_is_put_back(staging):
    before = np.random.get_bit_generator()

    def body(k, u):
        return np.sin(u) * np.random.random(4)  # noqa: NPY002

    def gradient(policy):
        np.random.seed(7)  # noqa: NPY002
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x, staging=staging, policy=policy)))(np.ones(4))

    try:
        found = []
        for bits in (np.random.MT19937(3), np.random.MT19937(3), np.random.MT19937(3)):
            np.random.set_bit_generator(bits)
            found.append(gradient(pb.Binomial(2)).tobytes())
            found.append(gradient(pb.SaveAll()).tobytes())
        assert len(set(found)) == 1
    finally:
        np.random.set_bit_generator(before)


W = np.linspace(-1.0, 1.0, 200 * 200).reshape(200, 200)


def added(v, u):
    return v + u


MIXED = {
    "a state": (lambda u: u.T * 0.5 + np.cos(u), lambda u: u.T.copy() * 0.5 + np.cos(u)),
    "a plain array": (lambda u: W.T * 0.5 + np.sin(u), lambda u: W.T.copy() * 0.5 + np.sin(u)),
    "a name": (lambda u: np.sin(u.T) * 2.0 + u, lambda u: added(np.sin(u.T) * 2.0, u)),
}


@pytest.mark.parametrize("name", MIXED)
def test_what_numpy_computes_into_temporaries_lies_as_there(name):
    def gradient(body, policy):
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda _, u: body(u), x) * W), policy=policy)(W + 0.5)

    for body in MIXED[name]:
        for policy in (pb.Binomial(2), pb.Recompute(3)):
            assert gradient(body, policy).tobytes() == gradient(body, pb.SaveAll()).tobytes()


def test_another_order_of_memory_is_told(monkeypatch):
    monkeypatch.setattr(results_into_operands, "numpy_takes_over", lambda: False)
    try:
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda _, u: MIXED["a state"][0](u), x)), policy=pb.Recompute(3))(W)
    except pb.ReplayError as error:
        assert "the same numbers in another order of memory" in str(error)  # noqa: PT017 - not all NumPys do
        assert "The body reads something that changed" not in str(error)  # noqa: PT017
