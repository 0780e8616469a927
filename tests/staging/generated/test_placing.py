"""Where results lie: large ones in buffers that are used again, never in what somebody else has."""


import numpy as np
import pytest
from tests.programs.measured import peak_of
from tests.staging.generated.both_ways import POLICIES, loop_over, require_same, the_stage

import pullback as pb
from pullback.staging.generated.placing import LARGE, SMALL, plan_of
from pullback.staging.statements.symbols import Program
from pullback.staging.statements.ufuncs import ufunc_of
from pullback.testing.comparing.bits import same_bits

A = np.linspace(-1.0, 1.0, 4096).reshape(64, 64)


def planned(function, *inputs, all_of=False):
    """The plan of the statements that ``function`` makes."""
    program = Program()
    symbols = [program.value(x) for x in inputs]
    found = function(*symbols)
    found = found if isinstance(found, tuple) else (found,)
    return plan_of(program, program.statements, [x.number for x in found], all_of=all_of)


def test_what_nobody_reads_is_not_computed():
    def f(x):
        np.sin(x) * 2.0
        return np.cos(x)

    assert [line.statement.function for line in planned(f, A).lines] == [np.cos]
    forward = planned(f, A, all_of=True)  # which may have to warn of it
    assert [line.statement.function for line in forward.lines if not line.statement.symbol] == [np.sin, np.cos]


def test_a_chain_of_large_results_lies_in_one_array_which_is_no_buffer_if_it_leaves():
    plan = planned(lambda x: np.cos(np.sin(x) * 2.0 + x), A)
    assert [line.into.split()[0] for line in plan.lines] == ["fresh", "value", "value", "value"]
    assert not plan.buffers
    assert plan.fresh == [(A.shape, A.dtype)]
    plan = planned(lambda x: (np.sin(x) * 2.0 + x).sum(axis=0), A)
    assert [line.into.split(" ")[0] for line in plan.lines] == ["buffer", "value", "value", ""]
    assert plan.buffers == [(A.shape, A.dtype)]
    assert not plan.fresh
    assert plan.nbytes == A.nbytes


def test_only_the_memory_that_leaves_is_made_anew():
    """Where two operands die in the result that leaves, it lies in the memory of the first: the other's is a buffer."""
    plan = planned(lambda x: (x[1:] + x[:-1]) - 4.0 * x[1:], A)
    made = [line.into for line in plan.lines if not line.statement.aliases]
    assert made == ["fresh 0", "buffer 0", "value 3"]
    assert len(plan.fresh) == 1
    plan = planned(lambda x: np.sin(x) * np.cos(x) - np.tan(x) * np.exp(x), A)
    assert [line.into for line in plan.lines] == [
        "fresh 0", "buffer 0", "value 1", "buffer 0", "buffer 1", "value 4", "value 3"
    ]  # fmt: skip
    assert len(plan.fresh) == 1


def test_small_results_are_left_to_numpy_unless_an_operand_dies():
    small, least = A[:2], A[0, :32]
    assert least.nbytes < SMALL <= small.nbytes < LARGE <= A.nbytes
    intos = []
    for x in (small, least):
        plan = planned(lambda x: np.sin(x) * 2.0, x)
        assert not plan.buffers
        assert not plan.fresh
        intos.append([line.into.split(" ")[0] for line in plan.lines])
    assert intos == [["", "value"], ["", ""]]


def test_a_result_that_is_looked_at_through_a_view_keeps_its_buffer():
    def f(x):
        s = np.sin(x)
        rows = s[:8]
        t = np.cos(s) * 2.0  # may not go into s, whose rows are read below
        return rows.sum() + t.sum()

    places = [line.into for line in planned(f, A).lines if ufunc_of(line.statement) is not None]
    assert places[:3] == ["buffer 0", "buffer 1", places[2]]
    assert places[2] != "buffer 0"


def test_products_of_matrices_lie_in_buffers_and_never_over_an_operand():
    plan = planned(lambda x: ((np.sin(x) @ x) @ x).sum(axis=0), A)
    assert [line.into for line in plan.lines] == ["buffer 0", "buffer 1", "buffer 0", ""]
    plan = planned(lambda x: np.sin(np.cos(x) @ x), A)  # it takes over the memory of the product alone
    assert [line.into for line in plan.lines] == ["buffer 0", "fresh 0", "value 2"]


def test_a_copy_is_made_for_a_product_of_matrices_whose_bits_depend_on_how_operands_lie():
    for function, copies in ((np.matmul, 1), (np.add, 0)):
        plan = planned(lambda x, function=function: function(x[:, ::-1].copy(), x), A)
        assert [line.statement.symbol for line in plan.lines].count(".copy()") == copies


def test_a_write_goes_in_place_where_the_array_was_made_here():
    def fill(target, number):
        target[...] = number

    def f(x):
        return np.sin(x), x

    program = Program()
    x = program.value(A)
    made = program.write(np.sin(x), fill, 1.0)
    given = program.write(x, fill, 1.0)
    plan = plan_of(program, program.statements, [made.number, given.number], all_of=False)
    assert [line.in_place for line in plan.lines if line.statement.writes] == [True, False]


def large(k, u, x):
    v = np.sin(u) * x
    v[1:-1] += 0.1 * (u[2:] - u[:-2])
    w = v[::2].sum(axis=0)
    v *= 0.5
    return v + w * 0.01


@pytest.mark.parametrize("shape", [(64, 64), (4096,), (64, 8, 8)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_large_arrays_have_the_bits_of_recorded_steps(shape, order):
    x = np.array(A.reshape(shape), order=order)
    require_same(loop_over(large), x)


def test_arguments_states_and_results_are_left_alone():
    x = A.copy()
    seen = []

    def f(x):
        return pb.scan(lambda u, _: (np.sin(u) * x, u + 1.0), x, length=12)

    with pb.using(staging="numpy"):
        for _ in range(3):
            (u, ys), pull = pb.vjp(f, x)
            seen.append((u, ys, *pull((np.ones_like(u), np.ones_like(ys)))))
    kept = [tuple(a.copy() for a in seen[0])] * 3
    assert same_bits(x, A)
    assert same_bits(seen, kept)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_pulls_of_two_points_interleaved(policy):
    def f(x):
        return np.sum(pb.fori_loop(0, 12, lambda k, u: np.sin(u) * x + u[::-1] * 0.5, x))

    def of(staging):
        with pb.using(staging=staging):
            pulls = [pb.vjp(f, x, policy=policy)[1] for x in (A, -A)]
            return [pull(1.0)[0] for _ in range(2) for pull in pulls]

    assert same_bits(of("numpy"), of("off"))
    assert the_stage().reverse.plan.buffers


def gate(k, u, x):
    """A sigmoid, whose rule divides and multiplies one masked slope after the other."""
    return u + 0.1 / (1.0 + np.exp(-40.0 * u * x))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_masked_slopes_that_follow_one_another_are_one_statement(dtype):
    x = np.linspace(-3.0, 3.0, 200, dtype=dtype)
    steep = x * np.where(np.arange(200) % 3 == 0, 1e30, 1.0).astype(dtype)  # exp overflows there
    with np.errstate(all="ignore"):
        require_same(loop_over(gate), x, steep)
    assert "masked_chain(" in the_stage().reverse_own.text


def test_a_number_that_is_sent_to_a_whole_array_is_multiplied_as_it_is():
    def body(k, state, x):
        u, total = state
        return np.sin(u) * x, total + np.sum(u * u)

    def f(x):
        return pb.fori_loop(0, 12, lambda k, state: body(k, state, x), (x, 0.0))[1]

    require_same(f, A[:3] + 0.5, A[5:8] - 0.25)
    assert "broadcast_to" not in the_stage().reverse_own.text


def test_steps_hold_what_is_booked_and_no_more():
    """A sum of neighbours less a multiple, as in stencils: one array of each step is kept, and one is allocated."""
    x, n = np.linspace(0.5, 1.5, 20_000), 40

    def f(c):
        def body(k, u):
            return u * 0.5 + c[1:-1].sum() + 1e-3 * np.pad(c[1:-1] * ((u[2:] + u[:-2]) - 2.0 * u[1:-1]), 1)

        return np.sum(pb.fori_loop(0, n, body, x))

    gradient = pb.grad(f)
    with pb.using(staging="numpy"):
        _, pull = pb.vjp(f, x)
        peak = pull.report.peak_bytes
        pull.close()
        gradient(x)
        _, seen = peak_of(gradient, x)
    assert peak >= n * 8 * 19_998
    assert seen < 1.02 * peak + 12 * x.nbytes


def test_memory_for_the_reverse_is_what_it_reads_and_no_temporary():
    def heat(c):
        def step(_, u):
            near = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
            u[1:-1, 1:-1] += c * (near - 4.0 * u[1:-1, 1:-1])
            return u

        return step

    u = np.linspace(0.0, 1.0, 2500).reshape(50, 50)
    pb.grad(lambda u, c: np.sum(pb.fori_loop(0, 40, heat(c), u, staging="numpy")), (0, 1))(u, 0.1)
    plan = the_stage().record.plan
    assert [shape for (shape, _), slot in zip(plan.fresh, plan.slots, strict=True) if slot] == [(48, 48)]
