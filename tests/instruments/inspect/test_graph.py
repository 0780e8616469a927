"""Graphs: what ``record`` says of programs, and the questions a graph answers, against definitions spelled out on
small ones."""

import gc
import re
import weakref
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pullback as pb
from pullback.instruments.inspect.graph import Graph, Node, Output, graph_from
from pullback.instruments.inspect.graph_of_tape import record
from pullback.instruments.inspect.saved_values import saved
from pullback.tracing.tracer import Tracer
from pullback.words.specs import ArraySpec

X = np.linspace(0.1, 1.0, 8)


# ----------------------------------------------------------------------------------------------------- what record says


def program(x, w):
    y = np.exp(x) * 2.0
    z = np.zeros_like(x)
    z[1:3] = y[1:3]
    z[0] += w
    np.sum(x[2:])  # nobody reads it
    return {"loss": np.sum(np.concatenate([z, y]) ** 2), "count": 3}


def body(k, u):
    return np.sin(u) * u


def loops(x):
    u = pb.fori_loop(0, 5, body, x * 1.0)
    return np.sum(u)


def test_a_graph_prints_one_line_for_each_operation() -> None:
    n = program.__code__.co_firstlineno
    text = re.sub(r"test_graph.py:(\d+)", lambda found: f"L+{int(found[1]) - n}", str(record(program, X, 2.0)))
    golden = """\
program: 2 inputs, 12 operations, 2 outputs; 192 B saved
%0   input x                                                                  float64[8]
%1   input w                                                                  float64[]
%2   exp(%0)                                                                  float64[8]   saves out 64 B  L+1
%3   multiply(%2, _)                                                          float64[8]                   L+1
%4   getitem(%3) [1:3]                                                        float64[2]                   L+3
%5   set_value(%4) [1:3]                                                      float64[8]                   L+3
%6   getitem(%5) [0]                                                          float64[]                    L+4
%7   add(%6, %1)                                                              float64[]                    L+4
%8   set_both(%5, %7) [0]                                                     float64[8]                   L+4
%9   getitem(%0) [2:]                                                         float64[6]                   L+5
%10  reduce_sum(%9)                                                           ?                            L+5
%11  join_concatenate(%8, %3) axis=0, starts=(0, 8, 16), casting='same_kind'  float64[16]                  L+6
%12  power(%11, _)                                                            float64[16]  saves x 128 B   L+6
%13  reduce_sum(%12)                                                          float64[]                    L+6
returns ['count'] = a constant, ['loss'] = %13"""
    assert text == golden


def test_a_loop_is_one_node_with_its_steps() -> None:
    graph = record(loops, X)
    (loop,) = [node for node in graph if node.steps is not None]
    assert (loop.name, loop.operands, loop.steps.n, loop.steps.state_bytes, loop.steps.tape_bytes) == (
        "fori_loop",
        (1,),
        5,
        64,
        128,
    )
    assert [(slot.name, slot.nbytes, slot.reason) for slot in loop.saved] == [("steps", 5 * 128, "saved")]
    assert "fori_loop(%1)      5 steps of 128 B  saves steps 640 B" in str(graph)


def test_steps_of_another_loop_inside_count_as_the_loops_own() -> None:
    def nested(x):
        return np.sum(pb.fori_loop(0, 4, lambda _, u: pb.fori_loop(0, 3, body, u) * u, x))

    assert record(nested, X).saved_bytes == saved(nested, X).total_bytes == pb.vjp(nested, X)[1].report.live_bytes


def test_the_inside_of_a_checkpoint_is_seen() -> None:
    graph = record(lambda x: np.sum(pb.checkpoint(lambda u: np.sin(np.cos(u)))(x)), X)
    assert [node.name for node in graph] == ["input", "cos", "sin", "reduce_sum"]
    assert [value.spec for value in graph.values] == [ArraySpec((8,), "f8")] * 3 + [ArraySpec((), "f8")]


def test_inputs_bear_the_names_of_parameters_and_paths() -> None:
    graph = record(lambda params, *rest: params["w"] * params["b"][0] + rest[0], {"w": X, "b": [2.0, 3]}, X)
    assert [node.detail for node in graph.inputs] == ["params['b'][0]", "params['w']", "argument 1"]


def test_a_policy_in_force_changes_nothing() -> None:
    plain = record(program, X, 2.0)
    with pb.using(pb.Recompute()):
        assert record(program, X, 2.0) == plain


def test_what_the_function_raises_passes_through() -> None:
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        record(lambda x: x * (1 / 0), X)


def many_shapes(x, w, seen):
    seen += [x.reshape(2, 4), x[::2], x[[0, 3, 3]], x[2], np.sum(x), x.astype(np.float32)]
    seen += [seen[0].T, seen[0].mean(axis=1), np.where(X > 0.5, x, 0.0), np.stack([x, x]), seen[5] * 2, x * (1 + 2j)]
    seen += [
        np.cumsum(seen[0], axis=1),
        np.max(seen[0], axis=0, keepdims=True),
        seen[0] + w,
        seen[-1].real,
        x[:, None] * w,
    ]
    buffer = np.zeros_like(seen[0])
    buffer[0] = x[:4]
    buffer[:, 1] *= 3.0
    carry, ys = pb.scan(lambda c, y: (c * y, np.sin(c)[:2] * y), x, w)
    return [np.sum(np.abs(s)) for s in (*seen, buffer, carry, ys)]


def test_every_value_a_result_depends_on_has_its_own_spec() -> None:
    seen: list = []
    graph = record(lambda x, w: many_shapes(x, w, seen), X, np.ones(4))
    assert all(value.spec is not None for value in graph.values if graph.nodes[value.ident].steps is None)
    assert len(seen) == 17
    for handle in seen:
        assert isinstance(handle, Tracer)
        assert graph.values[handle._id].spec == ArraySpec(handle._value.shape, handle._value.dtype)


def test_values_that_nobody_reads_have_specs_where_the_tape_tells_them() -> None:
    def f(x):
        buffer = np.zeros((3, 2), np.float32)
        traced = np.zeros_like(x, shape=(3, 2), dtype=np.float32)
        traced[1] = x[:2]
        x.reshape(4, 2)[1:]
        np.max(x)
        return np.sum(x) + buffer.size

    specs = {node.name: str(value.spec) for node, value in zip(record(f, X).nodes, record(f, X).values, strict=True)}
    assert specs["set_value"] == "float32[3,2]"
    assert (specs["view_reshape"], specs["getitem"]) == ("float64[4,2]", "float64[3,2]")
    assert specs["reduce_max"] == "float64[]"


def test_a_primitive_with_several_outputs_and_a_family() -> None:
    @pb.primitive(outputs=("total", "product"))
    def both(x, y):
        return x + y, x * y

    @both.vjp("x", "y")
    def _(ct, x, y):
        return ct[0] + ct[1] * y, ct[0] + ct[1] * x

    def f(x):
        total, product = both(x, x[::-1])
        return np.sum(total * product)

    graph = record(f, X)
    assert "both(%0, %1)        2 results   saves x 64 B" in str(graph)
    assert [str(value.spec) for value in graph.values[3:6]] == ["float64[8]"] * 3


def test_a_graph_holds_no_array() -> None:
    alive = []

    def f(x):
        y = np.exp(x)
        alive.append(weakref.ref(y._value))
        return np.sum(y * y)

    graph = record(f, X)
    gc.collect()
    assert alive[0]() is None
    assert graph.saved_bytes == 64


# ------------------------------------------------------------------------------------------- questions, on drawn graphs


def build(operands, sizes=None, *, outputs=(), views=(), n_inputs=1):
    nodes = [Node(k, "input" if k < n_inputs else "op", ids, view=k in views) for k, ids in enumerate(operands)]
    sizes = sizes or [1] * len(nodes)
    return graph_from(
        "drawn", nodes, [ArraySpec((n,), "u1") for n in sizes], n_inputs, tuple(Output("", i) for i in outputs)
    )


@st.composite
def drawn_graphs(draw):
    n = draw(st.integers(1, 9))
    operands = [tuple(draw(st.lists(st.integers(0, k - 1), max_size=3))) if k else () for k in range(n)]
    sizes = draw(st.lists(st.integers(0, 100), min_size=n, max_size=n))
    return build(operands, sizes, outputs=draw(st.lists(st.integers(0, n - 1), max_size=2)))


def all_paths(graph: Graph, i: int) -> list[tuple[int, ...]]:
    """Every path that begins at ``i``, spelled out."""
    paths, todo = [], [(i,)]
    while todo:
        path = todo.pop()
        paths.append(path)
        todo += [(*path, k) for k in graph.values[path[-1]].readers]
    return paths


@given(drawn_graphs())
def test_distance_and_levels_are_longest_paths(graph: Graph) -> None:
    n = len(graph)
    longest = {
        (i, j): max((len(p) - 1 for p in all_paths(graph, i) if p[-1] == j), default=None)
        for i in range(n)
        for j in range(n)
    }
    assert {(i, j): graph.distance(i, j) for i in range(n) for j in range(n)} == longest
    for level, idents in enumerate(graph.levels()):
        assert idents == [j for j in range(n) if max(d for i in range(n) if (d := longest[i, j]) is not None) == level]


@given(drawn_graphs())
def test_live_bytes_are_those_of_the_cut(graph: Graph) -> None:
    for k, live in enumerate(graph.live_bytes()):
        crossing = [v for v in graph.values[: k + 1] if v.is_output or any(reader > k for reader in v.readers)]
        assert graph.cut(k) == tuple(v.ident for v in crossing)
        assert live == sum(v.nbytes for v in crossing)


def test_a_view_keeps_its_base_alive_and_counts_nothing_itself() -> None:
    graph = build([(), (0,), (1,), (2,), (3,)], [8, 100, 10, 4, 2], views={2, 3}, outputs=[4])
    assert [value.storage for value in graph.values] == [0, 1, 1, 1, 4]
    assert graph.live_bytes() == [8, 100, 100, 100, 2]
    assert graph.cut(3) == (1,)


def test_distance_names_the_nodes_there_are() -> None:
    with pytest.raises(IndexError, match=r"the graph of drawn has the nodes 0 to 1, not 2"):
        build([(), (0,)]).distance(0, 2)


def test_thousands_of_nodes_need_no_recursion() -> None:
    n = 20_000
    graph = build([(), *((k, k) for k in range(n - 1))], outputs=[n - 1])
    assert graph.distance(0, n - 1) == n - 1
    assert len(graph.levels()) == n
    assert graph.live_bytes() == [1] * n
    lines = str(graph).splitlines()
    assert len(lines) == 83
    assert lines[41] == "... 19920 more; listing(None) shows all"
    assert all(a < b for a, b in pairwise(int(line.split()[0][1:]) for line in lines[1:-1] if line.startswith("%")))
    assert len(graph.listing(None).splitlines()) == n + 2


def test_a_step_with_a_counter_that_has_no_derivative_is_shown():
    def f(x):
        return np.sum(pb.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * x), (0, 1.0 * x))[1])

    (body,) = (node.body for node in pb.record(f, np.ones(3)) if node.body is not None)
    assert [str(node.text).split("(")[0] for node in body.graph] == ["input state[1]", "captured %0", "multiply"]


def test_of_a_step_of_which_a_policy_keeps_some_values_all_operations_are_shown():
    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda k, u: np.cos(np.sin(u * x)), 1.0 * x, policy=pb.Keep("sin")))

    (body,) = (node.body for node in pb.record(f, np.ones(3)) if node.body is not None)
    assert [node.name for node in body.graph] == ["input", "captured", "multiply", "sin", "cos"]


def test_a_graph_shows_what_enters_a_staged_call():
    @pb.staged
    def step(x, y):
        return np.sin(x) * y + x

    def program(x, y):
        for _ in range(3):
            x = step(x, y)
        return np.sum(x)

    x, y = np.ones(3), np.arange(3.0)
    for _ in range(400):
        pb.grad(program, (0, 1))(x, y)
    nodes = pb.record(program, x, y).nodes
    assert [n.operands for n in nodes if n.name == "staged function"] == [(0, 1), (2, 1), (3, 1)]
