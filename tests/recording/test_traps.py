"""``pb.trap``: the first NaN or infinity that a primitive produces, named in the forward and in the reverse pass,
under every policy."""

import threading

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import NonFiniteError, PolicyError

X = np.array([1.0, 4.0, -3.0])
AT_ZERO = np.array([1.0, 0.0, 2.0])
POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Recompute(3), pb.Binomial(1), pb.Binomial(2), pb.Binomial(5)]
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=repr)
HERE = r"test_traps\.py:\d+"


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


# ---------------------------------------------------------------------------------------------------------- the forward


@every_policy
def test_the_primitive_the_element_and_the_line(policy):
    said = (
        rf"forward: log, called at .*{HERE}, produced 1 NaN among the 3 elements of its result, shape \(3,\), "
        r"the first at index \(2,\), from x \(float64\[3\], there -3\.0\).*PB501"
    )
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=said):
        pb.grad(lambda x: np.sum(np.log(x)), policy=policy)(X)


def test_an_operator_by_its_name():
    with (
        pb.trap("nan"),
        pytest.raises(
            NonFiniteError, match=r"forward: divide, .*from x \(float64\[3\], there 0\.0\), y \(float64, there 0\.0\)"
        ),
    ):
        pb.grad(lambda x: np.sum(x / (x[1] * 0.0)))(AT_ZERO)


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda x: np.sum(np.exp(x * 1000)), r"forward: exp, .*produced 2 inf among"),
        (
            lambda x: np.sum(x) / 0.0,
            r"forward: divide, .*produced inf as its result, shape \(\), from x \(float64, there 2\.0\)",
        ),
        (lambda x: np.prod(np.full_like(x, 1e200)) * np.sum(x), r"forward: .*prod.*produced inf as its result"),
    ],
)
def test_infinities(f, said):
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=said):
        pb.grad(f)(X)


def test_a_value_that_does_not_depend_on_the_inputs():
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"forward: sqrt"):
        pb.grad(lambda x: np.sum(x) + np.sum(np.sqrt(np.full_like(x, -1.0))))(X)


def test_one_of_several_outputs():
    halves = pb.primitive(lambda x: (x * 1.0, np.sqrt(x)), name="halves", outputs=("whole", "root"))
    halves.vjp("x", fn=lambda ct, x: x)
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"halves, .*of output 'root'"):
        pb.grad(lambda x: np.sum(halves(x)[1]))(X)


def _increment(x):
    y = x * 1e308
    y[:1] += 1.5e308
    return np.sum(y)


def _cast(x):
    y = np.zeros_like(x, dtype=np.float32)
    y[:] = x * 1e200
    return np.sum(y)


@pytest.mark.parametrize(("f", "name"), [(_increment, "increment"), (_cast, "assignment")])
@every_policy
def test_writes(f, name, policy):
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=rf"forward: {name}, called at .*{HERE}"):
        pb.grad(f, policy=policy)(np.ones(3) * 0.5)


def test_at_the_element_where_another_was_unsound_already():
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"produced 1 NaN .*first at index \(2,\)"):
        pb.grad(lambda x: np.sum(np.log(x)))(np.array([np.nan, 1.0, -1.0]))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.where([False, True, True], x * np.array([np.nan, 1.0, 2.0]), 0.0)),
        lambda x: np.sum(np.where([True, False, True], x, np.nan)[::2]),
        lambda x: np.max(x, initial=-np.inf),
        lambda x: np.sum(np.maximum(x, -np.inf)),
        lambda x: np.sum(np.log(x, where=x > 0, out=np.zeros_like(x))),
        lambda x: np.sum(np.where(x > 0, np.sqrt(np.where(x > 0, x, 1.0)), 0.0)),
        lambda x: np.sum(np.full_like(x, np.inf)[:0]) + np.sum(x),
    ],
)
@every_policy
def test_what_arrives_unsound_is_not_produced(f, policy):
    expected = pb.grad(f)(X)
    with pb.trap("nan", "inf"):
        assert pb.grad(f, policy=policy)(X).tobytes() == expected.tobytes()


# ---------------------------------------------------------------------------------------------------------- the reverse


@every_policy
def test_the_pull_that_makes_the_infinity(policy):
    said = (
        rf"reverse: the pull of sqrt, called at .*{HERE}, produced 1 inf among the 3 elements of the cotangent of "
        r"operand 'x', shape \(3,\), the first at index \(1,\), from a cotangent that has none"
    )
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=said):
        pb.grad(lambda x: np.sum(3.0 * np.sqrt(x)), policy=policy)(AT_ZERO)


@every_policy
def test_the_pull_that_makes_the_nan(policy):
    def f(x):
        return np.sum(np.sqrt(x * x * 0.0) * x)

    assert np.isnan(pb.grad(f)(AT_ZERO)).any()
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"reverse: the pull of (sqrt|multiply), .*NaN"):
        pb.grad(f, policy=policy)(AT_ZERO)


def test_a_rule_of_ones_own():
    bad = pb.primitive(lambda x, y: x * y, name="bad")
    bad.vjp("x", "y", fn=lambda ct, x, y: (ct * y, ct * np.nan))
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"the pull of bad, .*operand 'y'"):
        pb.grad(lambda x: np.sum(bad(x, x * 2.0)))(X)


def test_a_sum_of_cotangents_that_overflows():
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=r"reverse: the pull of multiply.*inf"):
        pb.grad(lambda x: np.sum(x * 1e308) * 1.0 + np.sum(x * 1e308))(X * 1e-300)


def test_a_seed_that_is_unsound_is_passed_on():
    out, pull = pb.vjp(lambda x: np.sin(x) * x, X)
    with pb.trap("nan", "inf"):
        assert np.isnan(pull(np.array([np.nan, 1.0, 1.0]))[0][0])
    assert out.shape == (3,)


def test_a_pull_called_in_the_block_of_a_trace_begun_outside():
    _, pull = pb.vjp(lambda x: np.sum(np.sqrt(x)), AT_ZERO)
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=rf"reverse: the pull of sqrt, called at .*{HERE}"):
        pull(1.0)
    np.testing.assert_array_equal(pull(1.0)[0], [0.5, np.inf, 0.5 / np.sqrt(2.0)])


def test_a_pull_called_outside_the_block_of_its_trace():
    with pb.trap("inf"):
        _, pull = pb.vjp(lambda x: np.sum(np.sqrt(x)), AT_ZERO)
    assert np.isinf(pull(1.0)[0][1])


# ------------------------------------------------------------------------------------------------------------- the step


def late_root(k, u):
    return np.sqrt(u) + u if k == 3 else u * 1.5


def in_fori_loop(x):
    return np.sum(pb.fori_loop(0, 6, late_root, x))


def in_scan(x):
    return np.sum(pb.scan(lambda u, k: (np.sqrt(u) + u if k == 3 else u * 1.5, u[0]), x, np.arange(6))[0])


def in_while_loop(x):
    def body(carry):
        u, k = carry
        return late_root(k, u), k + 1

    return np.sum(pb.while_loop(lambda carry: carry[1] < 6, body, (x, 0))[0])


def in_steps(x):
    u = x
    for k in pb.steps(6):
        u = late_root(k, u)
    return np.sum(u)


LOOPS = {"fori_loop": in_fori_loop, "scan": in_scan, "while_loop": in_while_loop, "pullback.steps": in_steps}


@pytest.mark.parametrize("name", LOOPS)
@every_policy
def test_the_step_in_the_forward(name, policy):
    with (
        pb.trap("nan"),
        pytest.raises(NonFiniteError, match=rf"forward: sqrt, called at .*{HERE} in step 3 of {name}, produced 1 NaN"),
    ):
        pb.grad(LOOPS[name], policy=policy)(X)


@pytest.mark.parametrize("name", LOOPS)
@every_policy
def test_the_step_in_the_reverse(name, policy):
    with (
        pb.trap("inf"),
        pytest.raises(
            NonFiniteError, match=rf"reverse: the pull of sqrt, called at .*{HERE} in step 3 of {name}, produced 1 inf"
        ),
    ):
        pb.grad(LOOPS[name], policy=policy)(AT_ZERO)


@pytest.mark.parametrize("name", ["fori_loop", "scan", "while_loop"])
@every_policy
def test_the_step_in_the_reverse_of_a_trace_begun_outside(name, policy):
    _, pull = pb.vjp(LOOPS[name], AT_ZERO, policy=policy)
    with pb.trap("inf"), pytest.raises(NonFiniteError, match=rf"sqrt, .* in step 3 of {name}"):
        pull(1.0)


@pytest.mark.parametrize("name", LOOPS)
@every_policy
def test_the_same_bits(name, policy):
    x = np.array([0.5, 1.0, 2.0])
    expected = pb.grad(LOOPS[name])(x)
    with pb.trap("nan", "inf"):
        assert pb.grad(LOOPS[name], policy=policy)(x).tobytes() == expected.tobytes()
        _, pull = pb.vjp(LOOPS[name], x, policy=policy)
        assert pull(1.0)[0].tobytes() == pull(1.0)[0].tobytes() == expected.tobytes()


@every_policy
def test_the_step_of_a_loop_in_a_loop(policy):
    def outer(k, u):
        return pb.fori_loop(0, 3, lambda j, v: np.log(v) if (k, j) == (1, 2) else v * 1.5, u)

    with pb.trap("nan"), pytest.raises(NonFiniteError, match=r"log, .* in step 1 of fori_loop, step 2 of fori_loop"):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 4, outer, x)), policy=policy)(X)


def test_outside_the_steps_no_step_is_named():
    def f(x):
        for _ in pb.steps(3):
            x = x * 1.0
        return np.sum(np.log(x))

    with pb.trap("nan"), pytest.raises(NonFiniteError) as caught:
        pb.grad(f)(X)
    assert " in step " not in str(caught.value)


# ------------------------------------------------------------------------------------------------ programs of all kinds


def writes_and_views(x):
    y = np.zeros_like(x)
    y[1:] = x[:-1] * 2.0
    v = y[::2]
    v += np.sin(x[::2])
    w = np.ones_like(x)
    np.multiply(x, y, out=w)
    w *= 1.5
    return np.sum(w * pb.checkpoint(lambda a: np.exp(a) * a)(x))


def drawing(x):
    rng = np.random.default_rng(0)

    def body(k, u):
        u[0] += 0.1
        return np.cos(u) + rng.standard_normal(3)

    return np.sum(pb.fori_loop(0, 7, body, x * 1.0) ** 2)


def nested(x):
    return np.sum(pb.grad(lambda y: np.sum(np.sin(y) * y**3))(x) * x)


def nested_in_a_body(x):
    return np.sum(pb.fori_loop(0, 3, lambda k, u: 0.1 * pb.grad(lambda v: np.sum(np.sin(v) * v))(u), x))


def checkpoint_in_a_body(x):
    return np.sum(pb.fori_loop(0, 3, lambda k, u: pb.checkpoint(lambda v: np.sin(v) * v)(u) * u, x))


def a_python_float(x):
    return pb.fori_loop(0, 4, lambda k, u: u * 1.1 + x[0], 0.5) * np.float32(2.0)


PROGRAMS = [writes_and_views, drawing, nested, nested_in_a_body, checkpoint_in_a_body, a_python_float]


@pytest.mark.parametrize("f", PROGRAMS)
@every_policy
def test_the_gradient_under_a_trap_is_the_gradient(f, policy):
    expected = pb.grad(f, policy=policy)(X)
    with pb.trap("nan", "inf"):
        found = pb.grad(f, policy=policy)(X)
    assert found.tobytes() == expected.tobytes()


@every_policy
def test_a_gradient_of_a_gradient(policy):
    with pb.trap("nan"), pytest.raises(NonFiniteError, match=rf"(forward|reverse).*{HERE}"):
        pb.grad(lambda x: np.sum(pb.grad(lambda y: np.sum(np.sqrt(y) * 0.0))(x) * np.inf), policy=policy)(AT_ZERO)


def test_nothing_is_left_and_nothing_grows():
    with pb.trap("nan"):
        _, pull = pb.vjp(drawing, X, policy=pb.Binomial(2))
        pull(1.0)
        pull.close()
    assert pull.report.live_bytes == 0
    _, plain = pb.vjp(writes_and_views, X)
    with pb.trap("nan"):
        _, pull = pb.vjp(writes_and_views, X)
        pull(1.0)
    plain(1.0)
    pull.close()
    assert pull.report.live_bytes == 0


# ------------------------------------------------------------------------------------------------------------ the block


def test_blocks_nest_and_add_up_and_end():
    def fine(x):
        return np.sum(np.sqrt(x))

    with pb.trap("nan"):
        assert np.isinf(pb.grad(fine)(AT_ZERO)[1])
        with pb.trap("inf"):
            with pytest.raises(NonFiniteError, match="sqrt"):
                pb.grad(fine)(AT_ZERO)
            with pytest.raises(NonFiniteError, match="log"):
                pb.grad(lambda x: np.sum(np.log(x)))(X)
        assert np.isinf(pb.grad(fine)(AT_ZERO)[1])
    assert np.isnan(pb.grad(fine)(X)[2])


def test_an_exception_ends_the_block():
    with pytest.raises(KeyError), pb.trap("nan"):
        raise KeyError
    assert np.isnan(pb.grad(lambda x: np.sum(np.log(x)))(X * np.nan)).all()


def test_a_trap_is_of_its_own_thread():
    found = []
    with pb.trap("nan"):
        thread = threading.Thread(target=lambda: found.append(pb.grad(lambda x: np.sum(np.sqrt(x)))(AT_ZERO)))
        thread.start()
        thread.join()
    assert len(found) == 1


@pytest.mark.parametrize(
    ("kinds", "said"), [(("NaN",), "got 'NaN'"), ((), "got nothing"), (("nan", "big"), "got 'big'")]
)
def test_other_words_are_refused(kinds, said):
    with (
        pytest.raises(PolicyError, match=rf"trap takes 'nan', 'inf' or both, {said}; write trap\('nan'\)"),
        pb.trap(*kinds),
    ):
        pass


def test_as_floating_point_error():
    with pb.trap("nan"), pytest.raises(FloatingPointError, match="PB501"):
        pb.grad(lambda x: np.sum(np.log(x)))(X)


def test_the_fast_way_is_taken_again_after_the_block():
    with pb.trap("nan"):
        pb.grad(lambda x: np.sum(x * x))(X)
    modes = []
    pb.grad(lambda x: modes.append((x._tape.mode, x._tape.trap)) or np.sum(x))(X)
    assert modes == [(0, None)]
