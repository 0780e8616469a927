"""What goes wrong on one rank, or differs between them, is an error on every rank, with the remedy in its text."""

import numpy as np
import pytest
from cases import WORLD, case, error_of, run_cases

import pullback as pb
from pullback_mpi import Communicator, MismatchError, PartError, RankError

X = np.arange(12.0).reshape(4, 3)
ODD = WORLD.rank == 1
"""The rank that does otherwise."""


def raises(kinds, words, function, **options):
    """Every rank gets an error of these kinds; the words are in its text."""
    error = error_of(function, **options)
    assert isinstance(error, kinds), repr(error)
    assert words in str(error), str(error)
    return error


def raises_on_all(kind, words, function, **options):
    """The odd rank, or all, get this kind; the others hear of it."""
    error = raises((kind, RankError), words, function, **options)
    assert any(WORLD.allgather(isinstance(error, kind)))
    if isinstance(error, RankError):
        assert kind.__name__ in str(error) and error.rank != WORLD.rank
        assert str(error).count("(PB001") <= 1


@case
def a_halo_wider_than_a_part():
    raises_on_all(PartError, "take fewer ranks", lambda comm: comm.halo(X[:1] if ODD else X, 2, 0))
    raises_on_all(PartError, "take fewer ranks", lambda comm: comm.start(X, 5, 0))


@case
def room_that_leaves_too_few_rows():
    raises_on_all(PartError, r"edges included", lambda comm: comm.fill(X[:3], (2, 1), 0))
    raises_on_all(PartError, "take fewer ranks", lambda comm: comm.start(X[:2], 1, 0, periodic=True, room=True))


@case
def a_plain_array_that_is_to_hold_what_is_traced():
    def filled(make):
        def loss(comm, c):
            u = make(c)
            comm.fill(u, 1, 0)
            return comm.total(np.sum(u * c))

        return lambda comm: pb.grad(lambda c: loss(comm, c))(X)

    raises((pb.ConversionError, RankError), "zeros_like", filled(lambda c: np.zeros(X.shape)))
    assert error_of(filled(np.zeros_like)) is None


@case
def parts_that_do_not_fit_beside_each_other():
    raises((MismatchError, RankError), "ommunication", lambda comm: comm.halo(X, 1 + ODD, 0, periodic=True))
    raises((MismatchError, RankError), "", lambda comm: comm.halo(X[:, : 3 - ODD], 1, 0, periodic=True))
    raises_on_all(PartError, "make no whole", lambda comm: comm.gather(X[:, : 3 - ODD]))


@case
def a_model_of_another_shape_on_one_rank():
    words = "on rank 1: give every rank the same array"
    raises(MismatchError, words, lambda comm: comm.shared(X[ODD:]))
    raises(MismatchError, words, lambda comm: comm.scatter(X[ODD:]))
    raises(MismatchError, words, lambda comm: comm.shared(X.astype("f4") if ODD else X))
    raises(MismatchError, "length 0", lambda comm: comm.total(X[ODD:]))


@case
def other_values_where_the_same_are_needed():
    raises((MismatchError, RankError), "hand it through shared", lambda comm: comm.shared(X + ODD))
    raises((MismatchError, RankError), "hand it through shared", lambda comm: comm.shared(np.where(ODD, np.nan, X)))
    assert error_of(lambda comm: comm.shared(np.where(True, np.nan, X))) is None


@case
def values_that_agree_to_a_few_bits_are_those_of_rank_0():
    def slightly(comm):
        found = comm.shared(X * (1.0 + 1e-15 * WORLD.rank))
        assert np.array_equal(found, X)

    assert error_of(slightly) is None


@case
def a_loss_on_one_rank_alone():
    def loss_of(of_all):
        def loss(u):
            whole = of_all(np.sum(u * u))
            return whole if WORLD.rank == 0 else 0.0 * whole

        return loss

    raises((MismatchError, RankError), "hand it through shared", lambda comm: pb.grad(loss_of(comm.total))(X))

    def through_shared(comm):
        found = pb.grad(loss_of(lambda x: comm.shared(comm.total(x))))(X)
        assert np.array_equal(found, 2 * X)

    assert error_of(through_shared) is None


@case
def other_communications():
    def otherwise(one, other):
        raises((MismatchError, RankError), "same communications", one if ODD else other)

    otherwise(lambda comm: comm.shared(2 * X), lambda comm: comm.total(2 * X))
    otherwise(lambda comm: comm.halo(X, 1, 0), lambda comm: comm.total(X))
    otherwise(lambda comm: comm.finish(comm.start(X, 1, 0)), lambda comm: comm.halo(X, 1, 0))


@case
def one_communication_more():
    def more(comm):
        for _ in range(3 + ODD):
            comm.halo(X, 1, 0)

    error = raises((MismatchError, RankError), "an agreed point", more)
    assert "communication 5" in str(error)


@case
def an_error_in_the_block():
    def fails(comm):
        if ODD:
            raise ZeroDivisionError("here")
        comm.halo(X, 1, 0, periodic=True)

    error = raises((ZeroDivisionError, RankError), "here", fails)
    assert isinstance(error, ZeroDivisionError) == ODD
    error = raises((ZeroDivisionError, RankError), "by zero", lambda comm: 1 // (not ODD))
    assert isinstance(error, RankError) or ODD


@case
def an_error_within_a_loop_and_its_reverse():
    def failing_at(what):
        def fails(comm):
            trap = pb.primitive(lambda x: x * 1.0, name="trap")

            @trap.vjp("x")
            def rule(ct):
                if ODD and what == "reverse":
                    raise ZeroDivisionError("in the rule")
                return ct * 1.0

            def step(k, u):
                if ODD and what == "forward" and k == 3:
                    raise ZeroDivisionError("in step 3")
                return trap(comm.halo(u, 1, 0)[1:-1])

            return pb.grad(lambda u: comm.total(np.sum(pb.fori_loop(0, 6, step, u, policy=pb.Binomial(2)))))(X)

        return fails

    for what in ("forward", "reverse"):
        error = raises((ZeroDivisionError, RankError), "in ", failing_at(what))
        assert isinstance(error, ZeroDivisionError) == ODD


@case
def a_replay_error_on_one_rank():
    runs = [0]

    def changing(comm):
        def step(k, u):
            runs[0] += ODD
            return comm.halo(u, 1, 0)[1:-1] + float(runs[0])

        return pb.grad(lambda u: comm.total(np.sum(pb.fori_loop(0, 9, step, u * u) ** 2)))

    error = error_of(lambda comm: pb.grad(lambda u: 0.0 * np.sum(u))(X) + _binomial(comm, changing))
    assert isinstance(error, pb.ReplayError if ODD else RankError), repr(error)
    assert ODD or "ReplayError" in str(error)


def _binomial(comm, made):
    with comm.agree(pb.Binomial(2)):
        return made(comm)(X)


@case
def unequal_policies():
    def agreed(comm):
        with comm.agree(pb.Binomial(5 + ODD)):
            pass

    raises(MismatchError, "the policy Binomial(", agreed)


@case
def unequal_policies_of_a_loop():
    def loops(comm, policies):
        def loss(u):
            def step(k, u):
                return comm.halo(u, 1, 0)[1:-1] * u

            return comm.total(np.sum(pb.fori_loop(0, 12, step, u, policy=policies[ODD])))

        return pb.grad(loss)(np.full((3, 2), 0.9))

    for policies in ((pb.SaveAll(), pb.Binomial(5)), (pb.Binomial(5), pb.Binomial(6))):
        error = raises((pb.PolicyError, RankError), "the same policy", lambda comm, p=policies: loops(comm, p))
        assert repr(policies[0]) in str(error) or repr(policies[1]) in str(error)


@case
def unequal_loops():
    def longer(comm):
        def loss(u):
            return comm.total(np.sum(pb.fori_loop(0, 12 + ODD, lambda k, u: comm.halo(u, 1, 0)[1:-1], u)))

        return pb.grad(loss)(X)

    raises(pb.PullbackError, "same", longer)


@case
def derivatives_outside_of_an_agreed_block():
    comm = Communicator(WORLD)
    with pytest.raises((PartError, RankError), match=r"within a block, with comm.agree\(policy\)"):
        pb.grad(lambda u: np.sum(comm.halo(u * u, 1, 0)))(X)


@case
def exchanges_that_are_not_finished():
    raises((PartError, RankError), "call finish for each start", lambda comm: comm.start(X, 1, 0))

    def twice(comm):
        started = comm.start(X, 1, 0)
        comm.finish(started)
        comm.finish(started)

    raises((PartError, RankError), "finish each once", twice)


@case
def exchanges_that_are_finished_in_another_order_on_one_rank():
    """What goes back is as long for either: the number of the exchange tells them apart."""

    def product(comm, turned):
        def loss(u):
            found = [comm.start(v, 1, 0, periodic=True) for v in (u, u * u)]
            parts = [comm.finish(started) for started in (reversed(found) if turned else found)]
            return comm.total(np.sum(parts[0] * parts[1]))

        return pb.grad(loss)(X + WORLD.rank)

    raises((MismatchError, RankError), "which of those under way", lambda comm: product(comm, ODD))
    for comm in (Communicator(WORLD), Communicator(WORLD)):
        with comm.agree():
            assert np.array_equal(product(comm, True), product(comm, False))


@case
def arguments_that_make_no_sense():
    raises((PartError, RankError), "is no rank", lambda comm: comm.bcast(X, 9))
    raises((PartError, RankError), "array of numbers", lambda comm: comm.halo([1.0, 2.0], 1, 0))
    raises((PartError, RankError), "byte order", lambda comm: comm.halo(X.astype(">f8"), 1, 0))
    raises((PartError, RankError), "byte order", lambda comm: comm.shared(X.astype(">f8")))
    raises((PartError, RankError), "is no axis", lambda comm: comm.halo(X, 1, 2))
    raises((PartError, RankError), "take fewer parts", lambda comm: comm.scatter(X[:1]))
    raises((PartError, RankError), "has no axis", lambda comm: comm.scatter(np.float64(1.0)))
    for parts, words in (((5, 5), "mpiexec -n 25"), ((1, 1, 1, WORLD.size), "one, two or three")):
        with pytest.raises(PartError, match=words):
            Communicator(WORLD, parts=parts)
    with pytest.raises(TypeError, match=r"MPI.COMM_WORLD"):
        Communicator("world")


@case
def a_communicator_that_is_closed():
    comm = Communicator(WORLD)
    comm.halo(X, 1, 0)
    comm.close()
    with pytest.raises(RankError, match="it was closed; make another one"):
        comm.total(X)


@case
def a_communicator_has_ended_after_an_error():
    comm = Communicator(WORLD)
    with pytest.raises((PartError, RankError)):
        comm.bcast(X, 9)
    with pytest.raises(RankError, match="make another one"):
        comm.total(X)


run_cases()
