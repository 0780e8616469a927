"""NumPy calls on symbols are written down; what asks for a value is refused, or called as a whole."""

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated.placing import plan_of
from pullback.staging.statements.symbols import NotTraceableError, Program, Ref, mapped, numbers_in

A = np.arange(1.0, 7.0).reshape(2, 3)


def names(program):
    return [statement.symbol or statement.function.__name__ for statement in program.statements]


def test_calls_operators_and_methods_become_statements():
    program = Program()
    x = program.value(A)
    y = (np.sin(x) * 2.0 + x.T.reshape(2, 3))[0].sum(axis=0)
    assert names(program) == ["sin", "*", ".T", ".reshape()", "+", "[]", ".sum()"]
    assert program.samples[y.number] == (np.sin(A) * 2.0 + A.T.reshape(2, 3))[0].sum(axis=0)


def test_a_symbol_answers_what_is_compared_in_every_step():
    x = Program().value(A)
    assert (x.shape, x.ndim, x.dtype, x.strides, len(x)) == (A.shape, 2, A.dtype, A.strides, 2)
    assert x.flags.c_contiguous


@pytest.mark.parametrize("ask", [bool, float, int, hash, np.asarray, lambda x: x.tolist(), lambda x: x.__iadd__(1.0)])
def test_a_symbol_refuses_what_depends_on_values(ask):
    with pytest.raises(NotTraceableError):
        ask(Program().value(A[0, 0]))


def test_a_function_that_asks_is_called_as_a_whole():
    def larger(x, y):
        return x * 2 if float(x[0, 0]) > 0 else y

    program = Program()
    x, y = program.value(A), program.value(-A)
    found = program.whole(larger, (x, y), {})
    assert names(program) == ["larger"]
    assert program.samples[found.number].tobytes() == (A * 2).tobytes()


def test_an_array_made_inside_is_not_frozen():
    program = Program()
    x = program.value(A)
    program.whole(lambda x: np.zeros(3), (x,), {})  # would be the same array in every step
    assert len(program.statements) == 1


def test_views_and_parts_know_what_they_share():
    program = Program()
    x = program.value(A)
    view, copied = x[0], x[0].copy()
    by_number = {statement.makes: statement for statement in program.statements}
    assert by_number[view.number].aliases == (x.number,)
    assert by_number[copied.number].aliases == ()
    parts = program.call(np.split, (x, 3), {"axis": 1})
    assert [part.shape for part in parts] == [(2, 1)] * 3
    whole = next(each for each in program.statements if each.function is np.split)
    assert whole.aliases == (x.number,)


def test_a_write_to_a_part_of_a_value_that_entered_goes_into_a_copy():
    program = Program()
    x = program.value(A.copy())
    first, _ = program.call(np.split, (x, 2), {})
    made = program.write(first, lambda target: target.fill(7.0))
    plan = plan_of(program, program.statements, [made.number])
    assert [line.in_place for line in plan.lines if line.statement.writes] == [False]


def test_a_write_gives_another_value_and_leaves_the_first():
    program = Program()
    x = program.value(A)

    def fill(target, number):
        target[...] = number

    after = program.write(x, fill, 7.0)
    assert (program.samples[after.number] == 7.0).all()
    assert program.samples[x.number] is A
    assert program.statements[-1].writes


def test_structures_of_arguments():
    tree = (Ref(1), [Ref(2), {"a": slice(Ref(3), None)}])
    assert numbers_in(tree) == [1, 2, 3]
    assert numbers_in(mapped(tree, lambda leaf: Ref(leaf.number + 1) if type(leaf) is Ref else leaf)) == [2, 3, 4]


def test_large_arrays_need_not_be_felt():
    """What a statement makes stays as an array of the same kind, and what shares memory shares it still."""
    large = np.ones((300, 200)).T
    program = Program(felt=False)
    x = program.value(large)
    y = x * 2.0
    part, number, small = y[1:], y.sum(), y[:2, :2] * 1.0
    samples = [program.samples[s.number] for s in (x, y, part, number, small)]
    assert samples[0] is large
    assert samples[1].strides == large.strides
    assert samples[1].base is None
    assert np.may_share_memory(samples[1], samples[2])
    assert program.unfelt == 1
    assert program.statements[1].aliases == (y.number,)


@pytest.mark.parametrize("marked", [False, True])
def test_what_depends_on_values_is_written_down_from_them(marked, monkeypatch):
    """Where it fails on what is not felt, it is done again."""
    felt = []

    def fails(program, result):
        if not program.felt:
            program.unfelt += 1
            raise np.linalg.LinAlgError("singular")
        felt.append(result)
        return result

    monkeypatch.setattr(Program, "_lasting", fails)
    x, n = np.linspace(0.1, 0.9, 4), 40

    def program(u):
        if not marked:
            return np.sum(pb.fori_loop(0, n, lambda _, u: np.sin(u) * x, u))
        for _ in pb.steps(n):
            u = np.sin(u) * x
        return np.sum(u)

    gradients = []
    for staging in ("off", "numpy", "numpy"):
        with pb.using(staging=staging):
            gradients.append(pb.grad(program, policy=pb.Binomial(3))(x).tobytes())
    assert len(set(gradients)) == 1
    assert felt
