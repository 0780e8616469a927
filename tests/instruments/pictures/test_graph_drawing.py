"""``graph.draw()``: the same picture as text, SVG, Mermaid and DOT; how large graphs are folded; the cotangents."""

import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import pullback as pb
from pullback.instruments.inspect.graph import Node, graph_from
from pullback.instruments.pictures.folded_graph import MOST, function_at, steps_of
from pullback.instruments.pictures.graph_layout import laid_out
from pullback.instruments.pictures.repeated_stretches import repeated_stretches

X = np.linspace(0.1, 1.0, 8)
SVG = "{http://www.w3.org/2000/svg}"


def small(x):
    return np.sum(np.exp(x) * x)


def stepping(x, n):
    u = np.zeros_like(x)
    for _ in range(n):
        v = np.sin(x * u)
        u = u + v
    return np.sum(u)


def squares(x):
    return x * x


def cubes(x):
    return x * x * x


def of_functions(x):
    for k in range(40):
        x = squares(x) if k * k % 7 > 3 else cubes(x)
    return np.sum(x)


def parsed(svg):
    return ET.fromstring(svg)  # noqa: S314  our own


def line_of(f):
    return f.__code__.co_firstlineno + 1


# ------------------------------------------------------------------------------------------------------------ languages


def test_dot():
    n = line_of(small)
    assert pb.record(small, X).draw().dot == (
        'digraph "small: 1 input, 3 operations, 1 output; 128 B saved" {\n  rankdir=TB;\n'
        '  n0 [label="input x\\n%0 float64[8]", shape=ellipse];\n'
        f'  n1 [label="exp\\n%1 float64[8]\\nsaves 64 B\\ntest_graph_drawing.py:{n}", shape=box, penwidth=2.4];\n'
        f'  n2 [label="multiply\\n%2 float64[8]\\nsaves 64 B\\ntest_graph_drawing.py:{n}", shape=box, penwidth=2.4];\n'
        f'  n3 [label="reduce_sum\\n%3 float64[]\\ntest_graph_drawing.py:{n}", shape=box, peripheries=2];\n'
        "  n0 -> n1;\n  n0 -> n2;\n  n1 -> n2;\n  n2 -> n3;\n}"
    )


def test_mermaid():
    lines = pb.record(small, X).draw().mermaid.splitlines()
    assert lines[:3] == [
        "flowchart TB",
        "  %% small: 1 input, 3 operations, 1 output; 128 B saved",
        '    n0(["input x<br>#37;0 float64[8]"])',
    ]
    assert lines[-6:] == ["  n0 --> n1", "  n0 --> n2", "  n1 --> n2", "  n2 --> n3",
                          "  style n1 stroke-width:3px", "  style n2 stroke-width:3px"]  # fmt: skip


def test_labels_are_quoted():
    drawing = graph_from('a "b"', [Node(0, "input", detail="p['k\"<']")], [None], 1, ()).draw()
    assert drawing.dot.startswith('digraph "a \\"b\\": 1 input')
    assert "p['k\\\"<']" in drawing.dot
    assert "p['k&quot;&lt;']" in drawing.mermaid
    assert "p['k\"<']" in "".join(each.text or "" for each in parsed(drawing.svg).iter(f"{SVG}text"))


def test_svg_has_a_box_for_each_node_and_none_on_another():
    drawing = pb.record(stepping, X, 10).draw()
    root = parsed(drawing.svg)
    boxes = [
        [float(each.get(name)) for name in ("x", "y", "width", "height")]
        for each in root.iter(f"{SVG}rect")
        if each.get("class", "").startswith("box ")
    ]
    assert len(boxes) == len(drawing.picture.boxes) == len(pb.record(stepping, X, 10))
    for k, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        for other_x, other_y, other_width, other_height in boxes[:k]:
            apart = x >= other_x + other_width or other_x >= x + width
            assert apart or y >= other_y + other_height or other_y >= y + height
    ways = [each for each in root.iter(f"{SVG}path") if each.get("class") == "way"]
    assert len(ways) == len(drawing.picture.arrows)
    assert drawing._repr_svg_() == drawing.svg


def test_what_is_read_stands_above():
    picture = pb.record(small, X).draw().picture
    layout = laid_out({box.key: (80.0, 40.0) for box in picture.boxes}, picture.arrows)
    assert all(layout.places[arrow.source][1] < layout.places[arrow.target][1] for arrow in picture.arrows)


def test_parts_that_do_not_hang_together_stand_side_by_side():
    graph = graph_from("two", [Node(0, "input"), Node(1, "input"), Node(2, "sin", (0,))], [None] * 3, 2, ())
    picture = graph.draw().picture
    layout = laid_out({box.key: (80.0, 40.0) for box in picture.boxes}, picture.arrows)
    assert abs(layout.places[0][0] - layout.places[1][0]) >= 80.0
    assert len(layout.places) == 3


def test_without_the_layout_library_all_but_the_svg_is_there(monkeypatch):
    drawing = pb.record(small, X).draw()
    monkeypatch.setitem(sys.modules, "grandalf.graphs", None)
    with pytest.raises(pb.PullbackError, match=r"grandalf, and grandalf is missing: install pullback\[plot\]"):
        _ = drawing.svg
    assert drawing._repr_svg_() is None
    assert drawing.dot
    assert drawing.mermaid
    assert str(drawing) == drawing.text


def test_it_is_saved_in_the_form_of_its_name(tmp_path):
    drawing = pb.record(small, X).draw()
    for name, text in (
        ("g.svg", drawing.svg),
        ("g.mmd", drawing.mermaid),
        ("g.dot", drawing.dot),
        ("g.txt", str(drawing)),
    ):
        assert drawing.save(tmp_path / name).read_text() == text
    with pytest.raises(pb.InputFileError, match=r"g\.png is not known; name a file that ends in one of \.svg, \.mmd"):
        drawing.save(tmp_path / "g.png")
    with pytest.raises(
        pb.InputFileError, match=r"cannot be written to .*no.g\.dot.*name a file in a folder that exists"
    ):
        drawing.save(tmp_path / "no" / "g.dot")


# -------------------------------------------------------------------------------------------------------------- folding


def test_steps_fold_onto_one_which_says_what_they_save():
    graph = pb.record(stepping, X, 100)
    drawing = graph.draw()
    assert len(graph) > MOST > len(drawing.picture.boxes)
    assert "folded: of" in drawing.text
    (text,) = drawing.picture.steps
    assert re.match(r"100 steps of 3 operations, 12.6 KiB saved in all; at a cut at most 128 B live", text)
    n = line_of(stepping) + 2
    folded = [box for box in drawing.picture.boxes if box.step == 0]
    assert sorted(box.lines[-1] for box in folded) == sorted(f"test_graph_drawing.py:{k}" for k in (n, n, n + 1))
    assert any(arrow.carried for arrow in drawing.picture.arrows)
    assert sum(box.saved_bytes for box in drawing.picture.boxes) == graph.saved_bytes
    assert "stroke-dasharray" in drawing.svg
    assert "-.->" in drawing.mermaid
    assert "style=dashed" in drawing.dot
    assert " of the step before" in drawing.text


def test_a_graph_without_steps_folds_onto_the_functions_of_the_source():
    graph = pb.record(of_functions, X)
    picture = graph.draw(fold="functions").picture
    assert [box.title for box in picture.boxes] == [
        "input x",
        "cubes in test_graph_drawing.py",
        "squares in test_graph_drawing.py",
        "reduce_sum",
    ]
    assert sum(box.saved_bytes for box in picture.boxes) == graph.saved_bytes
    assert picture.notes == (f"folded: of {len(graph)} nodes, the operations of a function are drawn as one",)
    assert parsed(graph.draw(fold="functions").svg) is not None


def test_it_folds_as_it_is_asked_to():
    graph = pb.record(stepping, X, 5)
    assert len(graph.draw().picture.boxes) == len(graph.draw(fold="off").picture.boxes) == len(graph)
    assert len(graph.draw(fold="steps").picture.boxes) < len(graph)
    with pytest.raises(pb.PullbackError, match=r"draw\(fold='all'\) takes one of 'auto', 'off', 'steps', 'functions'"):
        graph.draw(fold="all")


def test_too_large_a_graph_says_so():
    n = 700
    nodes = [Node(0, "input"), *(Node(k, f"op{k}", (k - 1,)) for k in range(1, n))]
    graph = graph_from("long", nodes, [None] * n, 1, ())
    unfolded = graph.draw(fold="off")
    with pytest.raises(
        pb.PullbackError, match=r"long: .* has 700 boxes, more than the 600 .*; fold it, draw\(fold='auto'"
    ):
        _ = unfolded.svg
    assert unfolded.dot.count("->") == n - 1
    assert len(graph.draw().picture.boxes) == 2


def test_the_listing_shows_the_cuts_between_steps():
    graph = pb.record(stepping, X, 6)
    lines = str(graph.draw()).splitlines()
    cuts = [line for line in lines if line.startswith("---")]
    (stretch,) = steps_of(graph)
    live = graph.live_bytes()
    assert cuts == [
        f"--- cut before step {k}: {live[stretch.start + k * stretch.period - 1]:,} B live ---"
        for k in range(1, stretch.n_steps)
    ]
    assert [line for line in lines if not line.startswith("---")] == str(graph).splitlines()


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ("abcabcabc", [(0, 3, 3, 0)]),
        ("xabababay", [(1, 2, 3, 1)]),
        ("aaaa", [(0, 1, 4, 0)]),
        ("abab", []),
        ("", []),
        ("aaabcbcbcdddd", [(0, 1, 3, 0), (3, 2, 3, 0), (9, 1, 4, 0)]),
    ],
)
def test_stretches_that_repeat(entries, found):
    assert [tuple(stretch) for stretch in repeated_stretches(entries)] == found


def test_a_loop_function_shows_one_of_its_steps():
    def f(x):
        c = x * x

        def body(k, state):
            u, total = state
            v = u + 0.1 * np.sin(c * u)
            return v, total + np.sum(v)

        return pb.fori_loop(0, 10, body, (x, 0.0))[1]

    graph = pb.record(f, X, cotangents=True)
    drawing, n = graph.draw(), line_of(f)
    (text,) = drawing.picture.steps
    assert text == f"one of 10 steps of fori_loop at test_graph_drawing.py:{n + 7}, at a cut 64 B live"
    listed = drawing.text.split(f"--- {text} ---\n")[1].splitlines()
    assert [line.split()[1] for line in listed] == [
        "input", "input", "captured", "multiply(%2,", "sin(%3)", "multiply(_,", "add(%0,", "reduce_sum(%6)", "add(%1,"
    ]  # fmt: skip
    assert listed[2].startswith(f"%2  captured %1       float64[8]{' ' * 24}test_graph_drawing.py:{n + 4}  |ct| ")
    inside = [box for box in drawing.picture.boxes if box.step == 0]
    assert [box.kind for box in inside[:3]] == ["input", "input", "operation"]
    carried = [(a.source - inside[0].key, a.target - inside[0].key) for a in drawing.picture.arrows if a.carried]
    assert carried == [(6, 0), (8, 1)]
    assert 'class="none"' in drawing.svg  # of the state that is not returned, and of nothing in the body
    assert drawing.svg.count('class="none"') == 1
    assert f'subgraph steps0["{text}"]' in drawing.mermaid


@pytest.mark.parametrize(
    ("f", "labels"),
    [
        (lambda x: np.sum(pb.scan(lambda c, r: (c * r, c + r), x[0], x)[1]), ["state[0]", "xs"]),
        (lambda x: np.sum(pb.while_loop(lambda u: np.sum(pb.value(u)) < 99, lambda u: u * 1.5, x)), ["state[0]"]),
        (lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: pb.fori_loop(0, 2, lambda j, v: v * v, u), x)), ["state[0]"]),
        (lambda x: np.sum(pb.fori_loop(0, 60, lambda k, u: u + 0.1 * np.sin(u), x)), ["state[0]"]),
        (lambda x: pb.fori_loop(0, 3, lambda k, u: (u[1], u[0]), (1.0, x[0]))[0], ["state[0]", "state[1]"]),
    ],
)
def test_every_loop_function_shows_its_state(f, labels):
    (loop,) = (node for node in pb.record(f, X) if node.steps is not None)
    assert [node.detail for node in loop.body.graph.inputs] == labels
    assert all(value.spec is not None for value in loop.body.graph.values[: len(labels)])
    assert pb.record(f, X).draw().svg


@pytest.mark.parametrize("cotangents", [False, True])
def test_a_loop_within_a_loop_shows_one_of_its_steps_too(cotangents):
    def f(x):
        def inner(k, u):
            return np.sin(u) + u

        def outer(k, u):
            return pb.fori_loop(0, 3, inner, 0.5 * u)

        return np.sum(pb.fori_loop(0, 4, outer, x))

    drawing, n = pb.record(f, X, cotangents=cotangents).draw(), line_of(f)
    assert [text.split(", ")[0] for text in drawing.picture.steps] == [
        f"one of 4 steps of fori_loop at test_graph_drawing.py:{n + 6}",
        f"one of 3 steps of fori_loop at test_graph_drawing.py:{n + 4}",
    ]
    listed = drawing.text.split("---\n")[2].splitlines()
    assert [line.split()[1] for line in listed] == ["input", "sin(%0)", "add(%1,"]
    assert all((" at step 0.0, " in line) is cotangents for line in listed)
    (outer,) = (box for box in drawing.picture.boxes if box.kind == "loop" and box.step == 0)
    inside = [box.key for box in drawing.picture.boxes if box.step == 1]
    assert [a.target for a in drawing.picture.arrows if a.source == outer.key and a.target in inside] == inside[:1]
    assert [(a.source, a.target) for a in drawing.picture.arrows if a.carried and a.target in inside] == [
        (inside[-1], inside[0])
    ]


def test_a_large_step_of_a_loop_function_is_left_out_and_says_so():
    def body(k, u):
        for _ in range(35):
            u = np.sin(u) + 1.0
        return u

    graph = pb.record(lambda x: np.sum(pb.fori_loop(0, 4, body, x)), X)
    drawing = graph.draw()
    assert not drawing.picture.is_folded
    assert "has 71 nodes, more than 60; body.graph.draw()" in drawing.text.splitlines()[-1]
    assert "has 71 nodes" in drawing.svg
    assert graph.nodes[1].body.graph.draw().picture.is_folded


def test_the_function_of_a_line_is_the_innermost():
    assert function_at(__file__, line_of(squares)) == "squares in test_graph_drawing.py"
    assert function_at(__file__, 1) == "test_graph_drawing.py"
    assert function_at("no such file", 3) == "no such file"


# ----------------------------------------------------------------------------------------------------------- cotangents


def test_cotangents_tell_how_much_each_value_influences_the_output():
    def f(x):
        y = np.exp(x)
        np.sum(y[:2])  # nobody reads it
        return np.sum(3.0 * y)

    graph = pb.record(f, X, cotangents=True)
    by_name = dict(zip((node.name for node in graph), graph.adjoints, strict=True))
    assert by_name["input"] == pytest.approx(np.linalg.norm(3.0 * np.exp(X)), rel=1e-15)
    assert by_name["exp"] == pytest.approx(3.0 * np.sqrt(8))
    assert by_name["multiply"] == pytest.approx(np.sqrt(8))
    assert by_name["getitem"] is None
    drawing = graph.draw()
    assert "no influence" in drawing.text
    assert f"|ct| {np.sqrt(8):.3g}" in drawing.text
    root = parsed(drawing.svg)
    bars = [each for each in root.iter(f"{SVG}rect") if each.get("class") == "influence"]
    assert len(bars) == sum(size is not None for size in graph.adjoints)
    assert "|ct|" not in graph.draw(cotangents=False).text


def test_cotangents_pass_through_loops_and_several_outputs():
    def f(x):
        u = pb.fori_loop(0, 4, lambda k, u: u * x, x)
        return u, 2.0 * x

    graph = pb.record(f, X, cotangents=True)
    expected = np.linalg.norm(5 * X**4 + 2.0)
    assert graph.adjoints[0] == pytest.approx(expected, rel=1e-14)


def test_a_graph_without_cotangents_says_how_to_have_them():
    with pytest.raises(pb.PullbackError, match=r"record\(f, \*args, cotangents=True\)"):
        pb.record(small, X).draw(cotangents=True)


@pytest.mark.parametrize("policy", [None, pb.Binomial(2)])
def test_cotangents_within_a_checkpoint_are_those_without_it(policy):
    def inner(x):
        return np.sin(x) * x

    def program(inner):
        return lambda x: np.sum(inner(inner(x) + x[::-1]))

    graph = pb.record(program(pb.checkpoint(inner, policy)), X, cotangents=True)
    plain = pb.record(program(inner), X, cotangents=True)
    assert graph.adjoints == plain.adjoints
    assert [node.name for node in graph] == [node.name for node in plain]
    assert policy is not None or graph.saved_bytes < plain.saved_bytes
