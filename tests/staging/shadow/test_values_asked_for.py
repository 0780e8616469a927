"""Values that a step asks for: it is staged, computed up to there, and goes on being compared."""

import warnings

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, N, loop_over, reasons, require_same, stages, the_stage

import pullback as pb

X = np.array([0.3, -0.8, 0.9, 0.2])


def step_of_a_stable_size(k, u, x):
    dt = 0.2 / float(pb.value(np.max(np.abs(u)) + 1.0))
    return u + dt * np.sin(u * x)


def branched_on_a_value(k, u, x):
    v = u * x
    if np.max(v) > 0.3:
        v = v * 0.5
    return np.sin(v) + x


def limited(k, u, x):
    return np.where(u > 0.3, u * 0.9, u * x + 0.01)


def by_numpy_without_derivative(k, u, x):
    return u * x + 0.1 * np.argmax(u) + np.isfinite(u)


def as_text(k, u, x):
    return np.sin(u * x * float(f"{np.sum(u):.3f}"))


def truth(k, u, x):
    return u * x if np.sum(u) else u + x


def what_is_kept(k, u, x):
    w = u * 2.0
    kept = pb.value(w)
    w *= 0.25
    return w * x + kept


def views_of_what_is_written(k, u, x):
    v = np.sin(u * x)
    w = v[1:]
    v[:-1] *= 0.5
    return v + float(pb.value(w)[0]) + (0.1 if w[1] > 0 else 0.2)


def what_entered(k, u, x):
    return u * x + np.sign(pb.value(u)[0]) * pb.value(u)


def several(k, u, x):
    v = u * x + float(pb.value(u)[0])
    w = np.sin(v) * float(pb.value(v)[1])
    return np.cos(w + u * float(pb.value(w)[2]))


BODIES = (
    step_of_a_stable_size, branched_on_a_value, limited, by_numpy_without_derivative, as_text, truth, what_is_kept,
    views_of_what_is_written, what_entered, several,
)  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_bits_are_those_of_recorded_steps_and_they_are_staged(body):
    require_same(loop_over(body), X, X[::-1] * 1.5 + 0.1)
    assert stages()
    assert not reasons()


def changing(k, u, x):
    """Each of three lists of operations comes, in no order; what differs comes after two values have been read."""
    v = np.sin(u + 0.1 * x)
    n = int(abs(pb.value(np.sum(v))) * 700) % 3
    scale = float(pb.value(v)[0])
    for _ in range(n):
        v = np.cos(v) * x
    return v * scale + x


def test_another_list_with_the_same_beginning_is_found_after_values_were_read():
    calls = []

    def counted(k, u, x):
        calls.append(k)
        return changing(k, u, x)

    f = loop_over(counted, 60)
    require_same(f, X, X[::-1] * 1.5 + 0.1, policies=(pb.SaveAll(), pb.Binomial(5)))
    assert len(stages()) == 3
    assert not reasons()
    calls.clear()
    with pb.using(staging="numpy"):
        pb.grad(f)(X)
    assert calls == list(range(60))


def test_a_branch_that_was_never_seen_goes_on_in_the_same_call():
    calls = []

    def body(k, u, x):
        calls.append(k)
        v = np.sin(u) * x
        if pb.value(v)[0] > 0 and k == 7:
            v = np.cos(v)
        return v + abs(x)

    f = loop_over(body)
    require_same(f, abs(X))
    calls.clear()
    with pb.using(staging="numpy"):
        pb.grad(f)(abs(X))
    assert calls == list(range(N))


def test_what_is_handed_out_is_nobodys_buffer():
    """Large results lie in buffers, which the next step uses again."""
    seen = []

    def body(k, u, x):
        v = np.sin(u * x)
        w = v * 2.0
        seen.append((pb.value(v), pb.value(w), v > 0))
        return w * v + u

    x = np.linspace(0.1, 0.9, 4096)
    f = loop_over(body)
    with pb.using(staging="off"):
        pb.grad(f)(x)
    wanted, seen[:] = [[part.copy() for part in parts] for parts in seen], []
    for _ in range(2):
        seen.clear()
        with pb.using(staging="numpy"):
            pb.grad(f)(x)
        for given, parts in zip(seen, wanted, strict=True):
            for one, other in zip(given, parts, strict=True):
                assert one.tobytes() == other.tobytes()
                assert one.strides == other.strides
        assert not any(part.flags.writeable for given in seen for part in given[:2])
    assert the_stage().record.works_in_place


def test_the_condition_of_a_while_loop_sees_values_and_its_steps_are_staged():
    def newton(x):
        def body(state):
            u, _ = state
            v = 0.5 * (u + x / u)
            return v, np.max(np.abs(v - u))

        return np.sum(pb.while_loop(lambda s: s[1] > 1e-3, body, (np.ones_like(x), np.sum(x)))[0])

    def growing(x):
        def body(u):
            v = u * 1.05 + 0.01 * x
            return v if np.max(v) < 30 else v * 1.1

        return np.sum(pb.while_loop(lambda u: np.max(u) < 50, body, x))

    for f in (newton, growing):
        for x in (abs(X), abs(X[::-1]) * 1.5 + 0.1):
            for policy in (pb.SaveAll(), pb.Recompute(3)):
                with pb.using(staging="off"):
                    recorded = pb.value_and_grad(f, policy=policy)(x)
                for _ in range(2):
                    with pb.using(staging="numpy"):
                        staged = pb.value_and_grad(f, policy=policy)(x)
                    assert [np.asarray(a).tobytes() for a in staged] == [np.asarray(a).tobytes() for a in recorded]
    assert len(stages()) >= 2
    assert not reasons()


def test_as_many_warnings_come_and_each_once():
    def body(k, u, x):
        v = np.log(u - 5.0)
        if pb.value(v).size > 2 and k % 11 == 10:
            u = u * 1.5
        w = np.sqrt(u - 9.0)
        return u * 0.9 + x + 0.0 * np.nan_to_num(v) + 0.0 * np.nan_to_num(w)

    counts = []
    for staging in ("off", "numpy", "numpy"):
        with warnings.catch_warnings(record=True) as seen, pb.using(staging=staging):
            warnings.simplefilter("always")
            pb.grad(loop_over(body, 40))(X)
        counts.append(sorted(str(warning.message) for warning in seen))
    assert counts[0] == counts[1] == counts[2]
    assert len(stages()) == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_an_error_after_a_value_was_read_leaves_nothing(policy):
    stops = [False]

    def body(k, u, x):
        v = np.sin(u) * x
        if pb.value(v)[0] < 9 and stops[0] and k == 9:
            raise KeyError(k)
        return v + x

    f = loop_over(body)
    for _ in range(2):
        stops[0] = True
        with pytest.raises(KeyError), pb.using(staging="numpy"):
            pb.grad(f, policy=policy)(X)
        stops[0] = False
        require_same(f, X, policies=(policy,))
    assert not reasons()


def test_a_value_is_checked_when_a_stage_is_made(monkeypatch):
    altered = lambda x: x + 1 if type(x) is np.ndarray else x  # noqa: E731 - one more than is there
    monkeypatch.setattr("pullback.staging.generated.generated.faithful", altered)
    require_same(loop_over(what_is_kept), X)
    assert not stages()
    assert any("what is read" in why for why in reasons())


def test_where_a_value_is_read_and_what_comes_after_stand_in_the_text():
    require_same(loop_over(branched_on_a_value), abs(X), policies=(pb.SaveAll(),))
    text = stages()[0].record.text
    assert "    yield v4\n    v2, = constants[0:1]\n" in text
    assert text.rstrip().splitlines()[-1].startswith("    yield (")


@pytest.mark.parametrize("staging", ["auto", "numpy"])
def test_a_staged_function_that_reads_values_is_staged_with_the_same_bits(staging):
    def energy(q, scale):
        w = q * scale
        r = np.sqrt(np.dot(w, w))
        w[0] *= 0.5
        if r > 1.0:
            r = r * float(pb.value(w)[0])
        return r * w[1]

    def program(f, x):
        y = np.sin(x)
        return f(y, 2.0) + f(y * 0.1, y[0]) * np.sum(y)

    staged = pb.staged(energy)
    for x in (X, X[::-1] * 1.5 + 0.1, X * 0.01, X):
        wanted = pb.value_and_grad(lambda x: program(energy, x))(x)
        with pb.using(staging=staging):
            found = pb.value_and_grad(lambda x: program(staged, x))(x)
        assert [np.asarray(a).tobytes() for a in found] == [np.asarray(a).tobytes() for a in wanted]
        alone = [pb.value_and_grad(f)(x, 1.5) for f in (energy, staged)]
        assert [np.asarray(a).tobytes() for a in alone[0]] == [np.asarray(a).tobytes() for a in alone[1]]
    known = pb.explain_stage(staged)
    assert len(known.stages) >= 2
    assert any("yield" in text for text in known.stages)


def test_a_value_that_a_staged_function_keeps_is_safe_from_later_writes():
    kept = []

    @pb.staged
    def f(q):
        w = np.sin(q)
        kept.append(pb.value(w))
        kept.append(pb.value(q))
        w *= 2.0
        return np.sum(w * q)

    def program(x):
        y = x * 1.0
        z = f(y)
        y += 5.0
        return z * np.sum(y)

    for _ in range(4):
        kept.clear()
        pb.grad(program)(X)
        assert np.array_equal(kept[0], np.sin(X))
        assert np.array_equal(kept[1], X)
    assert pb.explain_stage(f).stages
