"""Marked steps that are followed have the bits of recorded ones, whatever the code between two marks does."""

import gc
import warnings
from weakref import ref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.drawn_bodies import DOES, MAKES, N_STEPS, body_of, checks, drawn_body, drawn_leaves
from tests.promises.test_staged_programs import by_marks, difference

import pullback as pb
from pullback.programs.plain.plain_chain import PlainChain
from pullback.staging.generated.shelf import forget
from pullback.staging.marks.following import FollowedMarks
from pullback.staging.replay import recorded_rows
from pullback.stores import Disk, InMemory, Stored, Zlib

N = 30
X = np.linspace(0.1, 0.9, 12).reshape(3, 4)
W = np.linspace(-1.0, 1.0, 16).reshape(4, 4)
TABLE = np.linspace(1.0, 2.0, 4 * N).reshape(N, 4)
BUFFER = np.zeros(4)
POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Binomial(3), pb.Periodic(7), pb.Budget("1 MB")]
RNG = np.random.default_rng(0)


pytestmark = pytest.mark.usefixtures("nothing_is_known")


@pytest.fixture
def computed(monkeypatch):
    """The steps that generated functions have computed."""
    steps, compute = [], FollowedMarks._compute

    def noted(marks):
        steps.append(marks.start)
        compute(marks)

    monkeypatch.setattr(FollowedMarks, "_compute", noted)
    return steps


def two_back(x, w):
    before, u = x * 0.9, x
    for _ in pb.steps(N):
        before, u = u, 1.8 * u - 0.9 * before - 0.01 * np.sin(u @ w)
    return np.sum(u * before)


def tabled(x, w):
    """A row of a table, a number, and a buffer that is filled twice in each step."""
    u = x
    for k in pb.steps(N):
        BUFFER[:] = 0.1 * k
        u = u * 0.9 + BUFFER
        BUFFER[:] = -1.0
        u = u + 0.01 * TABLE[k] * BUFFER + 0.001 * k
    return np.sum(u * u)


def written(x, w):
    u, loss = x * 1.0, 0.0
    for _ in pb.steps(N):
        v = u * 0.9
        v[1:, :2] += 0.1 * np.cos(u[:-1, 2:])
        v[0] = u[1] * 0.5
        u = v + u @ w * 0.1
        loss = loss + np.sum(u[:, 1] ** 2)
    return loss


def locals_live_on(x, w):
    """Names of the last step stand until they are bound again."""
    u = x
    for _ in pb.steps(N):
        a = np.sin(u)
        b = a * u
        u = b + 0.1 * a
    return np.sum(u * a * b)


def kept_in_a_list(x, w):
    u, kept = x, []
    for _ in pb.steps(N):
        u = np.sin(u) + 0.1 * u
        kept.append(u * 2.0)
    return sum(np.sum(part) * 0.1 * k for k, part in enumerate(kept))


def read_on_the_way(x, w):
    u, seen = x, []
    for k in pb.steps(N):
        u = np.sin(u) * 0.9 + 0.1
        if k % 7 == 6:
            seen.append(float(np.sum(pb.value(u))))
    return np.sum(u) * seen[-1]


def branches(x, w):
    u = x
    for k in pb.steps(N):
        u = np.cos(u) if k == 17 else np.sin(u) * (0.5 if k == 9 else 0.9)
        if k == 23:
            u = u * x
    return np.sum(u * u)


def drawn_numbers(x, w):
    u, random = x, np.random.default_rng(3)
    for _ in pb.steps(N):
        u = np.sin(u) + 0.1 * random.standard_normal(4)
    return np.sum(u * u)


def left_early(x, w):
    u = x
    for k in pb.steps(N):
        v = np.sin(u)
        if k == 20:
            break
        u = v * 0.9 + 0.1 * u
    return np.sum(u * v)


def into_an_array(x, w):
    made = np.zeros_like(x, shape=(N, 4))
    u = x[0]
    for k in pb.steps(N):
        u = np.sin(u) + 0.1 * u
        made[k] = u
    return np.sum(made * made[::-1])


def through_a_view(x, w):
    u = x * 1.0
    v = u[::2]
    for k in pb.steps(N):
        v *= 0.95
        u[k % 2] += 0.1 * x[0]
        u = u[::-1] * 1.0 if k % 10 == 9 else u
    return np.sum(u * u) + np.sum(v)


def a_view_goes_on(x, w):
    u = x * 1.0
    for k in pb.steps(N):
        u[k % 2] += 0.1 * x[0]
        u = u[::-1]
    return np.sum(u * u)


def loops_within(x, w):
    u = x
    for _ in pb.steps(N):
        u = pb.fori_loop(0, 2, lambda _, v: np.sin(v) + 0.1 * v, u) * 0.9
    return np.sum(u * u)


def a_gradient_within(x, w):
    u = x
    for _ in pb.steps(N):
        u = u - 0.1 * pb.grad(lambda v: np.sum(v**3 * x))(u)
    return np.sum(u * u)


def two_loops(x, w):
    u = x
    for _ in pb.steps(N):
        u = np.sin(u) + 0.1 * u
    u = u * 2.0
    for _ in pb.steps(N):
        u = np.cos(u) * 0.5
    return np.sum(u * u)


def divides_a_number_in_place(x, w):
    u = x
    for _ in pb.steps(N):
        half = np.full_like(u.sum(), 0.5)
        half /= 1.5
        u = np.sin(u) + half
    return np.sum(u)


def watched_by_weak_references(x, w):
    """Who asks how long a handle lives is told of the user's names alone."""
    u, watched = x, []
    for k in pb.steps(N):
        v = np.sin(u)
        watched.append(ref(v))
        u = v * 0.9 + 0.1
        if k % 9 == 8:
            u = u + sum(np.sum(v()) for v in watched if v() is not None)
    return np.sum(u)


def one_operand_or_two(x, w):
    """An operand that stands at two places in the last steps, and is two in others; a flag that changes, and one that
    does so in the first steps alone."""
    u = x
    for k in pb.steps(N):
        a = TABLE[k]
        b = a if k > N // 2 else TABLE[-k - 1]
        u = np.sin(u * a) * b * (k % 3 > 0) + np.cos(u) * (k > 8) * 0.1
    return np.sum(u * u)


def chosen_rows(x, w):
    """An index that is another in the first steps, and a slice that is."""
    u = x
    for k in pb.steps(N):
        rows = np.array([0, 2] if k < N // 2 else [1, 2])
        v = u[rows] * 0.5
        u = np.sin(u) + 0.1 * np.sum(v) + 0.1 * u[1 if k < N // 3 else 2]
    return np.sum(u * u)


FOLLOWED = [
    *(one_operand_or_two, chosen_rows, two_back, tabled, written, locals_live_on, kept_in_a_list),
    *(read_on_the_way, branches, drawn_numbers, left_early, two_loops),
]
OTHERS = [into_an_array, through_a_view, a_view_goes_on, loops_within, a_gradient_within, watched_by_weak_references]


def bits(program, policy, staging, x=X):
    with pb.using(staging=staging):
        value, gradients = pb.value_and_grad(program, argnums=(0, 1), policy=policy)(x, W)
    return [np.asarray(part).tobytes() for part in (value, *gradients)]


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("program", [*FOLLOWED, *OTHERS, divides_a_number_in_place])
def test_same_bits(program, policy, computed):
    for x in (X, X[::-1] * 0.7):
        wanted = bits(program, policy, "off", x)
        assert [bits(program, policy, "numpy", x) for _ in range(2)] == [wanted] * 2
    counts = policy.counts_bytes and not computed  # the length is not known, or a value is read
    assert counts or bool(computed) is (program in FOLLOWED) or program is divides_a_number_in_place


def test_steps_that_were_written_in_one_way_are_a_row_without_a_look_at_each(monkeypatch):
    grown, compared = [], []
    of_alike, column = recorded_rows._Columns.of_alike, recorded_rows._Columns.column
    monkeypatch.setattr(recorded_rows._Columns, "of_alike", lambda *given: grown.append(of_alike(*given)) or grown[-1])
    monkeypatch.setattr(recorded_rows._Columns, "column", lambda own, at: compared.append(own.n) or column(own, at))
    for program, wanted in ((two_back, True), (kept_in_a_list, True), (one_operand_or_two, False)):
        bits(program, pb.SaveAll(), "numpy")
        grown.clear()
        compared.clear()
        bits(program, pb.SaveAll(), "numpy")
        assert any(row is not None and row.n > N // 2 for row in grown) is wanted
        assert (max(compared) < N // 2) is wanted


def test_most_steps_are_followed(computed):
    bits(two_back, pb.SaveAll(), "numpy")
    computed.clear()
    bits(two_back, pb.SaveAll(), "numpy")
    assert len(computed) >= N - 6


def longer(x, w):
    u = x
    for _ in pb.steps(N):
        u = 1.8 * u - 0.9 * np.sin(u @ w) + 0.1 * np.cos(u) - 0.2 * np.sin(u) * np.cos(u @ w) + x * 0.1 - u * 0.05
    return np.sum(u)


def test_a_budget_follows_steps_where_it_affords_to_make_functions(computed):
    large, w = np.linspace(0.1, 0.9, 4 * 500).reshape(500, 4), W
    wanted = bits(two_back, pb.SaveAll(), "off", large)
    for budget, affords in (("40 MB", True), ("900 kB", False)):
        computed.clear()
        with pb.using(staging="numpy"):
            found = pb.grad(two_back, (0, 1), policy=pb.Budget(budget))(large, w)
        assert [g.tobytes() for g in found] == wanted[-2:]
        assert bool(computed) is affords


def test_few_steps_and_small_ones_are_recorded(computed):
    for program in (longer, two_back):
        forget()
        bits(program, pb.SaveAll(), "auto")
        assert not computed
        for _ in range(4):
            bits(program, pb.SaveAll(), "auto")
        assert bool(computed) is (program is longer)
        computed.clear()


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)], ids=repr)
def test_who_asks_for_the_report_has_it_step_by_step(policy, computed):
    told = []
    for staging in ("off", "numpy", "numpy"):
        with pb.using(staging=staging):
            _, pull = pb.vjp(two_back, X, W, policy=policy)
            pull(1.0)
            told.append((pull.report.n_forward, pull.report.peak_bytes, pull.report.bytes_by_reason))
            pull.close()
    assert not computed
    assert told[1] == told[2]


def test_recipes_hold_what_they_hold_of_recorded_steps(computed, monkeypatch):
    """The books of a chain: plain operands, snapshots and bytes are those of the ordinary way."""
    noted, finish = [], PlainChain.finish

    def note(chain):
        finish(chain)
        noted.append((
            [[np.asarray(x).tobytes() for x in chain.recipes.operands_of(k)] for k in range(chain.n)],
            sorted((k, sorted(snapshot.values)) for k, snapshot in chain.store.of("state").items()),
            chain.recipes.nbytes,
            sorted(np.asarray(c).tobytes() for c in chain.tape.governor.constants.values()),
        ))

    monkeypatch.setattr(PlainChain, "finish", note)
    for staging in ("numpy", "numpy", "off"):
        bits(tabled, pb.Binomial(3), staging)
    assert computed
    assert noted[1] == noted[2]


class HasFailedError(Exception):
    pass


@pytest.mark.parametrize("caught", ["outside", "in the function", "in the step"])
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)], ids=repr)
@pytest.mark.parametrize("at", range(6))
def test_an_error_at_any_operation_leaves_nothing(at, policy, caught, computed):
    def fails(k, place):
        if k == 20 and place == at:
            raise HasFailedError

    def stepped(k, u, x, w):
        try:
            fails(k, 0)
            v = np.sin(u)
            fails(k, 1)
            v = v + 0.1 * u
            fails(k, 2)
            v[1:] += x[:-1]
            fails(k, 3)
            u = v @ w
            fails(k, 4)
            u = u * 0.5
            fails(k, 5)
        except HasFailedError:
            if caught != "in the step":
                raise
        return u

    def program(x, w):
        u = x
        try:
            for k in pb.steps(N):
                u = stepped(k, u, x, w)
        except HasFailedError:
            if caught != "in the function":
                raise
        return np.sum(u * u) + np.sum(x)

    def outcome(staging):
        try:
            return bits(program, policy, staging)
        except HasFailedError:
            return "failed"

    def left(staging):
        """The outcome, and what the collector finds: frames of tracebacks that hold one another."""
        gc.collect()
        gc.disable()
        try:
            return outcome(staging), gc.collect()
        finally:
            gc.enable()

    left("off")  # whatever is made once is there
    wanted, garbage = left("off")
    found = [left("numpy") for _ in range(3)]  # making functions leaves some, too
    assert [outcome for outcome, _ in found] == [wanted] * 3
    assert found[-1][1] <= garbage
    assert computed


def test_a_handle_that_outlives_its_trace_is_refused():
    leaked = []

    def program(x):
        u = x
        for k in pb.steps(N):
            u = np.sin(u) + 0.1 * u
            if k == 20:
                leaked.append(u)
                raise HasFailedError
        return np.sum(u)

    for _ in range(2):
        with pytest.raises(HasFailedError), pb.using(staging="numpy"):
            pb.grad(program)(X)
    for handle in leaked:
        with pytest.raises(pb.TracerError, match="ended"):
            handle + 1.0
        with pytest.raises(pb.TracerError, match="ended"):
            np.sin(handle)


def test_the_generator_may_be_left_open():
    def program(x):
        u, steps = x, pb.steps(N)
        for k in steps:
            u = np.sin(u) + 0.1 * u
            if k == 20:
                break
        assert next(steps) == 21
        u = u * 0.5
        program.kept = steps
        return np.sum(u * u)

    wanted, kept = [], []
    for staging in ("off", "numpy", "numpy"):
        with pb.using(staging=staging):
            wanted.append(pb.grad(program)(X).tobytes())
        kept.append(program.kept)
    assert wanted[0] == wanted[1] == wanted[2]


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(3)], ids=repr)
def test_warnings_name_the_line_of_the_user(policy, computed):
    def program(x):
        u = x
        for k in pb.steps(N):
            v = np.log(u - (1.0 if k == 25 else 0.0))  # here
            u = u * 0.99 + 0.0 * np.maximum(v, 0.0)
        return np.sum(u)

    line = program.__code__.co_firstlineno + 3
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught, pb.using(staging="numpy"):
            warnings.simplefilter("always")
            pb.grad(program, policy=policy)(X * 0.5)
        assert {(w.lineno, str(w.message)) for w in caught} == {(line, "invalid value encountered in log")}
    assert computed


@pytest.mark.parametrize("policy", [
    Stored(pb.SaveAll(), memory=Disk()), Stored(pb.Binomial(4), memory=Disk()), pb.Tiered(2, 3),
    Stored(pb.Recompute(), memory=InMemory(Zlib())), Stored(pb.Recompute(), memory=Disk()),
    Stored(pb.Periodic(7), memory=Disk()),
], ids=repr)  # fmt: skip
def test_stores_know_values_by_their_arrays(policy, computed):
    """A large array that has gone to a store is no longer the trace's, and is not used again for another value."""

    def program(u, w):
        for _ in pb.steps(N):
            u = np.sin(u) * u + 0.1
        return np.sum(u)

    large = np.linspace(0.1, 1.0, 50_000)
    with pb.using(staging="off"):
        wanted = pb.grad(program)(large, W).tobytes()
    with pb.using(staging="numpy"):
        assert [pb.grad(program, policy=policy)(large, W).tobytes() for _ in range(2)] == [wanted] * 2
    assert computed


def test_errors_of_numpy_come_at_their_line(computed):
    def program(x):
        u = x
        for k in pb.steps(N):
            u = np.sin(u) / (0.0 if k == 20 else 2.0)
            assert k < 20
        return np.sum(u)

    for staging in ("off", "numpy", "numpy"):
        with pb.using(staging=staging), np.errstate(all="raise"), pytest.raises(FloatingPointError):
            pb.grad(program)(X)
    assert not computed


def test_records_of_second_order_are_recorded(computed):
    f = lambda x: two_back(x, W)  # noqa: E731
    found = []
    for staging in ("off", "numpy"):
        with pb.using(staging=staging):
            found.append(pb.grad(lambda x: np.sum(pb.grad(f)(x) ** 2))(X).tobytes())
            found.append(pb.hvp(f, (X,), (X,))[1].tobytes())
    assert found[:2] == found[2:]


def test_nothing_is_left():
    for policy in (pb.SaveAll(), pb.Binomial(3)):
        for program in (two_back, kept_in_a_list, into_an_array, read_on_the_way):
            bits(program, policy, "numpy")
            gc.collect()
            gc.disable()
            try:
                bits(program, policy, "numpy")
                assert gc.collect() == 0
            finally:
                gc.enable()


NOT_FOLLOWED = ("stop_gradient", "fori_loop", "checkpoint", "P[k", "k % 2", "k % 3", "IDX[k", "float(", "str(")
MADE = [k for k, text in enumerate(MAKES) if not any(part in text for part in NOT_FOLLOWED)]
DONE = [k for k, text in enumerate(DOES) if not any(part in text for part in NOT_FOLLOWED)]


def keeping(body, state, x, w):
    """Some of the states live on."""
    kept = []
    for _ in pb.steps(N_STEPS):
        state = body(_, state, x, w)
        kept.append(state[0])
    return (*state, *kept[::3])


def with_the_state_before(body, state, x, w):
    """A step reads two states, and the loop is left."""
    before = state
    for k in pb.steps(N_STEPS):
        new = body(k, state, x, w)
        state = tuple(a * 0.7 + 0.3 * b if k > 0 else a for a, b in zip(new, before, strict=True))
        before = new
        if k == 8:
            break
    return (*state, *before)


def interrupted(body, state, x, w):
    """One step asks for a value, one does another thing."""
    for k in pb.steps(N_STEPS):
        state = body(k, state, x, w)
        if k == 7:
            state = tuple(leaf * 0.9 for leaf in state)
        if k == 6:
            float(pb.value(np.sum(state[0])))
    return state


def assert_same_bits_by_marks(loop, program, shapes, kinds, size):
    forget()
    random = np.random.default_rng(len(program))
    leaves = drawn_leaves(shapes, kinds, size, random)
    x, w = random.uniform(0.2, 1, 4 * size), random.uniform(-1, 1, 4 * size)
    text = drawn_body(leaves, x, w, program, size)
    body_of(text, size)
    found = difference(loop, text, leaves, x, w, size)
    assert not found or "ReplayError by recorded" in found


followed = st.one_of(
    st.tuples(st.just(True), st.sampled_from(MADE), *(st.integers(0, 2**16),) * 2, st.just(0)),
    st.tuples(st.just(True), st.sampled_from(MADE), *(st.integers(0, 2**16),) * 2, st.just(0)),
    st.tuples(st.just(True), st.sampled_from(MADE), *(st.integers(0, 2**16),) * 2, st.just(0)),
    st.tuples(st.just(False), st.sampled_from(DONE), *(st.integers(0, 2**16),) * 2, st.just(0)),
)
drawn = (
    st.sampled_from([by_marks, keeping, with_the_state_before, interrupted]),
    st.lists(followed, min_size=1, max_size=9),
    st.lists(st.integers(0, 4), min_size=1, max_size=3),
    st.integers(0, 127),
    st.sampled_from((1, 1, 1, 600)),
)


@settings(max_examples=20, deadline=None, suppress_health_check=checks)
@given(*drawn)
def test_drawn_steps(loop, program, shapes, kinds, size):
    assert_same_bits_by_marks(loop, program, shapes, kinds, size)


@pytest.mark.slow
@settings(max_examples=20_000, deadline=None, suppress_health_check=checks)
@given(*drawn)
def test_many_drawn_steps(loop, program, shapes, kinds, size):
    assert_same_bits_by_marks(loop, program, shapes, kinds, size)
