"""Drawn programs over two ranks: what is active, what is reached, where loops and marks stand and which calls are made
is drawn, and the same program in one process says what the gradients are."""

from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.programs.ranks import Agreed, both_edges, on_ranks, shifted, total

import pullback as pb
from pullback.testing.comparing.bits import same_bits

WIDTH = 3
POLICIES = (
    pb.SaveAll(),
    pb.Recompute(2),
    pb.Recompute(),
    pb.Binomial(1),
    pb.Periodic(2),
    pb.Budget("1 MB"),
    pb.Budget("1 MB", exact=True),
    pb.Keep("sin"),
    "auto",
)
# A rank's program is a list of commands on four registers. Each command is drawn once for both ranks: its kind, and the
# registers it reads and writes, may differ from rank to rank, but which calls meet is the same.
CONSTANTS = (np.array([0.3, -0.4, 0.1]), np.array([0.2, 0.5, -0.6]), np.array([-0.1, 0.4, 0.7]), np.zeros(WIDTH))
REGISTER = st.integers(0, 3)
PAIR = st.tuples(REGISTER, REGISTER)  # one for each rank
LOCAL = st.sampled_from(["sin", "scaled", "product", "added", "written", "constant", "nothing"])
OWN = st.tuples(LOCAL, REGISTER, REGISTER, REGISTER)
COMMAND = st.deferred(lambda: st.one_of(LOCALS, MET, REPEATED))
LOCALS = st.tuples(st.just("local"), OWN, OWN)
MET = st.tuples(st.sampled_from(["shifted", "total", "edges"]), PAIR, PAIR)
BODY = st.lists(st.one_of(LOCALS, MET), min_size=1, max_size=3)
INNER = st.tuples(st.just("loop"), st.sampled_from(["fori_loop", "checkpoint"]), st.integers(1, 2), BODY)
OUTER = st.lists(st.one_of(LOCALS, MET, INNER), min_size=1, max_size=3)
REPEATED = st.tuples(
    st.just("loop"),
    st.sampled_from(["fori_loop", "scan", "while_loop", "steps", "checkpoint"]),
    st.integers(1, 5),
    OUTER,
)
PROGRAM = st.lists(COMMAND, min_size=1, max_size=4)
STARTS = st.tuples(*[st.tuples(*[st.booleans()] * 4)] * 2)  # which registers begin with what depends on the input
ENDS = st.tuples(*[st.one_of(st.none(), REGISTER)] * 2)  # what a rank returns the sum of the squares of


def locally(command, registers):
    """A command of one rank on its own registers, which it returns anew."""
    what, target, a, b = command
    registers = list(registers)
    x, y = registers[a], registers[b]
    if what == "sin":
        registers[target] = np.sin(x)
    elif what == "scaled":
        registers[target] = x * 0.7
    elif what == "product":
        registers[target] = x * y * 0.5
    elif what == "added":
        registers[target] = x * 0.6 + y * 0.3
    elif what == "written":
        made = x + 0.0 * y  # traced where either is
        made[1:] *= 0.5
        made[:1] += y[-1:] * 0.2
        registers[target] = made
    elif what == "constant":
        registers[target] = CONSTANTS[a] * 1.0
    return tuple(registers)


def edge_parts(x):
    return x[:1] * 0.5, x[-1:]


def edge_whole(u, left, right):
    return u * 0.5 + left * 0.3 + right * 0.2


def run(rank, commands, registers):
    for command in commands:
        registers = ran(rank, command, registers)
    return registers


def ran(rank, command, registers):
    what = command[0]
    if what == "local":
        return locally(command[1 + rank], registers)
    if what == "loop":
        _, kind, n, body = command
        return looped(kind, n, partial(run, rank, body), registers)
    source, target = command[1][rank], command[2][rank]
    x = registers[source]
    if what == "shifted":
        made = shifted(x)
    elif what == "total":
        made = total(x) * 0.3
    else:
        made = edge_whole(x, *both_edges(*edge_parts(x)))
    return (*registers[:target], made, *registers[target + 1 :])


def looped(kind, n, one, registers):
    if kind == "fori_loop":
        return pb.fori_loop(0, n, lambda k, r: one(r), registers)
    if kind == "scan":
        return pb.scan(lambda r, k: (one(r), None), registers, length=n)[0]
    if kind == "while_loop":
        return pb.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, one(c[1])), (0, registers))[1]
    if kind == "steps":
        for _ in pb.steps(n):
            registers = one(registers)
        return registers
    made = pb.checkpoint(one)
    for _ in range(n):
        registers = made(registers)
    return registers


def of_rank(rank, program, starts, ends, x):
    registers = tuple(x * 0.5 if active else CONSTANTS[k] for k, active in enumerate(starts[rank]))
    registers = run(rank, program, registers)
    return np.float64(0.5) if ends[rank] is None else np.sum(registers[ends[rank]] ** 2)


def of_both(program, starts, ends, xs):
    """The sum of what both ranks return, computed by one."""
    both = [
        tuple(xs[rank] * 0.5 if active else CONSTANTS[k] * 1.0 for k, active in enumerate(starts[rank]))
        for rank in (0, 1)
    ]
    both = run_both(program, both)
    found = [0.5 if end is None else np.sum(both[rank][end] ** 2) for rank, end in enumerate(ends)]
    return found[0] + found[1] + 0.0 * np.sum(xs)


def run_both(commands, both):
    for command in commands:
        what = command[0]
        if what == "local":
            both = [locally(command[1 + rank], both[rank]) for rank in (0, 1)]
        elif what == "loop":
            for _ in range(command[2]):
                both = run_both(command[3], both)
        else:
            xs = [both[rank][command[1][rank]] for rank in (0, 1)]
            if what == "shifted":
                made = xs[::-1]
            elif what == "total":
                made = [(xs[0] + xs[1]) * 0.3] * 2
            else:
                low, high = zip(*map(edge_parts, xs), strict=True)
                made = [edge_whole(xs[rank], high[1 - rank], low[1 - rank]) for rank in (0, 1)]
            both = [
                (*both[rank][: command[2][rank]], made[rank], *both[rank][command[2][rank] + 1 :]) for rank in (0, 1)
            ]
    return both


X = np.array([[0.4, -0.7, 1.1], [0.2, 0.9, -0.3]])


def check(program, starts, ends, policies):
    wanted = pb.grad(partial(of_both, program, starts, ends))(X)

    def on(rank, policy, staging):
        with pb.using(agreement=Agreed(), staging=staging):
            out, pull = pb.vjp(partial(of_rank, rank, program, starts, ends), X[rank], policy=policy)
            once = pb.grad(partial(of_rank, rank, program, starts, ends), policy=policy)(X[rank])
        return once, pull(np.ones_like(out))[0], pull([np.ones_like(out), np.ones_like(out)])[1][0]

    first = None
    for policy in policies:
        for staging in ("off", "numpy"):
            found, world = on_ranks(2, partial(on, policy=policy, staging=staging), agrees=True)
            first = first or found
            assert same_bits(found, first), (policy, staging)
            assert world.sent[0] == world.sent[1], (policy, staging)
    for rank in (0, 1):
        once, again, several = first[rank]
        assert same_bits(once, again)
        assert same_bits(once, several)
        np.testing.assert_allclose(once, wanted[rank], rtol=1e-9, atol=1e-12)


ONE_READS_LITTLE = [  # of what comes from before the step: a tape is smaller than that on one rank alone
    ("local", ("sin", 1, 1, 0), ("product", 0, 2, 2)),
    ("loop", "fori_loop", 5, [("local", ("sin", 3, 1, 2), ("added", 0, 1, 0))]),
    ("loop", "steps", 5, [
        ("loop", "checkpoint", 1, [
            ("edges", (3, 2), (1, 3)), ("local", ("product", 1, 1, 1), ("scaled", 3, 0, 3)),
        ]),
        ("local", ("nothing", 3, 1, 1), ("product", 0, 1, 2)),
        ("edges", (3, 2), (2, 0)),
    ]),
    ("edges", (1, 3), (1, 3)),
]  # fmt: skip
COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "derandomize": True}


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@settings(max_examples=20, **COMMON)
@given(PROGRAM, STARTS, ENDS, st.sampled_from(POLICIES[1:]))
@example(program=ONE_READS_LITTLE, starts=((False, True, True, False),) * 2, ends=(None, None), policy=pb.Binomial(1))
def test_drawn_programs_over_two_ranks(program, starts, ends, policy):
    check(program, starts, ends, (pb.SaveAll(), policy))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@settings(max_examples=1500, **COMMON)
@given(PROGRAM, STARTS, ENDS)
def test_many_drawn_programs_over_two_ranks_under_all_policies(program, starts, ends):
    check(program, starts, ends, POLICIES)
