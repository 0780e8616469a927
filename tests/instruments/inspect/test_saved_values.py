"""``saved``: its sum against the ledger's report and against the allocator, and what each row says."""

import gc
import json
import re
import tracemalloc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.instruments.inspect.graph_of_tape import record
from pullback.instruments.inspect.saved_values import saved
from pullback.words.errors import PullbackError

X = np.linspace(0.1, 1.0, 100)


def chain(x):
    return np.sum(np.exp(np.sin(x) * x))


def writes(x, y):
    z = np.zeros_like(x)
    z[1:-1] = x[2:] * y[:-2]
    z *= y
    return np.sum(z**2) + np.max(np.sqrt(x))


def slices(x):
    v = x * 2.0
    parts = [v[k : k + 10] * v[k + 1 : k + 11] for k in range(10)]
    return np.sum(np.concatenate(parts) * parts[0][0]) + np.sum(v * v)


def constants(x):
    d = np.arange(x.size) * 1.0
    return np.sum(np.where(x > 0.5, x * d, 0.0) * np.tanh(x) * d)


def shapes(x):
    y = x.reshape(4, -1)
    return np.sum(np.cumsum(y, axis=0).mean(axis=1) ** 3) + np.sum(np.stack([y, y]).T * y.T[..., None]) + np.var(y)


PROGRAMS = {f.__name__: (f, n) for f, n in ((chain, 1), (writes, 2), (slices, 1), (constants, 1), (shapes, 1))}


# -------------------------------------------------------------------------------------------------------------- the sum


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sum_is_what_the_report_says(name: str) -> None:
    f, n = PROGRAMS[name]
    table = saved(f, *[X.copy() for _ in range(n)])
    report = pb.vjp(f, *[X.copy() for _ in range(n)])[1].report
    assert (
        table.total_bytes
        == report.peak_bytes
        == report.live_bytes
        == record(f, *[X.copy() for _ in range(n)]).saved_bytes
    )
    assert {group.key: group.nbytes for group in table.group("reason")} == report.bytes_by_reason


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_sum_is_what_the_allocator_says(name: str) -> None:
    f, n = PROGRAMS[name]
    args = [np.linspace(0.1, 1.0, 400_000) for _ in range(n)]
    pb.vjp(f, *args)[1].close()  # what is made once per process is made now

    def growth() -> int:
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        _, pull = pb.vjp(f, *args)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        pull.close()
        return grown

    grown = min(
        growth() for _ in range(3)
    )  # what others leave behind in one round, a worker's messages for one, is in no other
    table = saved(f, *args)
    assert grown == pytest.approx(table.total_bytes - table.argument_bytes, rel=0.01)


STEPS = (
    lambda a, b: a * b, lambda a, b: a + b, lambda a, b: np.exp(-a * a), lambda a, b: np.tanh(a)[::-1], lambda a,
    b: np.where(a > b, a, b),
    lambda a, b: np.cumsum(a) / (1.0 + b * b), lambda a, b: a.reshape(2, -1).T.ravel() * b, lambda a,
    b: np.sqrt(a * a + 1.0),
)  # fmt: skip


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_sum_is_what_the_report_says_of_drawn_programs(steps) -> None:
    def drawn(x):
        values = [x]
        for step, i, j in steps:
            values.append(step(values[i % len(values)], values[j % len(values)]))
        return np.sum(values[-1])

    table = saved(drawn, X)
    assert table.total_bytes == pb.vjp(drawn, X)[1].report.peak_bytes == record(drawn, X).saved_bytes


def test_ten_views_of_one_array_count_once() -> None:
    def f(x):
        v = x * 2.0
        return sum(np.sum(np.sin(v[k : k + 50])) for k in range(10))

    (row,) = saved(f, X)
    assert (row.nbytes, row.holders, row.primitive, row.name, row.origin) == (800, 10, "sin", "x", "%2 getitem")


def test_the_arguments_own_memory_is_told_apart() -> None:
    table = saved(lambda x: np.sum(x * x) + np.sum(np.exp(2.0 * x)), X)
    assert (table.total_bytes, table.argument_bytes) == (1600, 800)
    assert [row.is_argument for row in table] == [True, False]


# ------------------------------------------------------------------------------------------------------------- the rows


def test_the_table_prints() -> None:
    n = constants.__code__.co_firstlineno
    table = saved(constants, X)
    golden = """\
constants holds 2.44 KiB between forward and reverse

 held  spec          primitive  slot             value     reason    line    also read by
---
800 B  float64[100]  multiply   y (2 holders)    constant  constant  FILE:L
800 B  float64[100]  tanh       out (2 holders)  %3 tanh   saved     FILE:L  multiply at FILE:L
800 B  float64[100]  multiply   x                %2 where  saved     FILE:L
100 B  bool[100]     where      condition        constant  constant  FILE:L

tanh at FILE:L: the rule for x that saves out; the alternative saves x"""
    shown = re.sub("-{9,}", "---", str(table).replace(f"test_saved_values.py:{n + 2}", "FILE:L"))
    assert re.sub("line {9,}", "line    ", shown) == golden
    assert "... and 1.66 KiB in 3 rows that hold no more than these" in table.listing(1)


def test_rows_are_values_in_the_order_of_the_program() -> None:
    n = chain.__code__.co_firstlineno
    rows = [(row.primitive, row.name, row.origin, row.reason, str(row.spec), row.where) for row in saved(chain, X)]
    where = f"test_saved_values.py:{n + 1}"
    assert rows == [
        ("sin", "x", "input x", "saved", "float64[100]", where),
        ("multiply", "x", "%1 sin", "saved", "float64[100]", where),
        ("exp", "out", "%3 exp", "saved", "float64[100]", where),
    ]


def test_top_gives_the_largest_rows() -> None:
    table = saved(lambda x: np.sum(np.sin(x[:10] * 1.0)) + np.sum(np.exp(x)), X)
    assert [row.nbytes for row in table] == [80, 800]
    assert [row.nbytes for row in table.top(1)] == [800]
    assert len(table.top(9)) == len(table) == 2


def test_groups_add_up_and_print() -> None:
    table = saved(constants, X)
    for by in ("line", "primitive", "reason", "name", "origin", "loop"):
        assert sum(group.nbytes for group in table.group(by)) == table.total_bytes
    groups = table.group("reason")
    assert groups["constant"] == 900
    assert str(groups).splitlines()[0] == f"held by reason: {table.total_bytes / 1024:.3g} KiB"
    assert [group.nbytes for group in table.group("primitive")] == sorted(
        (g.nbytes for g in table.group("primitive")), reverse=True
    )


def test_an_unknown_grouping_names_the_known_ones() -> None:
    with pytest.raises(
        PullbackError, match="saved values are not grouped by 'size'; take one of 'line', 'primitive', 'reason'"
    ):
        saved(chain, X).group("size")


def test_the_alternative_taken_is_named() -> None:
    (fresh,) = saved(lambda x: np.sum(np.exp(x * 2.0)), X).choices
    held = saved(lambda x: np.sum(np.sin(x) + np.exp(x)), X)
    assert (fresh.primitive, fresh.operand, fresh.taken, fresh.others, fresh.times) == ("exp", "x", "out", ("x",), 1)
    assert [(choice.taken, choice.others) for choice in held.choices] == [("x", ("out",))]
    assert held.total_bytes == 800
    assert "the rule for x that saves x; the alternative saves out" in str(held)


def test_residuals_and_opaque_residuals_are_rows() -> None:
    class Factor:
        pass

    @pb.primitive(residuals=("half", "factor"), opaque={"factor": lambda _: 123})
    def doubled(x):
        return x * 2.0, {"half": x / 2.0, "factor": Factor()}

    @doubled.vjp("x")
    def _(ct, half, factor):
        return ct * 2.0

    rows = [(row.name, row.nbytes, row.reason, str(row.spec)) for row in saved(lambda x: np.sum(doubled(x)), X)]
    assert rows == [("half", 800, "residual", "float64[100]"), ("factor", 123, "residual", "None")]
    assert "opaque" in str(saved(lambda x: np.sum(doubled(x)), X))


def test_nothing_is_held_and_no_array_stays() -> None:
    alive = []

    def f(x):
        y = np.exp(x)
        alive.append(weakref.ref(y._value))
        return np.sum(y * y)

    table = saved(f, X)
    gc.collect()
    assert alive[0]() is None
    assert table.total_bytes == 800
    assert saved(lambda x: np.sum(x + 1.0), X).total_bytes == 0


# ---------------------------------------------------------------------------------------------------------------- loops


def body(k, u):
    return np.sin(u) * u


def test_a_long_table_is_folded_and_a_whole_one_is_not() -> None:
    def f(x):
        for _ in range(30):
            x = np.sin(x) * x
        return np.sum(x)

    table = saved(f, X)
    folded = table.folded()
    assert [(row.origin, row.steps) for row in folded] == [("input x", 1), ("sin", 30), ("multiply", 29)]
    assert folded.total_bytes == table.total_bytes
    assert folded.folded() == folded
    text = str(table)
    assert "23.4 KiB       30 x 800 B  float64[100]  multiply   x              sin  " in text
    assert f"{len(table)} rows are folded into 3, by line, operation, slot, value, reason and spec" in text
    assert len(table.listing(None).splitlines()) > len(table)
    assert "... and 23.4 KiB in 2 rows that hold no more than these" in table.listing(1)


def test_the_steps_of_a_loop_are_one_row_for_each_slot() -> None:
    def f(x):
        return np.sum(pb.fori_loop(0, 7, body, x * 1.0))

    table = saved(f, X)
    assert table.total_bytes == pb.vjp(f, X)[1].report.live_bytes == 7 * 1600
    assert [(row.primitive, row.name, row.origin, row.steps, row.bytes_per_step) for row in table] == [
        ("sin", "x", "state", 7, 800), ("multiply", "x", "sin of the step", 7, 800),
    ]  # fmt: skip
    where = f"test_saved_values.py:{body.__code__.co_firstlineno + 1}"
    assert [row.where for row in table] == [where, where]
    assert table.rows[0].loop.startswith("fori_loop at ")
    assert "5.47 KiB        7 x 800 B    0-6  float64[100]  sin        x (2 holders)  state            saved   " in str(
        table
    )


def test_a_buffer_that_a_loop_and_plain_code_hold_counts_once() -> None:
    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda _, u: u * u, x)) + np.sum(x * x)

    table = saved(f, X)
    assert (table.total_bytes, table.argument_bytes) == (2400, 800)
    assert record(f, X).saved_bytes == 2400


def test_a_loop_with_a_policy_of_its_own_holds_snapshots() -> None:
    def f(x):
        return np.sum(pb.fori_loop(0, 40, body, x * 1.0, policy=pb.Binomial(4)))

    table = saved(f, X)
    snapshots = [row for row in table if row.reason == "snapshot"]
    assert [(row.primitive, row.name, row.steps, row.bytes_per_step) for row in snapshots] == [
        ("fori_loop", "state[0]", 4, 800)
    ]
    assert table.total_bytes == pb.vjp(f, X)[1].report.live_bytes == record(f, X).saved_bytes


def test_a_checkpoint_holds_what_enters_and_is_read() -> None:
    def f(x):
        inside = pb.checkpoint(lambda u, v: np.sin(np.cos(u) * v) * v)
        return np.sum(inside(x, x * 2.0))

    table = saved(f, X)
    rows = [(row.primitive, row.name, row.reason, row.origin, row.nbytes, row.is_argument) for row in table]
    assert rows == [
        ("checkpoint", "entering", "snapshot", "input x", 800, True),
        ("checkpoint", "entering", "snapshot", "%1 multiply", 800, False),
    ]
    assert table.total_bytes == pb.vjp(f, X)[1].report.live_bytes


# ------------------------------------------------------------------------------------------------------- under policies


def looped(x):
    a = np.sin(x)
    u = pb.fori_loop(0, 20, lambda k, u: np.sin(u) * a, x)
    return np.sum(np.exp(u) * a)


def marked(x):
    u = x
    for _ in pb.steps(12):
        u = u + 0.1 * np.sin(u) * np.cos(x)
    return np.sum(u)


def unmarked(x):
    u = x
    for _ in range(12):
        u = u + 0.1 * np.sin(u) * np.cos(x)
    return np.sum(pb.checkpoint(lambda v: np.sin(np.exp(v)))(u))


def nested(x):
    return np.sum(pb.fori_loop(0, 5, lambda k, u: pb.fori_loop(0, 6, lambda j, v: np.sin(v) + u, u), x))


def until(x):
    return np.sum(pb.while_loop(lambda u: pb.value(u[0]) < 40, lambda u: u * 1.5, x))


POLICIES = [
    pb.SaveAll(), pb.Binomial(3), pb.Recompute(), pb.Periodic(4), pb.Keep(np.sin), pb.Budget("1 MB"),
    pb.Budget("1 MB", exact=True), pb.Keep(np.multiply, outer=pb.Recompute()), "auto",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("f", [looped, marked, unmarked, nested, until])
def test_the_sum_is_what_is_live_under_every_policy(f, policy):
    table = pb.saved(f, X.copy(), policy=policy)
    _, pull = pb.vjp(f, X.copy(), policy=policy)
    assert table.total_bytes == pull.report.live_bytes > 0
    with pb.using(policy):
        assert pb.saved(f, X.copy()).total_bytes == table.total_bytes
    assert table.to_dict()["total_bytes"] == sum(
        row["nbytes"] for row in json.loads(json.dumps(table.to_dict()))["rows"]
    )
    pull.close()


def test_what_a_loop_holds_tells_its_steps_and_readers():
    table = pb.saved(looped, X.copy())
    [state] = [row for row in table if row.primitive == "sin" and row.loop]
    assert (state.first_step, state.last_step, state.steps) == (1, 19, 19)
    [out] = [row for row in table if row.primitive == "exp"]
    assert [text.split(" at ")[0] for text in out.readers] == ["exp", "multiply"]
    assert "1-19" in str(table)
    assert "also read by" in str(table)
    under = pb.saved(looped, X.copy(), policy=pb.Binomial(3))
    assert "under Binomial(3) holds" in str(under)
    [snapshots] = [row for row in under if row.reason == "snapshot"]
    assert snapshots.readers == ("steps run again",)
    assert snapshots.first_step < snapshots.last_step


def test_a_pull_says_what_it_holds():
    _, pull = pb.vjp(chain, X.copy())
    assert re.fullmatch(
        r"<pull of the function differentiated at .*:\d+: holds 2.34 KiB; at the peak .* \(.*saved .*\)>", repr(pull)
    )
    pull.close()
    assert repr(pull).endswith(": released>")


# ------------------------------------------------------------------------------------------------- everything is told


def in_steps(c):
    u = np.zeros_like(c)
    for k in pb.steps(40):
        u = u + 0.1 * np.sin(c * u + k) * WEIGHTS
    return np.sum(u * u)


def in_a_loop(c):
    return np.sum(pb.fori_loop(0, 40, lambda k, u: u + 0.1 * np.sin(u * k), 2 * c) ** 2)


def drawn(c):
    rng = np.random.default_rng(0)
    return np.sum(pb.fori_loop(0, 10, lambda k, u: u * rng.normal(size=50) + np.sin(u), c))


def nested(c):
    return np.sum(pb.fori_loop(0, 6, lambda k, u: pb.fori_loop(0, 5, lambda j, v: v + np.sin(v) * c, u), c))


WEIGHTS = np.linspace(0.5, 1.0, 50)
POLICIES = (
    pb.SaveAll(), pb.Recompute(), pb.Binomial(3), pb.Budget("40 kB"), pb.Keep("sin.x"),
    pb.Tiered(1, 2, directory=".", write_cost=1, read_cost=1), pb.Keep("sin.x", outer=pb.Mixed(3)),
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("f", [in_steps, in_a_loop, drawn, nested])
def test_every_buffer_is_told_with_a_line(f, policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    c = np.linspace(0.5, 1.5, 50)
    table = pb.saved(f, c, policy=policy)
    assert [row for row in table.rows if row.origin == "not told" or not (row.where or row.loop)] == []
    _, pull = pb.vjp(f, c, policy=policy)
    assert table.total_bytes == pull.report.live_bytes
    pull.close()


def test_states_between_steps_say_so():
    table = pb.saved(in_steps, np.ones(50), policy=pb.Binomial(3))
    (states,) = [row for row in table.rows if row.reason == "snapshot"]
    assert (states.primitive, states.name, states.origin, states.nbytes) == ("steps", "state", "state", 2 * 400)
    assert states.loop.startswith("steps at ")
    assert states.where == f"test_saved_values.py:{in_steps.__code__.co_firstlineno + 3}"
    assert 0 < states.first_step < states.last_step < 40
    constants = [row for row in table.rows if row.reason == "constant"]
    assert {row.nbytes for row in constants} == {400}
    assert all(row.where == states.where for row in constants)
    (start,) = [row for row in pb.saved(in_a_loop, np.ones(50)).rows if row.reason == "snapshot"]
    assert (start.name, start.origin, start.readers, start.first_step) == ("state[0]", "state", ("another pull",), 0)
    assert "opaque" not in str(table)
