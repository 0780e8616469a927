"""What many steps keep lies in one array: the same bits, no two parts in one place, and nobody else's memory."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import loop_over, require_same, the_stage

import pullback as pb
from pullback.loops.stepping import proved_steps
from pullback.staging.generated import slabs
from pullback.staging.generated.placing import SLOT, Placement
from pullback.staging.generated.slabs import LINE, in_slab, n_in_slab
from pullback.testing.comparing.bits import same_bits

X = np.linspace(0.5, 1.5, 200)
WIDE, NARROW = ((3, 50), np.dtype(float)), ((7,), np.dtype(np.float32))


def test_parts_are_arrays_beside_one_another_in_whole_lines():
    plan = Placement(fresh=[WIDE, NARROW, WIDE, WIDE], slots=[True, True, False, True])
    other = object()
    makers, slab = in_slab(plan, [None, None, other, None], 5)
    assert makers[2] is other
    parts = [maker() for _ in range(5) for maker in (makers[0], makers[1], makers[3])]
    for k, part in enumerate(parts):
        part.fill(k)
    assert all((part == k).all() for k, part in enumerate(parts))
    assert {(part.shape, part.dtype, part.flags.c_contiguous) for part in parts} == {(*WIDE, True), (*NARROW, True)}
    assert {id(part.base) for part in parts} == {id(slab)}
    starts = [part.__array_interface__["data"][0] for part in parts]
    assert {(start - starts[0]) % LINE for start in starts} == {0}
    assert parts[0].base.nbytes == 5 * (2 * 1216 + 64)
    with pytest.raises(StopIteration):
        makers[0]()


def test_a_slab_is_worth_its_while_from_the_bytes_of_large_pages_on(monkeypatch):
    plan = Placement(fresh=[WIDE, NARROW], slots=[True, False])
    monkeypatch.setattr(slabs, "LEAST", 2000)
    monkeypatch.setattr(slabs, "NBYTES", 12160)
    assert [n_in_slab(plan, left) for left in (1, 2, 9, 100)] == [0, 2, 9, 10]
    assert [n_in_slab(plan, left, alone=False) for left in (1, 2, 9, 100)] == [0, 2, 2, 2], "not all of one size"
    monkeypatch.setattr(slabs, "LEAST", 1216)  # an array of its own is as good
    assert n_in_slab(plan, 100) == 0
    assert n_in_slab(Placement(fresh=[WIDE], slots=[False]), 100) == 0


def body(k, u, x):
    """What is kept of a step: a sine, a product, and the state itself."""
    return np.sin(u * x) * np.cos(u)


@pytest.fixture
def small_slabs(monkeypatch):
    """Slabs of six steps; the list of those that were made."""
    made = []

    def counted(plan, makers, n_steps):
        made.extend([n_steps] if n_steps else [])
        return in_slab(plan, makers, n_steps)

    monkeypatch.setattr(slabs, "LEAST", 8000)
    monkeypatch.setattr(slabs, "NBYTES", 6 * 3 * 1600)
    monkeypatch.setattr(proved_steps, "in_slab", counted)
    return made


def test_the_bits_are_those_of_recorded_steps(small_slabs):
    f = loop_over(body, n=60)
    require_same(f, X, -X, policies=(pb.SaveAll(),))
    assert len(small_slabs) > 3 and 6 in small_slabs
    assert the_stage().record.plan.slots.count(True) == 3


def test_a_report_tells_of_the_parts_that_steps_hold(small_slabs):
    f = loop_over(body, n=60)
    with pb.using(staging="off"):
        _, pull = pb.vjp(f, X)
        pull(1.0)
    for _ in range(3):
        _, again = pb.vjp(f, X)
        assert again.report.live_bytes > 59 * 3 * 1600
        again(1.0)
        assert again.report.bytes_by_reason == pull.report.bytes_by_reason
    assert small_slabs


def test_what_is_handed_out_lies_in_no_slab(small_slabs):
    def run(x):
        last = pb.fori_loop(0, 60, lambda k, u: body(k, u, x), x)
        return np.sum(last), last

    with pb.using(staging="numpy"):
        found = [pb.value_and_grad(run, has_aux=True)(X) for _ in range(3)]
    assert small_slabs
    (_, last), ct = found[-1]
    assert last.base is None and ct.base is None
    assert same_bits(found[0], found[-1])  # nothing was computed into what had left


def test_slots_of_less_than_a_kilobyte_and_states_are_left_to_numpy():
    pb.grad(loop_over(body, n=60))(X[: SLOT // 8 - 1])
    assert not the_stage().record.plan.fresh
