"""Drawn NumPy programs under drawn rules of ``Keep``: the bits of save-all, whatever is kept."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs import stages
from tests.programs.numpy_programs import REFUSALS, programs

import pullback as pb
from pullback.stores import Disk, InMemory, Zlib
from pullback.testing.comparing.bits import same_bits

FUNCTIONS = (np.sin, np.exp, np.multiply, np.add, np.sum, np.where, np.reshape, np.tanh, np.square, np.divide)
WHAT = (
    *FUNCTIONS,
    "a",
    "b",
    "multiply.x",
    lambda value: value.nbytes < 40,
    lambda value: value.made_by[:1] < "m",
    lambda value: len(value.saved_as) > 1,
)
HOW = ("keep", "keep", "recompute", "recompute", Zlib(), InMemory(), Disk())


@st.composite
def keeps(draw):
    rules = draw(st.lists(st.tuples(st.sampled_from(WHAT), st.sampled_from(HOW)), max_size=3))
    return pb.Keep(*({what: how} for what, how in rules), others=draw(st.sampled_from(HOW)))


def labelled(program, every):
    """The program, some of whose values are labelled after every few lines."""

    def after(number, names):
        for k, name in enumerate(sorted(names)):
            if (number + k) % every == 0 and isinstance(names[name], pb.Tracer):
                names[name] = pb.name(names[name], "ab"[number % 2])

    return after


def require_same(program, keep, every):
    xs = [value.made() for value in program.inputs.values()]
    argnums = tuple(range(len(xs)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for moved in (xs, [x * 0.75 for x in xs]):
            for mark in (iter, pb.steps):

                def run(*given, mark=mark):
                    return program.run(*given, mark=mark, after=labelled(program, every))

                try:
                    expected = pb.value_and_grad(run, argnums)(*moved)
                except REFUSALS:
                    return
                found = pb.value_and_grad(run, argnums, policy=keep)(*moved)
                assert same_bits(found, expected), f"{keep}: {found} is not {expected}"
                out, pull = pb.vjp(run, *moved, policy=keep)
                first, second = pull(np.ones_like(out)), pull(np.ones_like(out))
                assert same_bits(first, expected[1]), keep
                assert same_bits(second, expected[1]), keep
                pull.close()
                assert pull.report.live_bytes == 0, keep


@settings(max_examples=25, deadline=None)
@given(programs(), keeps(), st.integers(1, 4))
def test_what_is_kept_changes_no_bit(program, keep, every):
    require_same(program, keep, every)


@pytest.mark.slow
@settings(max_examples=4_000, deadline=None)
@given(programs(), keeps(), st.integers(1, 4))
def test_what_is_kept_changes_no_bit_of_many(program, keep, every):
    require_same(program, keep, every)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=6, deadline=None)
@given(stages.programs(["fori_loop", "scan", "while_loop", "steps", "plain"]), keeps())
def test_within_the_steps_of_loops(program, keep):
    for x in (np.linspace(0.3, 1.1, program.size), np.linspace(-0.4, 0.7, program.size)):
        x = x.astype(program.dtype)  # noqa: PLW2901 - as the program wants it
        try:
            expected = pb.grad(program)(x)
        except pb.PolicyError:
            return  # a loop whose own policy must know its length
        out, pull = pb.vjp(program, x, policy=keep)
        (first,), report, (second,) = pull(np.ones_like(out)), pull.report, pull(np.ones_like(out))
        assert first.tobytes() == second.tobytes() == expected.tobytes(), keep
        assert pb.grad(program, policy=keep)(x).tobytes() == expected.tobytes(), keep
        pull.close()
        assert pull.report.live_bytes == 0
        plan = pb.plan(program, x, policy=keep)
        assert plan.n_forward == report.n_forward
        if not report.stores:  # what is in the queue of a disk depends on its speed
            assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)


OUTERS = (
    *(pb.Binomial(1), pb.Binomial(3), pb.Mixed(2), pb.Mixed(5)),
    *(pb.Recompute(), pb.Periodic(2), pb.Periodic(3, tier="disk")),
    *(pb.Budget("1 MB"), pb.BudgetPool("1 MB"), pb.Tiered(1, None)),
)


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=8, deadline=None)
@given(stages.programs(["fori_loop", "scan", "while_loop", "steps", "plain"]), keeps(), st.sampled_from(OUTERS))
def test_between_the_steps_of_loops(program, keep, outer):
    require_between(program, keep, outer)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=2_000, deadline=None)
@given(stages.programs(["steps", "fori_loop", "steps", "plain"]), keeps(), st.sampled_from(OUTERS))
def test_between_the_steps_of_many_loops(program, keep, outer):
    require_between(program, keep, outer)


def require_between(program, keep, outer):
    keep = pb.Keep(*({rule.what: rule.how} for rule in keep.rules), others=keep.others, outer=outer)
    for x in (np.linspace(0.3, 1.1, program.size), np.linspace(-0.4, 0.7, program.size)):
        x = x.astype(program.dtype)  # noqa: PLW2901 - as the program wants it
        try:
            expected = pb.grad(program)(x)
            out, pull = pb.vjp(program, x, policy=keep)
        except pb.PolicyError:
            return  # a loop whose own policy must know its length, or to which this one must be told
        (first,), report, (second,) = pull(np.ones_like(out)), pull.report, pull(np.ones_like(out))
        assert first.tobytes() == second.tobytes() == expected.tobytes(), keep
        assert pb.grad(program, policy=keep)(x).tobytes() == expected.tobytes(), keep
        pull.close()
        assert pull.report.live_bytes == 0
        plan = pb.plan(program, x, policy=keep)
        assert plan.n_forward == report.n_forward
        if not report.stores:  # what is in the queue of a disk depends on its speed
            assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)
