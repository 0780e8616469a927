"""The norms of cotangents in the steps of loop functions: those of the same loop written in Python."""

import json

import numpy as np
import pytest

import pullback as pb

X = np.linspace(0.1, 1.0, 8)
POLICIES = pb.Binomial(2), pb.Recompute(), pb.Keep("multiply")


def body_of(graph):
    (loop,) = (node for node in graph if node.body is not None)
    return loop.body


def sizes(graph, name):
    """The norms over the steps of the operations of one name in the body of the only loop."""
    body = body_of(graph)
    return [by_step for node, by_step in zip(body.graph, body.by_step, strict=True) if node.name == name]


def step(x, k, u):
    return u + 0.1 * np.sin(x * u) * (k + 1)


def by_hand(n=6, lower=0):
    """The norms of the sines' cotangents, of a loop of Python's."""

    def f(x):
        u = x
        for k in range(lower, lower + n):
            u = step(x, k, u)
        return np.sum(u * u)

    graph = pb.record(f, X, cotangents=True)
    return [size for node, size in zip(graph, graph.adjoints, strict=True) if node.name == "sin"]


def fori(x, **options):
    return np.sum(pb.fori_loop(0, 6, lambda k, u: step(x, k, u), x, **options) ** 2)


def by_scan(x):
    return np.sum(pb.scan(lambda u, k: (step(x, k, u), None), x, np.arange(6))[0] ** 2)


def by_while(x):
    return np.sum(pb.while_loop(lambda s: s[0] < 6, lambda s: (s[0] + 1, step(x, s[0], s[1])), (0, 1.0 * x))[1] ** 2)


@pytest.mark.parametrize(
    "f",
    [fori, by_scan, by_while, *(lambda x, p=p: fori(x, policy=p) for p in POLICIES)],
)
@pytest.mark.parametrize("staging", ["off", "numpy"])
def test_of_every_loop_function_and_policy_the_norms_are_those_of_a_loop_in_python(f, staging):
    with pb.using(staging=staging):
        graph = pb.record(f, X, cotangents=True)
    assert body_of(graph).steps == tuple(range(6))
    (found,) = sizes(graph, "sin")
    assert found == pytest.approx(by_hand(), rel=1e-14)
    assert body_of(graph).graph.adjoints[0] == max(body_of(graph).by_step[0])


def test_steps_have_the_numbers_of_the_program():
    def f(x):
        return np.sum(pb.fori_loop(3, 9, lambda k, u: step(x, k, u), x) ** 2)

    graph = pb.record(f, X, cotangents=True)
    assert body_of(graph).steps == tuple(range(3, 9))
    assert sizes(graph, "sin")[0] == pytest.approx(by_hand(6, 3), rel=1e-14)
    drawing = graph.draw()
    first, last = by_hand(6, 3)[0], by_hand(6, 3)[-1]
    assert f"|ct| {first:.3g} at step 3, {last:.3g} at step 8" in drawing.text
    assert f"|ct| {first:.3g} at step 3" in drawing.svg
    assert f"at step 3, {last:.3g} at step 8" in drawing.mermaid
    assert "at step 3" in drawing.dot
    assert "|ct|" not in graph.draw(cotangents=False).text
    shares = drawing.svg.count('class="influence"')
    assert shares == len(drawing.picture.boxes)


def test_the_state_that_is_not_returned_influences_nothing():
    def f(x):
        return np.sum(pb.fori_loop(0, 4, lambda k, s: (s[0] * x, np.cos(s[1])), (x, x))[0])

    graph = pb.record(f, X, cotangents=True)
    (found,) = sizes(graph, "cos")
    assert found == (None,) * 4
    assert "cos(%1)" in graph.draw().text
    assert "no influence" in next(line for line in graph.draw().text.splitlines() if "cos(%1)" in line)


def test_a_value_that_is_read_until_some_step_says_so():
    def f(x):
        def body(k, s):
            u, first = s
            return u * x, np.where(k < 2, first + u, first)

        return np.sum(pb.fori_loop(0, 5, body, (x, np.zeros_like(x)))[1])

    graph = pb.record(f, X, cotangents=True)
    assert sizes(graph, "add")[0] == pytest.approx([np.sqrt(8.0)] * 2 + [0.0] * 3)
    line = next(line for line in graph.draw().text.splitlines() if " add(" in line)
    assert "|ct| 2.83 at step 0, 0 at step 4" in line


def test_nested_loops_tell_both_numbers():
    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda k, u: pb.fori_loop(0, 2, lambda j, v: np.sin(v * x), u), x))

    graph = pb.record(f, X, cotangents=True)
    (inner,) = (node.body for node in body_of(graph).graph if node.body is not None)
    assert inner.steps == tuple((k, j) for k in range(3) for j in range(2))
    at = [node.name for node in inner.graph].index("sin")

    def flat(x):
        u = x
        for _ in range(6):
            u = np.sin(u * x)
        return np.sum(u)

    plain = pb.record(flat, X, cotangents=True)
    expected = [size for node, size in zip(plain, plain.adjoints, strict=True) if node.name == "sin"]
    assert inner.by_step[at] == pytest.approx(expected, rel=1e-14)


def test_steps_that_do_something_else_are_told_as_far_as_they_do_the_same():
    def f(x):
        def body(k, u):
            if k == 2:
                return np.tanh(u) * x
            return np.sin(u) * x

        return np.sum(pb.fori_loop(0, 5, body, x))

    graph = pb.record(f, X, cotangents=True)
    assert body_of(graph).n_others == 1
    (found,) = sizes(graph, "sin")
    assert [size is None for size in found] == [False, False, True, False, False]
    text = graph.draw().text
    assert "; of 1 other the operations in common ---" in text
    assert ", none at 1 step" in text


def test_a_checkpoint_in_a_step_is_looked_into():
    inner = pb.checkpoint(lambda x, u: np.sin(x * u))

    def f(x):
        return np.sum(pb.fori_loop(0, 6, lambda k, u: u + 0.1 * inner(x, u) * (k + 1), x) ** 2)

    assert sizes(pb.record(f, X, cotangents=True), "sin")[0] == pytest.approx(by_hand(), rel=1e-14)


def test_everything_is_in_the_dictionary():
    graph = pb.record(fori, X, cotangents=True)
    found = json.loads(json.dumps(graph.to_dict()))
    (loop,) = (node for node in found["nodes"] if node["body"] is not None)
    body = loop["body"]
    assert body["steps"] == list(range(6))
    assert body["n_other_steps"] == 0
    (sine,) = (node for node in body["nodes"] if node["name"] == "sin")
    assert sine["cotangent_norm_by_step"] == pytest.approx(by_hand(), rel=1e-14)
    assert sine["cotangent_norm"] == max(sine["cotangent_norm_by_step"])
    assert "cotangent_norm_by_step" not in json.dumps(pb.record(fori, X).to_dict())


def test_the_steps_of_a_loop_in_python_that_are_drawn_as_one_tell_their_norms():
    def f(x):
        u = x
        for k in pb.steps(30):
            u = step(x, k, u)
        return np.sum(u * u)

    graph = pb.record(f, X, cotangents=True)
    line = next(line for line in graph.draw().text.splitlines() if " sin(" in line)
    found = by_hand(30)
    assert f"|ct| {found[0]:.3g} at step 0" in line
    assert f"{found[-1]:.3g} at step 29" in line


def test_a_trap_in_force_still_traps():
    def f(x):
        return np.sum(pb.fori_loop(0, 3, lambda k, u: np.sqrt(u * x), x))

    with pb.trap("nan", "inf"), pytest.raises(pb.NonFiniteError, match="reverse: the pull of sqrt"):
        pb.record(f, np.zeros(2), cotangents=True)
    assert pb.record(f, X, cotangents=True).adjoints[0] > 0
