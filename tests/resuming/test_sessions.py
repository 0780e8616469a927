"""``resume``: what it gives, what it refuses, what it leaves."""

import os
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resuming.test_journal_files import do_harm

import pullback as pb
from pullback.stores import AsType, Disk, Stored

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
X = np.array([0.3, 0.7, 1.1])
TIERED = pb.Tiered(2, 4, write_cost=0.1, read_cost=0.1)


class Stopped(BaseException):
    """Not an error that anything handles."""


def stopping(step, seen):
    """``next`` raises at that step, counted from 1 over all that are run; a generator, which no journal looks into."""
    while True:
        yield
        seen[0] += 1
        if seen[0] == step:
            raise Stopped


def steps_until(step, seen=None):
    found = stopping(step, [0] if seen is None else seen)
    next(found)
    return found


def n_steps(run):
    """Steps that ``run(ticks)`` runs in all."""
    seen = [0]
    run(steps_until(0, seen))
    return seen[0]


def loss(x, ticks, policy=TIERED, n=24, rate=0.1):
    def body(k, u):
        next(ticks)
        return u + rate * np.sin(u * k)

    return np.sum(pb.fori_loop(0, n, body, 2 * x, policy=policy) ** 2)


def gradient(stop=0, x=X, **how):
    return pb.grad(lambda x: loss(x, steps_until(stop), **how))(x)


def stopped(directory, part, **how):
    """A run that ends after a part of its steps."""
    stop = int(part * n_steps(lambda ticks: pb.grad(lambda x: loss(x, ticks, **how))(X)))
    with pytest.raises(Stopped), pb.resume(directory):
        gradient(stop, **how)


# ------------------------------------------------------------------------------------------------------- what it gives
@pytest.fixture
def directory(tmp_path):
    return tmp_path / "journal"


def test_nothing_is_left(directory):
    with pb.resume(directory):
        found = gradient()
        assert (directory / "pullback-loop-0.json").exists()
    assert found.tobytes() == gradient().tobytes()
    assert not list(directory.iterdir())


def test_snapshots_lie_where_the_policy_says(directory, tmp_path):
    policy = pb.Tiered(1, 3, directory=tmp_path / "scratch")
    stopped(directory, 0.7, policy=policy)
    pb.grad(lambda x: pb.fori_loop(0, 9, lambda k, u: u * 1.5, x, policy=policy).sum())(X)  # removes orphans
    assert list((tmp_path / "scratch").glob("*/*.npy"))
    with pb.resume(directory):
        found = gradient(policy=policy)
    assert found.tobytes() == gradient().tobytes()
    assert not list((tmp_path / "scratch").iterdir())
    assert not list(directory.iterdir())


PROGRAMS = {
    "another policy on disk": lambda x, ticks: loss(x, ticks, Stored(pb.Binomial(3), memory=Disk())),
    "a budget": lambda x, ticks: loss(x, ticks, Stored(pb.Budget("40 kB"), memory=Disk()), 60),
    "a few values are kept": lambda x, ticks: loss(x, ticks, pb.Keep("sin.x", outer=TIERED)),
    "an inner loop": lambda x, ticks: np.sum(
        pb.fori_loop(
            0, 9, lambda k, u: pb.fori_loop(0, 3, lambda j, v: v + 0.1 * np.sin(v + k), u + (next(ticks) or 0)), x,
            policy=TIERED,
        )
    ),
    "numbers": lambda x, ticks: pb.fori_loop(
        0, 25, lambda k, s: (s[0] * 1.1 + (next(ticks) or 0), s[1] + 1, s[2]), (np.sum(x), 0, 2.5), policy=TIERED
    )[0],
    "several loops": lambda x, ticks: loss(x, ticks) * loss(np.sin(x), ticks, n=17) + loss(x, ticks, n=1),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")  # a rule that keeps nothing
@settings(max_examples=6, deadline=None)
@given(st.data())
def test_drawn_programs_give_the_same_bits(tmp_path_factory, data):
    require_same_bits(tmp_path_factory, data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_many_drawn_programs_give_the_same_bits(tmp_path_factory, data):
    require_same_bits(tmp_path_factory, data)


def require_same_bits(tmp_path_factory, data):
    name = data.draw(st.sampled_from(sorted(PROGRAMS)))
    x = X + data.draw(st.integers(0, 5))
    staging = data.draw(st.sampled_from(["off", "numpy"]))
    stops = data.draw(st.lists(st.integers(1, 90), max_size=3))
    with pb.using(staging=staging):
        directory = tmp_path_factory.mktemp("journal")
        expected = pb.value_and_grad(lambda x: PROGRAMS[name](x, steps_until(0)))(x)
        for stop in (*stops, 0):
            try:
                with pb.resume(directory):
                    found = pb.value_and_grad(lambda x, stop=stop: PROGRAMS[name](x, steps_until(stop)))(x)
                break
            except Stopped:
                continue
    assert [np.asarray(each).tobytes() for each in found] == [np.asarray(each).tobytes() for each in expected]
    assert not list(directory.iterdir())


@pytest.mark.parametrize("part", [0.3, 0.6, 1])
def test_pulls_of_several_seeds_and_again(directory, part):
    def pulled(ticks):
        def step(u, row):
            next(ticks)
            return u * np.cos(row), u * row

        _, pull = pb.vjp(lambda x: pb.scan(step, x, np.outer(np.arange(20.0), x), policy=TIERED)[1], X)
        seed = np.arange(60.0).reshape(20, 3)
        return [np.asarray(ct).tobytes() for [ct] in (pull(seed), *pull([seed, -seed]))]

    expected = pulled(steps_until(0))
    with pytest.raises(Stopped), pb.resume(directory):
        pulled(steps_until(int(part * n_steps(pulled))))
    with pb.resume(directory):
        assert pulled(steps_until(0)) == expected


def test_random_numbers_and_effects_go_on(directory):
    seen = []
    tell = pb.effect(seen.append)

    def run(ticks):
        rng = np.random.default_rng(1)
        np.random.seed(2)  # noqa: NPY002 - taken up, too

        def body(k, u):
            next(ticks)
            tell(k)
            return u * (1 + 0.1 * rng.normal()) + 0.1 * np.random.normal()  # noqa: NPY002

        g = pb.grad(lambda x: np.sum(pb.fori_loop(0, 30, body, x, policy=TIERED) * rng.normal()))(X)
        return g.tobytes(), rng.normal(), np.random.normal()  # noqa: NPY002

    expected, (n, seen[:]) = run(steps_until(0)), (len(seen), [])
    with pytest.raises(Stopped), pb.resume(directory):
        run(steps_until(60))
    assert seen == list(range(n)) == list(range(30))
    with pb.resume(directory):
        assert run(steps_until(0)) == expected
    assert sorted(set(seen)) == list(range(30))
    assert len(seen) < 45, "effects of steps that are not run again are not called again"


def test_the_steps_that_are_done_are_not_run_again(directory):
    def run(ticks):
        return pb.grad(lambda x: loss(x, ticks, n=100))(X)

    whole, seen = n_steps(run), [0]
    with pytest.raises(Stopped), pb.resume(directory):
        run(steps_until(whole - 5))
    with pb.resume(directory):
        run(steps_until(0, seen))
    assert seen[0] < whole // 5


# ------------------------------------------------------------------------------------------------------ what it refuses
CHANGES = {
    "an argument": ({"x": X + 1e-16 + np.spacing(X)}, "leaf 0 of the initial state: float64"),
    "a number in the body": ({"rate": 0.2}, r"the value of rate: 0\.1 then, 0\.2 now"),
    "the policy": ({"policy": pb.Tiered(3, 4)}, r"the policy: Tiered\(2, 4, .* then, Tiered\(3, 4\) now"),
    "the length": ({"n": 25}, "the number of steps: 24 then, 25 now"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_run_is_refused(directory, name):
    changes, told = CHANGES[name]
    stopped(directory, 0.6)
    with (
        pytest.raises(pb.ResumeError, match=rf"pullback-loop-0\.json was written by another run: .*{told}.*begin anew"),
        pb.resume(directory),
    ):
        gradient(**changes)
    with pb.resume(directory):
        assert gradient().tobytes() == gradient().tobytes()


def test_other_code_is_refused(directory):
    def run(body, ticks):
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 30, lambda k, u: body(u, next(ticks)), x, policy=TIERED)))(X)

    with pytest.raises(Stopped), pb.resume(directory):
        run(lambda u, _: np.sin(u) + 1, steps_until(50))
    with pytest.raises(pb.ResumeError, match="the code of body"), pb.resume(directory):
        run(lambda u, _: np.sin(u) + 2, steps_until(0))


def test_another_captured_value_is_refused(directory):
    def f(ticks):
        return lambda x, rate: np.sum(pb.fori_loop(0, 30, lambda k, u: u * rate + (next(ticks) or 0), x, policy=TIERED))

    with pytest.raises(Stopped), pb.resume(directory):
        pb.grad(f(steps_until(50)), argnums=(0, 1))(X, 0.5)
    with pytest.raises(pb.ResumeError, match="value 0 that the body captures"), pb.resume(directory):
        pb.grad(f(steps_until(0)), argnums=(0, 1))(X, 0.6)


def test_other_cotangents_are_refused(directory):
    stopped(directory, 0.95)
    with pytest.raises(pb.ResumeError, match="cotangents that come to the fori_loop"), pb.resume(directory):
        pb.grad(lambda x: 2 * loss(x, steps_until(0)))(X)


@pytest.mark.parametrize(("harm", "part"), [("flip", 0.5), ("cut", 0.8), ("remove", 0.95), ("flip", 0.99)])
def test_harmed_files_are_refused(directory, harm, part):
    stopped(directory, part)
    files = sorted(directory.glob("pullback-loop-0*/*.npy"))
    for path in files:
        do_harm(path, harm, -1)
    with pytest.raises((pb.ResumeError, pb.StoreError), match=r"\.npy.* begin anew"), pb.resume(directory):
        gradient()
    with pytest.raises((pb.ResumeError, pb.StoreError), match=r"\.npy"), pb.resume(directory):
        gradient()


class Model:
    rate = None

    def step(self, k, u):
        self.rate = 0.5  # what step 0 prepares is prepared again
        if k == 3:
            self.late(u)
        return u * self.rate

    def late(self, u):
        pass


def test_what_a_body_changes_besides_its_state_is_refused(directory):
    def run(model):
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 30, model.step, x, policy=TIERED)))(X)

    expected = run(Model())
    with pb.resume(directory):
        assert run(Model()).tobytes() == expected.tobytes()
    model = Model()
    model.late = lambda u: setattr(model, "seen", 3)
    with pytest.raises(pb.ResumeError, match=r"changes what it can reach .*the value of .*seen"), pb.resume(directory):
        run(model)
    counts = []
    with pytest.raises(pb.ResumeError, match=r"changes what it can reach .*counts"), pb.resume(directory):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 30, lambda k, u: counts.append(k) or u * 2, x, policy=TIERED)))(X)


def test_other_files_in_the_directory_stay(directory):
    directory.mkdir()
    (directory / "loop-0.json").write_text("mine")
    with pb.resume(directory):
        gradient()
    assert [path.name for path in directory.iterdir()] == ["loop-0.json"]


REFUSED = {
    r"SaveAll\(\), which stores nothing on disk; give the loop": lambda x: np.sum(
        pb.fori_loop(0, 5, lambda k, u: u * 2, x)
    ),
    r"Binomial\(3\), which stores nothing on disk": lambda x: np.sum(
        pb.fori_loop(0, 5, lambda k, u: u * 2, x, policy=pb.Binomial(3))
    ),
    "the length of the while_loop is not known": lambda x: np.sum(
        pb.while_loop(lambda u: np.sum(u) < 50, lambda u: u * 2, x, policy=TIERED)
    ),
    "loses bits": lambda x: np.sum(
        pb.fori_loop(0, 5, lambda k, u: u * 2, x, policy=Stored(pb.Binomial(2), memory=Disk(codec=AsType("f4"))))
    ),
    "a directory of this machine": lambda x: np.sum(
        pb.fori_loop(0, 5, lambda k, u: u * 2, x, policy=Stored(pb.Binomial(2), memory=Disk("memory://a")))
    ),
    "run again": lambda x: np.sum(
        pb.checkpoint(lambda x: pb.fori_loop(0, 5, lambda k, u: u * 2, x, policy=TIERED), policy=pb.Recompute())(x)
    ),
}


@pytest.mark.parametrize("told", REFUSED)
def test_what_cannot_be_taken_up_is_refused_before_its_first_step(directory, told):
    with pytest.raises(pb.ResumeError, match=told), pb.resume(directory):
        pb.grad(REFUSED[told])(X)


def test_marked_steps_and_plain_code_under_a_policy_are_refused(directory):
    def marked(x):
        for _ in pb.steps(9):
            x = np.sin(x)
        return np.sum(x)

    with pytest.raises(pb.ResumeError, match=r"pullback\.steps"), pb.resume(directory):
        pb.grad(marked, policy=TIERED)(X)
    with pytest.raises(pb.ResumeError, match="no loop function"), pb.resume(directory):
        pb.grad(lambda x: np.sum(np.sin(x)), policy=TIERED)(X)
    with pb.resume(directory):
        assert pb.grad(marked)(X).tobytes() == pb.grad(marked)(X).tobytes()  # under save-all there is nothing to resume


def test_derivatives_of_derivatives_are_refused(directory):
    with pytest.raises(pb.ResumeError, match="more than once"), pb.resume(directory):
        pb.hvp(lambda x: loss(x, steps_until(0)), (X,), (X,))


def test_a_pull_after_the_block_is_refused(directory):
    with pb.resume(directory):
        _, pull = pb.vjp(lambda x: loss(x, steps_until(0)), X)
    with pytest.raises(pb.ResumeError, match="call the pull within the block"):
        pull(1.0)


def test_blocks_do_not_nest(directory, tmp_path):
    with pb.resume(directory), pytest.raises(pb.ResumeError, match="in force already"), pb.resume(tmp_path / "other"):
        pass


def test_a_directory_in_use_is_refused(directory):
    """By a thread, whose lock is another; so is that of another process."""
    entered, done = threading.Event(), threading.Event()

    def hold():
        with pb.resume(directory):
            entered.set()
            done.wait()

    other = threading.Thread(target=hold)
    other.start()
    try:
        entered.wait()
        with pytest.raises(pb.ResumeError, match=f"in use by process {os.getpid()}"), pb.resume(directory):
            pass
    finally:
        done.set()
        other.join()
    with pb.resume(directory):
        assert gradient().tobytes() == gradient().tobytes()


def in_a_forked_process(call):
    """Whether ``call()`` is true there. The process ends as a worker does, so nothing of pytest's runs in it."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException):
            os._exit(0 if call() else 1)
        os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@forks
def test_a_process_that_is_forked_off_is_not_in_the_block(directory, tmp_path):
    """Its loops have no number, and its files are none of the journal's; it may have a block of its own."""
    wanted, other = gradient().tobytes(), gradient(x=2 * X).tobytes()

    def works():
        with pb.resume(tmp_path / "own"):
            own = gradient().tobytes()
        return (own, gradient(x=2 * X).tobytes()) == (wanted, other)

    with pb.resume(directory):
        _, pull = pb.vjp(lambda x: loss(x, steps_until(0)), X)
        assert in_a_forked_process(works)
        assert in_a_forked_process(lambda: is_refused(pull))
        assert pull(1.0)[0].tobytes() == wanted
        assert gradient(x=2 * X).tobytes() == other
    assert not [*directory.iterdir()]


def is_refused(pull):
    with pytest.raises(pb.ResumeError, match="forked off"):
        pull(1.0)
    return True


@forks
def test_a_process_that_is_forked_off_leaves_the_journal_where_it_leaves_the_block(directory):
    stopped(directory, 0.6)
    session = pb.resume(directory)
    session.__enter__()
    files = sorted(map(str, directory.rglob("*")))
    assert in_a_forked_process(lambda: session.__exit__(None, None, None) is None)
    assert sorted(map(str, directory.rglob("*"))) == files
    session.__exit__(None, None, None)


@forks
def test_a_worker_that_outlives_the_process_of_the_block_does_not_hold_the_directory(directory):
    (read, write), (ended, ends) = os.pipe(), os.pipe()

    def killed():
        pb.resume(directory).__enter__()
        if os.fork() == 0:
            os.write(write, b"!")
            os.close(ends)
            os.read(ended, 1)  # until the test has closed its end
            os._exit(0)
        return os.read(read, 1) == b"!"

    assert in_a_forked_process(killed)
    with pb.resume(directory):
        assert gradient().tobytes() == gradient().tobytes()
    for each in (read, write, ended, ends):
        os.close(each)


def test_a_directory_that_cannot_be_made_is_a_named_error(tmp_path):
    Path(tmp_path / "file").write_text("")
    with pytest.raises(pb.StoreError, match="no journal can be written"), pb.resume(tmp_path / "file"):
        pass


@pytest.mark.parametrize("name", ["pullback-loop-0.json", "pullback.lock"])
def test_a_folder_in_the_place_of_a_file_is_a_named_error(directory, name):
    stopped(directory, 0.6)
    (directory / name).unlink(missing_ok=True)
    (directory / name).mkdir()
    with pytest.raises((pb.ResumeError, pb.StoreError), match=name), pb.resume(directory):
        gradient()


def test_a_folder_among_the_parts_stays(directory):
    stopped(directory, 0.6)
    [parts] = directory.glob("pullback-loop-0")
    (parts / "mine").mkdir()
    with pb.resume(directory):
        assert gradient().tobytes() == gradient().tobytes()


def test_a_url_is_no_directory(directory, monkeypatch):
    monkeypatch.chdir(directory.parent)
    with pytest.raises(pb.ResumeError, match=r"'s3://bucket/run' is a URL; name a directory"):
        pb.resume("s3://bucket/run")
    assert not (directory.parent / "s3:").exists()
