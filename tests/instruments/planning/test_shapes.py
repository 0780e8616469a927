"""Plans from shapes alone: the bytes of a plan from data, and nothing of that size allocated."""

import tracemalloc
import warnings

import numpy as np
import pytest
from tests.primitives.rows import rows
from tests.programs.measured import peak_of

import pullback as pb
from pullback.shapes_only.hollow_arrays import hollow, spec

POLICIES = [pb.SaveAll(), pb.Binomial(3), pb.Budget(10**9)]


def looped(x):
    return np.sum(pb.fori_loop(0, 20, lambda k, u: u + 0.1 * np.sin(u), x))


def plain(x):
    y = np.exp(x) * x
    return np.sum(y[1:-1] ** 2 + y[2:] * y[:-2])


def wave(c):
    before, u = np.zeros_like(c), np.zeros_like(c)
    c2, loss = (0.1 * c) ** 2, 0.0
    for _ in pb.steps(7):
        after = 2 * u - before
        after[1:-1, 1:-1] += c2[1:-1, 1:-1] * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2])
        after[3, 4] += 1.0
        before, u = u, after
        loss = loss + np.sum(u[5, ::3] ** 2)
    return loss


def in_rows(x):
    for _ in pb.steps(30):
        x = x + 0.1 * np.sin(x) * x
    return np.sum(x)


def network(x):
    hidden = np.tanh(x @ x[:, :8])
    return np.mean(np.where(hidden > 0, hidden, 0.1 * hidden)) + np.sum(np.concatenate([hidden, hidden], 0)[::2])


def scanned(x):
    carry, ys = pb.scan(lambda u, row: (np.cos(u) * row, u.sum()), x[0], x)
    return np.sum(carry) + np.sum(ys)


def scanned_squares(x):
    carry, ys = pb.scan(lambda u, row: (np.cos(u) * row, u.sum()), x[0], x)
    return np.sum(carry) + np.sum(ys * ys)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("f", [looped, plain, wave, network, scanned, scanned_squares])
def test_bytes_equal_those_of_data(f, policy):
    told, real = pb.plan(f, spec((40, 40)), policy=policy), pb.plan(f, np.full((40, 40), 0.5), policy=policy)
    assert (told.bytes_by_reason, told.n_forward) == (real.bytes_by_reason, real.n_forward)
    assert told.seconds is None


@pytest.mark.parametrize("f", [looped, plain, wave])
def test_nothing_of_that_size_is_allocated(f):
    pb.plan(f, spec((40, 40)), policy=pb.Binomial(3))  # what is imported
    plan, most = peak_of(pb.plan, f, spec((4096, 4096)), policy=pb.Binomial(3))
    assert plan.peak_bytes > 128 << 20 > 100 * most


def test_a_budget_from_shapes():
    advice = pb.plan(looped, spec((256, 256)), budget="6 MB")
    assert advice.peak_bytes <= 6_000_000
    assert advice.seconds is None
    assert advice.peak_bytes == pb.plan(looped, np.ones((256, 256)), policy=advice.policy).peak_bytes


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("f", [wave, plain, in_rows])
@pytest.mark.parametrize("share", [0.35, 3.0])
def test_a_budget_from_shapes_of_programs_that_must_be_run(f, share):
    x, all_of_it = np.full((400, 400), 0.5), pb.plan(f, spec((400, 400))).peak_bytes
    budget = int(share * all_of_it) + 16 * x.nbytes  # what is at work
    advice = pb.plan(f, spec((400, 400)), budget=budget)
    tracemalloc.start()
    try:
        _, pull = pb.vjp(f, x, policy=advice.policy)
        pull(1.0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (advice.peak_bytes, advice.n_forward) == (pull.report.peak_bytes, pull.report.n_forward)
    assert most <= 1.02 * budget
    assert advice.seconds is advice.others[0].seconds is None if advice.others else advice.seconds is None
    assert isinstance(advice.policy, pb.SaveAll) == (share > 1) or f is plain


def test_a_budget_from_shapes_that_is_too_little():
    with pytest.raises(pb.BudgetError, match="too little") as caught:
        pb.plan(wave, spec((40, 40)), budget="10 kB")
    assert pb.plan(wave, spec((40, 40)), budget=caught.value.minimum_bytes).peak_bytes <= caught.value.minimum_bytes


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (lambda x: np.sum(x) if np.sum(x) > 0 else x, "a value is needed"),
        (lambda x: np.sum(x[pb.value(x) > 0]), "an index is needed"),
        (lambda x: np.sum(pb.while_loop(lambda u: np.max(u) < 3, lambda u: 2 * u, x)), "a value is needed"),
        (lambda x: np.sum(np.sort(x)), "is needed"),
    ],
)
def test_what_needs_a_number_is_told(f, what):
    with pytest.raises(pb.ShapesOnlyError, match=rf"{what}.* \(at .*test_shapes.py:\d+\).*instead of pullback.spec"):
        pb.plan(f, spec((5,)), policy=pb.Recompute())


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="broadcast"):
        pb.plan(lambda x: np.sum(x[1:] * x), spec((5,)))


def test_a_structure_with_data_beside_specs():
    def f(parts, y):
        return np.sum(parts["w"] @ y)

    assert (
        pb.plan(f, {"w": spec((3, 4), np.float32)}, np.ones(4, np.float32)).peak_bytes
        == pb.plan(f, {"w": np.ones((3, 4), np.float32)}, np.ones(4, np.float32)).peak_bytes
    )


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x.T.copy(order="K").strides, lambda x: np.add(x, 1.0).dtype, lambda x: (x @ x).shape,
        lambda x: np.einsum("ij,jk->ki", x, x).shape, lambda x: np.mean(x, axis=0, keepdims=True).shape,
        lambda x: np.fft.rfft(x, axis=0).shape, lambda x: np.pad(x, 2).shape, lambda x: x[[0, 2]][:, None].shape,
        lambda x: np.linalg.solve(x, x[0]).shape, lambda x: np.cumsum(x).shape,
        lambda x: np.shares_memory(x, x.ravel("F")),
        lambda x: np.may_share_memory(x, x[1:]), lambda x: np.var(x, axis=(0, 1)).dtype, lambda x: (x > 0).dtype,
        lambda x: np.stack([x, x], -1).shape, lambda x: np.broadcast_to(x, (2, 4, 4)).strides,
    ],
)  # fmt: skip
def test_what_numpy_gives_but_the_values(compute):
    assert compute(hollow((4, 4), np.float32)) == compute(np.eye(4, dtype=np.float32))


def test_of_an_argument_that_is_a_view_the_plan_is_a_lower_bound_and_says_so():
    whole = np.ones((100, 8))
    planned = pb.plan(lambda x: np.sum(np.sin(x)), spec((100,)))
    assert planned.peak_bytes == 800 == pb.plan(lambda x: np.sum(np.sin(x)), np.ones(100)).peak_bytes
    assert pb.plan(lambda x: np.sum(np.sin(x)), whole[:, 0]).peak_bytes == 6400
    assert pb.plan(lambda x: np.sum(np.sin(x)), spec((100, 8))[:, 0]).peak_bytes == 6400
    said = "for an argument that is a view give a view of a spec, since it holds the whole array it is of"
    assert said in str(planned)
    assert said in planned._repr_html_()
    assert said not in str(pb.plan(lambda x: np.sum(np.sin(x)), np.ones(100)))


@pytest.mark.slow
def test_every_row_of_the_tables_whose_arguments_are_arrays_of_their_own_is_planned_to_the_byte():
    n_planned = 0
    for row in rows():
        args = [x.copy() for x in row.arrays]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = pb.plan(row.called, *map(spec_like, args)).peak_bytes
            except pb.PullbackError:
                continue  # it needs a number
            n_planned += 1
            assert found == pb.plan(row.called, *args).peak_bytes, row.name
    assert n_planned > 1000


def spec_like(x):
    return spec(x.shape, x.dtype)
