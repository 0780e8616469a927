"""``dependencies``: which inputs and named values reach which outputs, and by how much."""

import numpy as np
import pytest

import pullback as pb
from pullback.words.errors import PullbackError

X = np.array([1.0, 2.0, 3.0, 4.0])
PARAMS = {"w": np.ones(3), "b": 2.0, "n": 3}


def model(params, x, unused):
    y = params["w"] * x[1:]
    return {"fit": np.sum(y**2), "state": np.cumsum(y)[:2], "n": params["n"], "twice": params["b"] * 2}


def test_links_elements_and_norms():
    found = pb.dependencies(model, PARAMS, X, np.ones(2))
    assert len(found) == 4 * 3
    fit = found.of("x", "['fit']")
    assert (fit.reaching, fit.n_source, fit.reached, fit.n_output, fit.entries) == (3, 4, 1, 1, 3)
    assert fit.norm == pytest.approx(np.linalg.norm(2 * X[1:]))
    state = found.of("params['w']", "['state']")
    assert (state.reaching, state.reached, state.entries) == (2, 2, 3)
    assert state.norm == pytest.approx(np.sqrt(2**2 + 2**2 + 3**2))
    assert found.of("params['b']", "['twice']").norm == 2.0
    assert not found.of("unused", "['fit']").is_connected
    assert found.unused == ("unused",)
    assert found.matrix.dtype == bool
    assert found.matrix.toarray().astype(int).tolist() == [
        [0, 1, 1, 1, 0, 1, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 1, 0, 0, 0, 0],
        [0, 1, 1, 0, 0, 1, 1, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ]


def test_it_prints_as_a_table():
    text = str(pb.dependencies(model, PARAMS, X, np.ones(2)))
    lines = text.splitlines()
    assert lines[0] == "what reaches the result of model"
    assert lines[5].split() == ["params['b']", "['twice']", "1", "of", "1", "1", "of", "1", "1", "2"]
    assert lines[8].split()[:2] == ["x", "['fit']"]
    assert lines[-1] == "unused reaches no output"
    assert not any(line.startswith("unused  ") for line in lines)
    assert repr(pb.dependencies(np.sin, X)) == "<Dependencies of sin: 1 links, 4 entries>"


def test_without_norms_nothing_is_differentiated(monkeypatch):
    def fails(*args, **kwargs):
        raise AssertionError

    monkeypatch.setattr("pullback.instruments.inspect.dependency_table.sparse_jacobian", fails)
    found = pb.dependencies(model, PARAMS, X, X, norms=False)
    assert all(link.norm is None for link in found)
    assert "norm" not in str(found)


def test_a_bare_result_and_a_signature_that_tells_nothing():
    found = pb.dependencies(lambda *xs: xs[0][0] * xs[1][1], X, X)
    assert [(link.source, link.output, link.reaching) for link in found] == [
        ("argument 0", "", 1),
        ("argument 1", "", 1),
    ]
    assert "result" in str(found)


def test_what_is_taken_to_be_all_on_all_is_said():
    found = pb.dependencies(lambda x: np.linalg.inv(x.reshape(2, 2)), X)
    ((name, line),) = found.coarse
    assert name == "inverse"
    assert f"inverse at {line}: every element of its result" in str(found)
    assert found.of("x").entries == 16


def test_complex_programs_have_a_pattern_and_no_norms():
    found = pb.dependencies(lambda z: np.abs(z[:2]), X + 1j)
    assert found.of("z").entries == 2
    assert found.of("z").norm is None


def test_an_unknown_pair_is_refused_with_the_pairs_there_are():
    with pytest.raises(
        PullbackError, match=r"model has no link from 'y' to 'fit'; there are \(\"params\['b'\]\", \"\['fit'\]\"\)"
    ):
        pb.dependencies(model, PARAMS, X, X).of("y", "fit")


def test_named_values_are_sources_of_their_own():
    def f(x):
        u = pb.name(x[:2] * 3.0, "u")
        v = pb.name(np.sum(u) * np.ones(3), "v")
        return np.stack([v[0] ** 2, u[1] * 2.0])

    found = pb.dependencies(f, X)
    u, v, x = found.of("u"), found.of("v"), found.of("x")
    assert (u.n_source, u.reaching, u.reached, u.entries) == (2, 2, 2, 3)
    assert (v.n_source, v.reaching, v.reached, v.entries) == (3, 1, 1, 1)
    assert x.entries == 3
    total = 9.0
    assert v.norm == pytest.approx(2 * total)
    assert u.norm == pytest.approx(np.sqrt((2 * total) ** 2 * 2 + 2.0**2))
    assert x.norm == pytest.approx(3 * u.norm)
    assert found.matrix.shape == (2, 4)
    assert "u  " in str(found)


def test_a_value_named_in_every_step_is_one_source():
    def f(x):
        def body(k, u):
            return pb.name(u * 2.0, "u")

        return pb.fori_loop(0, 3, body, x)[:1]

    found = pb.dependencies(f, X)
    u = found.of("u")
    assert (u.n_source, u.reaching, u.entries) == (12, 3, 3)
    assert u.norm == pytest.approx(np.sqrt(1 + 4 + 16))
    assert found.of("x").norm == pytest.approx(8.0)
