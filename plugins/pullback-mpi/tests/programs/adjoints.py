"""Every communication has its adjoint: dot products over all ranks, for every kind of part and division."""

import numpy as np
import pytest
from cases import WORLD, case, run_cases

import pullback as pb
from pullback_mpi import Communicator

COMM = Communicator(WORLD)
RNG = np.random.default_rng(WORLD.rank)
PART = RNG.standard_normal((4 + WORLD.rank, 3))
SAME = np.random.default_rng(9).standard_normal((8, 3))
LAST = WORLD.size - 1


def everywhere(part):
    """The values of all ranks, in a way that is not the library's."""
    return WORLD.allgather(part)


@case
def halo():
    for widths in (1, 2, (1, 0), (0, 2), (3, 1)):
        for periodic in (False, True):
            COMM.check_adjoint(lambda x, w=widths, p=periodic: COMM.halo(x, w, 0, p), PART)


@case
def halo_gives_the_rows_of_the_whole():
    whole = np.concatenate(everywhere(PART))
    first = sum(len(p) for p in everywhere(PART)[: WORLD.rank])
    rows = np.arange(first - 2, first + len(PART) + 1)
    np.testing.assert_array_equal(COMM.halo(PART, (2, 1), 0, periodic=True), whole[rows % len(whole)])
    padded = np.concatenate([np.zeros((2, 3)), whole, np.zeros((1, 3))])
    np.testing.assert_array_equal(COMM.halo(PART, (2, 1), 0), padded[rows + 2])


@case
def halo_along_an_axis_that_is_not_divided():
    np.testing.assert_array_equal(COMM.halo(PART, 1, 1, periodic=True), np.pad(PART, ((0, 0), (1, 1)), "wrap"))
    COMM.check_adjoint(lambda x: COMM.halo(x, 1, -1, periodic=True), PART)


@case
def halo_of_other_dtypes_and_strides():
    for x in (PART.astype(np.float32), PART + 1j * PART[::-1], np.asfortranarray(PART), PART[:, ::-1]):
        COMM.check_adjoint(lambda x: COMM.halo(x, 1, 0, periodic=True), np.round(x, 1))
    assert COMM.halo(PART.astype(np.float32), 1, 0).dtype == np.float32
    np.testing.assert_array_equal(COMM.halo(PART[:, ::-1], 1, 0), COMM.halo(PART, 1, 0)[:, ::-1])
    assert COMM.halo(np.arange(6), 1, 0).dtype == np.arange(6).dtype


def with_room(part, widths, periodic, axis=0):
    """A part with room for its edges, in which numbers stand that nobody is to see."""
    first, last = (n > 0 for n in widths)
    if not periodic and axis == 0:
        first, last = first and WORLD.rank > 0, last and WORLD.rank < LAST
    pads = [(0, 0)] * part.ndim
    pads[axis] = widths[0] * first, widths[1] * last
    return np.pad(part, pads, constant_values=np.nan), pads[axis]


@case
def fill_gives_the_rows_of_the_whole():
    whole = np.concatenate(everywhere(PART))
    first = sum(len(p) for p in everywhere(PART)[: WORLD.rank])
    for widths in ((1, 1), (2, 1), (1, 0), (0, 3), (2, 2)):
        for periodic in (False, True):
            x, (before, after) = with_room(PART, widths, periodic)
            assert COMM.fill(x, widths, 0, periodic) is x
            np.testing.assert_array_equal(x, whole[np.arange(first - before, first + len(PART) + after) % len(whole)])


@case
def fill():
    for widths in ((1, 1), (2, 1), (1, 0), (0, 3), (2, 2)):
        for periodic in (False, True):
            x, _ = with_room(PART, widths, periodic)

            def filled(x, w=widths, p=periodic):
                return 3.0 * COMM.fill(2.0 * x, w, 0, p)

            COMM.check_adjoint(filled, np.nan_to_num(x))


@case
def fill_reads_nothing_from_its_room():
    x, (before, after) = with_room(PART, (2, 1), periodic=False)
    own = slice(before, len(x) - after)
    with COMM.agree():
        gradient = pb.grad(lambda x: COMM.total(np.sum(COMM.fill(x * 1.0, (2, 1), 0)[own] ** 2)))(x)
    np.testing.assert_array_equal(gradient[own], 2.0 * PART)
    assert not np.any(gradient[:before]) and not np.any(gradient[len(x) - after :])


@case
def fill_along_an_axis_that_is_not_divided():
    x, _ = with_room(PART, (1, 1), periodic=True, axis=1)
    np.testing.assert_array_equal(COMM.fill(x, 1, 1, periodic=True), np.pad(PART, ((0, 0), (1, 1)), "wrap"))
    COMM.check_adjoint(lambda x: COMM.fill(2.0 * x, 1, 1, periodic=True), np.nan_to_num(x))
    assert np.array_equal(COMM.fill(PART.copy(), 1, 1), PART)


@case
def fill_of_one_row_and_of_other_dtypes():
    for x in (PART[:1], PART.astype(np.float32), PART + 1j * PART[::-1], np.asfortranarray(PART), PART[:, ::-1]):
        padded, _ = with_room(x, (1, 1), periodic=True)
        np.testing.assert_array_equal(COMM.fill(padded, 1, 0, periodic=True), COMM.halo(x, 1, 0, periodic=True))
        COMM.check_adjoint(lambda x: COMM.fill(x * 2, 1, 0, periodic=True), np.round(np.nan_to_num(padded), 1))


@case
def a_fill_that_overlaps_sends_what_the_part_was():
    def overlapped(x, axis=0):
        u = 2.0 * x
        started = COMM.start(u, 1, axis, periodic=True, room=True)
        u[1:-1, 1:-1] *= 5.0
        assert COMM.finish(started) is u
        return u

    def at_once(x, axis=0):
        u = 2.0 * x
        edges = COMM.fill(u.copy(), 1, axis, periodic=True)
        u[1:-1, 1:-1] *= 5.0
        keys = [(slice(None),) * axis + (k,) for k in (0, -1)]
        for key in keys:
            u[key] = edges[key]
        return u

    for axis in (0, 1):
        x, _ = with_room(PART, (1, 1), periodic=True, axis=axis)
        x = np.nan_to_num(x)
        np.testing.assert_array_equal(overlapped(x, axis), at_once(x, axis))
        COMM.check_adjoint(lambda x, a=axis: overlapped(x, a), x)


@case
def start_and_finish():
    def overlapped(x):
        first, second = COMM.start(x, 1, 0), COMM.start(2.0 * x, (0, 2), 0, periodic=True)
        inside = np.sin(x)
        return np.concatenate([COMM.finish(first) * np.sum(inside), COMM.finish(second)])

    COMM.check_adjoint(overlapped, PART)
    x = COMM.start(PART, 1, 0)
    np.testing.assert_array_equal(COMM.finish(x), COMM.halo(PART, 1, 0))


@case
def start_and_finish_step_as_halo_does():
    def stepped(exchange):
        def step(k, u):
            p = exchange(u)
            return u + 0.1 * (p[2:] - 2.0 * u + p[:-2])

        return pb.grad(lambda u: COMM.total(np.sum(pb.fori_loop(0, 40, step, u) ** 2)))

    with COMM.agree():
        one = stepped(lambda u: COMM.finish(COMM.start(u, 1, 0)))(PART)
        other = stepped(lambda u: COMM.halo(u, 1, 0))(PART)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-15 * np.abs(one).max())


@case
def total():
    odd = np.arange(9.0) / 7, np.zeros((0, 2)), np.arange(17, dtype=np.int32)
    for x in (SAME * WORLD.rank, PART[0], np.float64(WORLD.rank), np.arange(40.0) + 1j, np.float32(3), *odd):
        got = COMM.total(x)
        expected = everywhere(x)[0]
        for other in everywhere(x)[1:]:
            expected = expected + other
        np.testing.assert_array_equal(got, expected)
        assert np.asarray(got).dtype == np.asarray(x).dtype
        if np.asarray(x).dtype.kind in "fc":
            COMM.check_adjoint(COMM.total, x, replicated_out=True)


@case
def shared():
    np.testing.assert_array_equal(COMM.shared(SAME), SAME)
    COMM.check_adjoint(COMM.shared, SAME, replicated=(0,))
    COMM.check_adjoint(lambda x: COMM.shared(x)[: WORLD.rank + 1], SAME, replicated=(0,))


@case
def scatter_and_gather():
    for root in (None, 0, LAST):
        whole = SAME if root in (None, WORLD.rank) else np.zeros((1, 1))
        part = COMM.scatter(whole, root)
        np.testing.assert_array_equal(part, SAME[COMM.slices(SAME.shape)])
        back = COMM.gather(part, root)
        assert back.size == 0 or np.array_equal(back, SAME)
        assert (back.size > 0) == (root in (None, WORLD.rank))
        alike = (0,) if root is None else ()
        COMM.check_adjoint(lambda x, r=root: COMM.scatter(x, r), whole, replicated=alike)
        COMM.check_adjoint(lambda x, r=root: COMM.gather(x, r), PART, replicated_out=root is None)


@case
def bcast():
    np.testing.assert_array_equal(COMM.bcast(PART, LAST), everywhere(PART)[LAST])
    COMM.check_adjoint(lambda x: COMM.bcast(x, LAST), PART)
    COMM.check_adjoint(COMM.bcast, np.float64(2.0))


@case
def planes():
    parts = {1: (1, 1), 2: (1, 2), 4: (2, 2)}[WORLD.size]
    comm = Communicator(WORLD, parts=parts, axes=(-2, -1))
    whole = np.random.default_rng(1).standard_normal((2, 6, 8))
    part = comm.scatter(whole)
    padded = comm.halo(comm.halo(part, 1, -2, periodic=True), 2, -1, periodic=True)
    room = np.pad(part, ((0, 0), (1, 1), (2, 2)))
    np.testing.assert_array_equal(comm.fill(comm.fill(room, 1, -2, periodic=True), 2, -1, periodic=True), padded)
    held = whole[comm.slices(whole.shape, 1)]
    again = np.where(held == held, held, 0.0)
    np.testing.assert_array_equal(comm.fill(comm.fill(again, 1, -2), 1, -1), held)
    rows, columns = comm.slices(whole.shape)[1:]
    around = np.pad(whole, ((0, 0), (1, 1), (2, 2)), "wrap")
    np.testing.assert_array_equal(padded, around[:, rows.start : rows.stop + 2, columns.start : columns.stop + 4])
    np.testing.assert_array_equal(comm.gather(part), whole)
    comm.check_adjoint(lambda x: comm.halo(comm.halo(x, 1, -2), 2, -1, periodic=True), part)
    assert comm.place == divmod(WORLD.rank, parts[1])
    with comm.agree():
        pass


@case
def second_order():
    def loss(u):
        p = COMM.finish(COMM.start(np.sin(COMM.halo(u, 1, 0, periodic=True)), 1, 0))
        p = p + COMM.fill(p * p[2], 2, 0, periodic=True)
        return COMM.total(np.sum(p * p * COMM.bcast(p[1], LAST) * COMM.shared(COMM.total(np.sum(u)))))

    v, h = RNG.standard_normal(PART.shape), 1e-5
    with COMM.agree():
        forward = pb.hvp(loss, (PART,), (v,))
        reverse = pb.grad(lambda u: COMM.total(np.sum(pb.grad(loss)(u) * v)))(PART)
        numeric = (pb.grad(loss)(PART + h * v) - pb.grad(loss)(PART - h * v)) / (2 * h)
    scale = COMM.total(np.sum(np.abs(forward)))
    assert scale > 1.0
    assert COMM.total(np.sum(np.abs(forward - reverse))) < 1e-12 * scale
    assert COMM.total(np.sum(np.abs(forward - numeric))) < 1e-6 * scale


@case
def a_wrong_adjoint_is_told():
    wrong = pb.primitive(lambda x: 2.0 * x, name="wrong")
    wrong.vjp("x", fn=lambda ct: 3.0 * ct)
    wrong.jvp("x", fn=lambda t: 2.0 * t)
    with pytest.raises(pb.CheckError, match="replicated value used without shared"):
        COMM.check_adjoint(wrong, PART)


run_cases()
