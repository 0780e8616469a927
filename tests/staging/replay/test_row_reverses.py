"""Marked steps under save-all: those that say the same go back through generated functions, with the bits of the
sweep."""

import gc
import tracemalloc

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated.shelf import forget
from pullback.staging.replay import row_reverses
from pullback.staging.replay.row_reverses import MOST_MISSES

X = np.linspace(0.1, 0.9, 12).reshape(3, 4)
W = np.linspace(-1.0, 1.0, 16).reshape(4, 4)
TABLE = np.linspace(1.0, 2.0, 40)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


def plain(k, x, w):
    return np.tanh(x @ w) * 0.5 + np.sin(x)


def numbered(k, x, w):
    return x + 0.01 * k * np.sin(x) * (1.0 + 0.5 * k)


def tabled(k, x, w):
    return x * TABLE[k] + np.full(4, 0.1 * k) * x


def written(k, x, w):
    y = x.copy()
    y[1:, :2] += 0.1 * np.cos(x[:-1, 2:])
    y[0] = x[1] * 0.5
    return y + x @ w * 0.1


def fancy(k, x, w):
    return x + np.sum(x[[0, 2, 2], [1, 1, 3]] ** 2) * 0.01 * w[:3]


def masked(k, x, w):
    return np.where(x > 0.3, np.log(np.abs(x) + 0.1), x * x) + np.maximum(x, 0.2)


def captured(k, x, w):
    return 0.5 * x + w[:3] * 0.1 + np.exp(-x * x) * w[0]


def joined(k, x, w):
    return np.concatenate([x[:, 2:], x[:, :2]], axis=1) * np.mean(x, axis=0) * 0.1 + np.sqrt(np.abs(x) + 1.0)


def over_a_step(k, x, w):
    return x / (1.0 + x * x) ** 2 + x.T.reshape(3, 4) * 0.1


def counted(n, step, kept=None):
    def run(x, w):
        total = 0.0
        for k in pb.steps(n):
            x = step(k, x, w)
            if kept is not None:
                kept.append(x)
                total = total + np.sum(x) * 0.5
        return np.sum(x * x) + total

    return run


def bits(found):
    return [np.asarray(a).tobytes() for a in found[1]] + [np.asarray(found[0]).tobytes()]


def same_both_ways(f, *args, argnums=(0, 1)):
    """The gradient by functions, called twice, has the bits of that of the sweep."""
    gradient = pb.value_and_grad(f, argnums)
    with pb.using(staging="off"):
        swept = bits(gradient(*args))
    with pb.using(staging="numpy"):
        assert [bits(gradient(*args)) for _ in range(2)] == [swept, swept]


def functions():
    """How many functions there are, and why others are not."""
    known = [each for shelf in row_reverses._SHELF.values() for each in shelf]
    return sum(len(each.reverses) for each in known), [each.why for each in known if each.why]


STEPS = [plain, numbered, tabled, written, fancy, masked, captured, joined, over_a_step]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_steps_by_functions_have_the_bits_of_a_sweep(step):
    same_both_ways(counted(10, step), X, W)
    n, why = functions()
    assert n, why


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_in_other_dtypes(dtype):
    turned = X.astype(dtype) * (1 + 0.5j if dtype is np.complex128 else 1)

    def run(x, w):
        for _ in pb.steps(9):
            x = np.sin(x) * w[0] + x
        return np.sum(np.abs(x) ** 2)

    same_both_ways(run, turned, W.astype(dtype))
    assert functions()[0]


def test_values_of_all_steps_that_are_read_after_them():
    kept = []
    same_both_ways(counted(10, plain, kept), X, W)
    n, why = functions()
    assert n, why

    def run(x, w):
        states = []
        for k in pb.steps(10):
            x = plain(k, x, w)
            states.append(x)
        return np.sum(np.stack(states) ** 2)

    same_both_ways(run, X, W)


def test_a_step_that_reads_the_last_two_states():
    def run(x, w):
        before, now = x, x * 0.9
        for _ in pb.steps(12):
            before, now = now, 2.0 * now - before + 0.01 * (now @ w)
        return np.sum(now * before)

    same_both_ways(run, X, W)
    assert functions()[0]


def test_rows_among_steps_that_differ():
    def run(x, w):
        for k in pb.steps(30):
            x = np.sin(x) * 0.9 if k == 15 else plain(k, x, w)
        for k in pb.steps(10):
            x = numbered(k, x, w)
            if k > 8:
                break
        return np.sum(x)

    same_both_ways(run, X, W)
    assert functions()[0] >= 2


def test_steps_that_all_differ_are_swept_and_soon_not_compared(monkeypatch):
    compared = []

    def run(x, w):
        for k in pb.steps(24):
            x = x * x if k % 2 else x + x
        return np.sum(x * 1e-3)

    real = row_reverses.row_before
    monkeypatch.setattr(row_reverses, "row_before", lambda *given: compared.append(1) or real(*given))
    with pb.using(staging="numpy"):
        found = pb.grad(run)(X * 1e-3, W)
    with pb.using(staging="off"):
        assert found.tobytes() == pb.grad(run)(X * 1e-3, W).tobytes()
    assert len(compared) == MOST_MISSES
    assert functions() == (0, [])


def test_the_default_asks_for_many_steps():
    for n, wanted in ((20, 0), (200, 1)):
        pb.grad(counted(n, plain))(X, W)
        assert functions()[0] == wanted


def test_a_pull_that_stays():
    with pb.using(staging="off"):
        _, swept = pb.vjp(counted(30, plain), X, W)
        wanted = [[g.tobytes() for g in swept(seed)] for seed in (1.0, -0.5)]
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(counted(30, plain), X, W)
        assert [[g.tobytes() for g in pull(seed)] for seed in (1.0, -0.5, 1.0, -0.5)] == wanted * 2


def test_second_order_is_swept_and_marks_by_name_where_somebody_hears():
    def named(x, w):
        for k in pb.steps(12):
            x = pb.name(plain(k, x, w), "state")
        return np.sum(x)

    with pb.using(staging="numpy"):
        hessian = pb.hvp(lambda x: counted(12, plain)(x, W), (X,), (X,))
        heard = []
        streamed = pb.grad(named, on_adjoint={"state": lambda k, ct: heard.append((k, ct.tobytes()))})(X, W)
        assert functions() == (0, [])
        assert [k for k, _ in heard] == [*range(11, -1, -1)]
        assert pb.grad(named)(X, W).tobytes() == streamed.tobytes()
    assert functions() == (1, [])
    with pb.using(staging="off"):
        assert hessian.tobytes() == pb.hvp(lambda x: counted(12, plain)(x, W), (X,), (X,)).tobytes()


def test_a_step_with_a_primitive_from_outside_is_swept_and_says_so():
    @pb.primitive
    def doubled(x):
        return x * 2.0

    @doubled.vjp("x")
    def _(ct):
        return ct * 2.0

    def run(x, w):
        for _ in pb.steps(12):
            x = np.sin(doubled(x))
        return np.sum(x)

    same_both_ways(run, X, W, argnums=(0,))
    n, why = functions()
    assert not n
    assert "primitive from outside" in why[0]
    assert "primitive from outside" in str(pb.explain_stage(run))


def test_explained():
    def marked(x):
        for _ in pb.steps(12):
            x = x + 0.01 * np.sin(x)
        return np.sum(x * x)

    with pb.using(staging="numpy"):
        pb.grad(marked)(X)
    back, forward = pb.explain_stage(marked).stages
    assert back.startswith("def reverse(slots, seeds, buffers, fresh):")
    assert forward.startswith("def advance(inputs, captured, constants, buffers, fresh):")


@pytest.mark.parametrize("free", [True, False])
def test_what_is_held_is_let_go_of_as_the_sweep_passes(free):
    big = np.ones((64, 1024))

    def run(x):
        for _ in pb.steps(20):
            x = np.sin(x) * 0.5 + np.cos(x)
        return np.sum(x)

    def peak(staging):
        with pb.using(staging=staging):
            pb.grad(run)(big)  # what is known of it is kept
            gc.collect()
            tracemalloc.start()
            if free:
                pb.grad(run)(big)
            else:
                _, pull = pb.vjp(run, big)
                pull(1.0)
                pull.close()
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    assert peak("numpy") <= peak("off") + 4 * big.nbytes
    if free:
        assert peak("numpy") < 50 * big.nbytes


def test_an_error_in_the_loop_leaves_a_program_that_can_go_on():
    def run(x):
        places = dict.fromkeys(range(10))
        try:
            for k in pb.steps(12):
                x = np.sin(x)
                places.pop(k)
        except KeyError:
            x = x * 2.0
        return np.sum(x)

    same_both_ways(lambda x, w: run(x), X, W)
    assert functions()[0]


def test_steps_within_steps_are_steps_of_the_outer_ones():
    def run(x, w):
        for _ in pb.steps(10):
            for k in pb.steps(3):
                x = plain(k, x, w)
        return np.sum(x)

    same_both_ways(run, X, W)
    assert functions()[0]


def drawn(seed):
    """A program whose steps read the states of several steps before, the first ones, and what the loop captures."""
    random = np.random.default_rng(seed)
    lags = random.integers(1, 7, 3)
    terms = [
        lambda seen, x, w, k: 0.1 * np.sin(seen[-lags[0]]) * seen[-lags[1]],
        lambda seen, x, w, k: 0.05 * seen[0] * seen[-lags[2]],
        lambda seen, x, w, k: 0.1 * x * w[0] + seen[min(3, len(seen) - 1)] * 0.01,
        lambda seen, x, w, k: np.where(seen[-1] > 0.4, seen[-lags[0]], w[1]) * 0.1,
        lambda seen, x, w, k: (0.01 * k) * seen[-1][::-1] + TABLE[k] * 1e-2,
        lambda seen, x, w, k: np.sum(seen[-lags[1]] ** 2) * 0.01 * seen[-1],
        lambda seen, x, w, k: 0.1 * (seen[-1] @ w),
    ]
    chosen = [terms[number] for number in random.permutation(len(terms))[: random.integers(1, 5)]]
    writes, keeps = random.random(2) < 0.3

    def run(x, w):
        seen = [x] * 7
        for k in pb.steps(26):
            new = seen[-1] * 0.5
            for term in chosen:
                new = new + term(seen, x, w, k)
            if writes:
                new[1:] *= 0.9
                new[0] += seen[-2][1] * 0.1
            seen.append(new)
        return np.sum(seen[-1] * seen[-3]) + (np.sum(np.stack(seen[::3])) if keeps else 0.0)

    return run


@pytest.mark.parametrize("seed", range(30))
def test_drawn_programs(seed):
    same_both_ways(drawn(seed), X, W)


def test_most_of_the_drawn_programs_go_back_by_functions():
    found = 0
    for seed in range(30):
        forget()
        with pb.using(staging="numpy"):
            pb.grad(drawn(seed))(X, W)
        found += functions()[0] > 0
    assert found > 20


def test_the_initial_state_is_read_as_one_captured_and_as_the_state():
    def run(x, w):
        seen = [x, x, x]
        for _ in pb.steps(14):
            seen.append(0.5 * seen[-1] + 0.1 * np.sin(seen[-3]) * x)
        return np.sum(seen[-1])

    same_both_ways(run, X, W)
    assert functions()[0]


@pytest.mark.parametrize("gathers", [False, True])
def test_learning_and_going_back_take_no_more_than_the_sweep(gathers):
    """At the peak; when a function is made, so much has been let go of as that takes."""

    def run(x, w):
        for _ in pb.steps(40):
            x = np.sin(x @ w) if gathers else np.sin(x) * 1.1 + 0.3
        return np.sum(x)

    x, w = np.linspace(0.1, 1.0, 40_000).reshape(200, 200), np.eye(200) * 0.9 + 0.001
    gradient = pb.grad(run, argnums=(0, 1))

    def peak():
        gc.collect()
        tracemalloc.start()
        try:
            gradient(x, w)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    with pb.using(staging="off"):
        gradient(x, w)
        swept = peak()
    gradient(x, w)
    peaks = [peak() for _ in range(5)]
    (known,) = row_reverses.rows_in(run.__code__)
    assert known.reverses and max(peaks) <= swept + 1.1 * x.nbytes, [n / x.nbytes for n in (swept, *peaks)]
