"""Drawn programs that read and change what is not in their state: the gradient of the naive reference, or an error of
ours; never another number. Where nothing is wrong with a program, no error."""

import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.programs.hidden_programs import CHANGES, HARMLESS, Program, World, drawn

import pullback as pb

POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(1), pb.Binomial(3), pb.Binomial(30))
RERUN = ("fori_loop", "scan", "scan outputs", "while_loop", "nested", "shared cell")
"""The forms whose body is called again; the records of the others are executed."""
RAISED = {"right": 0, "told": 0}


def outcome(program: Program, policy: pb.MemoryPolicy, world: World, pulls: int = 1) -> Any:
    """The gradients of ``pulls`` pulls, or the error."""
    world.run_plainly = lambda start: program.run(world, start)
    if program.asked:
        world.run_plainly(program.start())
    try:
        pull = pb.vjp(lambda x: program.run(world, x), program.start(), policy=policy)[1]
        CHANGES[program.change](world)
        return [pull(1.0)[0] for _ in range(pulls)]
    except pb.PullbackError as error:
        return error


def require_right_or_told(program: Program, tally: dict[str, int]) -> None:
    """All that is promised of one program."""
    expected, scale = program.naive()
    allowed = 1e-13 * (1.0 + np.max(scale))
    for policy in POLICIES:
        np.random.seed(3)  # noqa: NPY002 - users of the legacy generator are replayed too
        found = outcome(program, policy, World(program.hidden), 1 + (program.n % 2))
        again = program.form in RERUN and not (isinstance(policy, pb.SaveAll) and program.n % 2 == 0)
        blameless = program.habit in HARMLESS and program.change in ("none", "draws", "runs again")
        if isinstance(found, pb.PullbackError):
            tally["told"] += 1
            assert again, f"{policy}: {program}: {found}"
            assert not blameless, f"{policy}: {program}: {found}"
            continue
        tally["right"] += 1
        for gradient in found:
            assert np.all(np.abs(gradient - expected) <= allowed), f"{policy}: {program}: {gradient}, not {expected}"


@settings(max_examples=30, derandomize=True)
@given(st.integers(0, 2**64))
def test_drawn_programs_are_right_or_told(number):
    require_right_or_told(drawn(number), RAISED)


@pytest.mark.parametrize("n", [2, 6, 7])
def test_scratch_of_a_loop_within_a_loop(n):
    """Steps of the outer loop are not run again by some policies, those of the inner one are."""
    for lines in ((("maximum", "list"), ("turned", "array"), ("maximum", "array")), (("add", "dict"),)):
        require_right_or_told(Program("nested", lines, "scratch", "none", n, hidden=False, asked=True), RAISED)


@pytest.mark.slow
@pytest.mark.parametrize("piece", range(4))
def test_many_drawn_programs_are_right_or_told(piece, record_property):
    tally = {"right": 0, "told": 0}
    for number in range(5_000):
        require_right_or_told(drawn(number + (piece << 40)), tally)
    record_property("tally", tally)
    print(tally)  # noqa: T201 - the figure of the run


@settings(max_examples=16, derandomize=True)
@given(st.lists(st.integers(0, 2**64), min_size=2, max_size=4))
def test_programs_in_threads_are_those_of_one_thread(numbers):
    """Each with a world of its own: what threads share is left out."""
    of_all = ("global", "class attribute", "legacy random")
    programs = [p for p in map(drawn, numbers) if not any(place in of_all for _, place in p.lines)]
    programs = [p for p in programs if p.habit in HARMLESS and p.change == "none"]
    alone = [outcome(p, policy, World(p.hidden)) for p in programs for policy in POLICIES]
    together: list[object] = [None] * len(alone)
    worlds = [World(p.hidden) for p in programs for policy in POLICIES]

    def work(k: int) -> None:
        together[k] = outcome(programs[k // len(POLICIES)], POLICIES[k % len(POLICIES)], worlds[k])

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(alone))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


class BrokenOffError(Exception):
    """Raised by a body once."""


class Breaking(Program):
    """Its body raises when ``left`` has been counted down."""

    left = 10**9

    def body(self, world, ops):
        step = super().body(world, ops)

        def stepping(k, u):
            Breaking.left -= 1
            if Breaking.left == 0:
                raise BrokenOffError
            return step(k, u)

        return stepping


def broken_off(program: Program, policy: pb.MemoryPolicy, at: int) -> Any:
    """The gradient of a pull after one whose ``at``-th call of the body has raised, or the error."""
    world = World(program.hidden)
    np.random.seed(3)  # noqa: NPY002 - as above
    Breaking.left = 10**9
    breaking = Breaking(program.form, program.lines, program.habit, "none", program.n, program.hidden, program.first)
    try:
        pull = pb.vjp(lambda x: breaking.run(world, x), program.start(), policy=policy)[1]
        with suppress(BrokenOffError, pb.PullbackError):
            Breaking.left = at
            pull(1.0)
        Breaking.left = 10**9
        return pull(1.0)[0]
    except pb.PullbackError as error:
        return error


@settings(max_examples=25, derandomize=True)
@given(st.integers(0, 2**64), st.integers(1, 12))
def test_a_pull_after_one_that_was_broken_off_is_right_or_told(number, at):
    program = drawn(number)
    expected, scale = program.naive()
    for policy in POLICIES:
        found = broken_off(program, policy, at)
        if isinstance(found, pb.PullbackError):
            assert program.form in RERUN, f"{policy}: {program}: {found}"
        else:
            assert np.all(np.abs(found - expected) <= 1e-13 * (1.0 + np.max(scale))), (policy, program)
