"""BudgetPool: one limit for several threads, given back whatever happens."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np
import pytest
from tests.programs.loops_and_marks import looped, marked, plain, two_loops, unknown

import pullback as pb
from pullback.choosing.budget_pool import Asked, Shares

X = np.linspace(0.1, 2.0, 100)


def alone(x):
    """Nothing before the loop."""
    return np.sum(pb.fori_loop(0, 50, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u * k), x))


def nested(x):
    inner = lambda u: pb.fori_loop(0, 5, lambda _, v: np.sin(v) * x, u)  # noqa: E731
    return np.sum(pb.fori_loop(0, 8, lambda _, u: inner(u) + u, x))


ALL = (looped, two_loops, nested, unknown, marked, plain)


@pytest.mark.parametrize("max_bytes", [10**7, 200_000, 60_000])
@pytest.mark.parametrize("f", ALL)
def test_bits_and_all_given_back(f, max_bytes):
    pool = pb.BudgetPool(max_bytes)
    for x in (X, X[::-1] * 0.9):
        expected = pb.grad(f)(x)
        np.testing.assert_array_equal(pb.grad(f, policy=pool)(x), expected)
        assert pool.held_bytes == 0
        _, pull = pb.vjp(f, x, policy=pool)
        for _ in range(2):
            np.testing.assert_array_equal(pull(1.0)[0], expected)
        assert pool.held_bytes > 0 or f is plain
        assert pull.report.choices or f is plain
        pull.close()
        assert pool.held_bytes == 0


@pytest.mark.parametrize("max_bytes", [200_000, 60_000, 20_000])
@pytest.mark.parametrize("f", [looped, two_loops, unknown])
def test_a_gradient_stays_within_its_share(f, max_bytes):
    pool = pb.BudgetPool(max_bytes)
    _, pull = pb.vjp(f, X, policy=pool)
    pull(1.0)
    assert pull.report.peak_bytes <= pool.held_bytes <= max_bytes


@pytest.mark.parametrize("n", [5, 9, 40, 200])
@pytest.mark.parametrize("max_bytes", [100_000, 50_000, 30_000])
def test_code_before_a_loop_that_was_cut_into_steps_is_held(n, max_bytes):
    """As what comes before marks is, also where its first steps are tapes, and states those after them."""

    def f(x):
        for _ in range(n):
            x = 0.9 * np.cos(x) * x
        return np.sum(pb.while_loop(lambda s: s[1] < 20, lambda s: (np.tanh(s[0] * s[0]), s[1] + 1), (x, 0))[0])

    found = None
    for _ in range(3):
        try:
            found = pb.grad(f, policy=pb.BudgetPool(max_bytes))(X).tobytes()
        except pb.BudgetError as error:  # the figure is enough for the loop that tells it
            max_bytes = max(max_bytes + 1, error.minimum_bytes)
    assert found == pb.grad(f)(X).tobytes()


def test_save_all_where_half_is_enough_else_half():
    def taken(max_bytes):
        _, pull = pb.vjp(looped, X, policy=pb.BudgetPool(max_bytes))
        return pull.report.choices[0].policy

    assert taken(10**7) == pb.SaveAll()
    assert taken(100_000) == pb.Budget(50_000)
    with pytest.raises(pb.BudgetError) as caught:
        taken(1_000)
    assert taken(caught.value.minimum_bytes) == pb.Budget(caught.value.minimum_bytes)


def test_eight_threads_share_it():
    pool = pb.BudgetPool(150_000)
    policies = [pool, pool.share(40_000), pool.share("20 kB", timeout=60), pool, pool.share(60_000), pool, pool, pool]
    programs = [looped, two_loops, looped, unknown, nested, looped, two_loops, looped]
    held = []

    def work(k):
        found = []
        for round_number in range(6):
            f, x = programs[(k + round_number) % 8], X * (0.5 + 0.05 * k)
            _, pull = pb.vjp(f, x, policy=policies[k])
            found.append((f, x, pull(1.0)[0], pull.report.peak_bytes))
            held.append(pool.held_bytes)
            if f is not nested:
                pull.close()
            del pull
        return found

    with ThreadPoolExecutor(8) as threads:
        results = list(threads.map(work, range(8), timeout=120))
    assert 0 < max(held) <= 150_000
    assert pool.held_bytes == 0
    for found in results:
        for f, x, gradient, peak in found:
            np.testing.assert_array_equal(gradient, pb.grad(f)(x))
            assert peak <= 150_000 or f is nested


def test_peaks_under_way_never_sum_to_more():
    """Each gradient says its peak while all of them hold their shares."""
    pool, barrier = pb.BudgetPool(200_000), threading.Barrier(4)

    def work(k):
        _, pull = pb.vjp(looped, X * (1 + 0.1 * k), policy=pool)
        pull(1.0)
        barrier.wait(60)
        held, peak = pool.held_bytes, pull.report.peak_bytes
        barrier.wait(60)
        pull.close()
        return held, peak

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(work, range(4), timeout=120))
    assert sum(peak for _, peak in found) <= found[0][0] <= 200_000


def test_it_waits_until_others_give_back():
    pool = pb.BudgetPool(20_000)
    _, first = pb.vjp(looped, X, policy=pool)
    done = []
    thread = threading.Thread(target=lambda: done.append(pb.grad(looped, policy=pool)(X)))
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    first.close()
    thread.join(60)
    np.testing.assert_array_equal(done[0], pb.grad(looped)(X))


def test_a_timeout_names_who_holds_what():
    pool = pb.BudgetPool(20_000, timeout=0.05)
    _, first = pb.vjp(alone, X, policy=pool)
    found = []

    def work():
        with pytest.raises(pb.BudgetError) as caught:
            pb.grad(alone, policy=pool)(X)
        found.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    [error] = found
    assert f"Held: {threading.current_thread().name} {pool.held_bytes:,} for fori_loop" in str(error)
    assert "waited as long as timeout= says" in str(error)
    assert error.minimum_bytes > 0
    first.close()


def test_a_thread_does_not_wait_for_itself():
    pool = pb.BudgetPool(20_000)
    _, first = pb.vjp(alone, X, policy=pool)
    with pytest.raises(pb.BudgetError, match=r"nobody will give any back.*Held: \w+ [\d,]+ for fori_loop"):
        pb.grad(alone, policy=pool)(X)
    first.close()
    np.testing.assert_array_equal(pb.grad(alone, policy=pool)(X), pb.grad(alone)(X))


def test_threads_that_hold_some_do_not_wait_for_each_other():
    """Each holds half, and wants more than the rest: the second that waits is refused, and the first goes on."""
    shares, barrier, refused, taken = Shares(100), threading.Barrier(2), [], []

    def work(_):
        ledger = object()
        share, _ = shares.take(Asked("loop", 50, 50), ledger, 100, 60)
        barrier.wait(60)
        try:
            more, total = shares.take(Asked("loop", 80, 80), ledger, 100, 60)
        except pb.BudgetError as error:
            refused.append(error)
        else:
            taken.append(total)
            more.close()
        share.close()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(work, range(2), timeout=120))
    assert (len(refused), taken, shares.held) == (1, [80], 0)


def fails(x):
    y = pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x)
    raise RuntimeError(np.shape(y))


@pb.primitive
def halved(x):
    return x * 0.5


@halved.vjp("x")
def _(ct, x):
    raise RuntimeError("in the reverse pass")


def fails_in_a_step(x):
    def body(k, u):
        if k == 3:
            raise RuntimeError("in a step")
        return np.sin(u) * x

    return np.sum(pb.fori_loop(0, 5, body, x))


def fails_in_reverse(x):
    return np.sum(pb.fori_loop(0, 5, lambda k, u: halved(np.sin(u)), x))


def fails_in_reverse_after(x):
    """The loop before it is not reached."""
    return np.sum(pb.fori_loop(0, 5, lambda k, u: np.sin(u), halved(np.sin(pb.fori_loop(0, 5, lambda k, u: u * u, x)))))


@pytest.mark.parametrize("f", [fails, fails_in_a_step, fails_in_reverse, fails_in_reverse_after])
def test_given_back_after_an_error(f):
    pool = pb.BudgetPool(60_000)
    gc.disable()
    try:
        with suppress(RuntimeError):
            pb.grad(f, policy=pool)(X)
        assert pool.held_bytes == 0
        with suppress(RuntimeError), pb.using(pool):
            pb.vjp(f, X)[1](1.0)
        assert pool.held_bytes == 0
        with suppress(RuntimeError):
            pb.grad(lambda x: f(pb.fori_loop(0, 5, lambda k, u: np.sin(u), x, policy=pool)))(X)
        assert pool.held_bytes == 0
    finally:
        gc.enable()


def test_given_back_when_a_pull_is_dropped():
    pool = pb.BudgetPool(60_000)
    gc.disable()
    try:
        _, pull = pb.vjp(looped, X, policy=pool)
        assert pool.held_bytes > 0
        del pull
        assert pool.held_bytes == 0
    finally:
        gc.enable()


def test_given_to_the_loop_alone():
    pool = pb.BudgetPool(60_000)

    def f(x):
        return np.sum(pb.fori_loop(0, 50, lambda k, u: u + 0.1 * np.sin(u) * np.exp(-u), x, policy=pool) ** 2)

    gradient = pb.grad(f)(X)
    assert pool.held_bytes == 0
    with pb.using(pb.SaveAll()):
        _, pull = pb.vjp(f, X)
    np.testing.assert_array_equal(pull(1.0)[0], gradient)
    assert 0 < pull.report.peak_bytes <= pool.held_bytes
    pull.close()
    assert pool.held_bytes == 0


def test_a_plan_takes_nothing_for_good():
    pool = pb.BudgetPool(60_000)
    planned = pb.plan(looped, X, policy=pool)
    assert pool.held_bytes == 0
    _, pull = pb.vjp(looped, X, policy=pool)
    pull(1.0)
    assert (pull.report.peak_bytes, pull.report.n_forward) == (planned.peak_bytes, planned.n_forward)


def test_it_prints_and_refuses_what_is_no_number():
    pool = pb.BudgetPool("1 MB")
    assert repr([pool, pool.share("10 kB")]) == "[BudgetPool(1000000), BudgetPool(1000000).share(10000)]"
    with pytest.raises(pb.PolicyError, match="max_bytes='much' is no number of bytes"):
        pb.BudgetPool("much")
    with pytest.raises(pb.PolicyError, match=r"timeout=-1 is no number of seconds"):
        pool.share(timeout=-1)
