"""ADBench's objectives in benchmarks/adbench: on drawn inputs in its text formats, and, where a checkout is named, on
its own.

The first kind compares values with the formulas written out in loops, and derivatives with complex steps. The second
kind needs the environment variable ADBENCH: the path of a checkout of https://github.com/microsoft/ADBench (read at
commit 38cb793), whose data and tests hold the published inputs and values. Neither is part of this repository.
"""

import math
import os
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from benchmarks.adbench import ba, gmm, hand, lstm, reading
from benchmarks.adbench.__main__ import main
from scipy.sparse import csr_array
from scipy.special import multigammaln

import pullback as pb

STEP = 1e-30


def text_of(*parts):
    """Numbers as ADBench writes them: a row per line, all digits."""
    rows = [row for part in parts for row in np.atleast_2d(part)]
    return "\n".join(" ".join(repr(number) for number in row.tolist()) for row in rows) + "\n"


def by_complex_steps(function, x):
    """The derivatives of a real analytic function of an array, last axis: Im f(x + i h e) / h (Squire, Trapp, SIAM
    Review 40, 1998)."""
    columns = []
    for place in range(x.size):
        moved = x.astype(complex)
        moved.reshape(-1)[place] += 1j * STEP
        columns.append(np.imag(function(moved)) / STEP)
    return np.stack(columns, axis=-1)


def close(got, wanted, tolerance=1e-11):
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance * max(1.0, float(np.abs(wanted).max())))


# -------------------------------------------------------------------------------------------------------------- mixture
def drawn_mixture(tmp_path, d=3, k=4, n=6, gamma=1.3, m=2):
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=shape) for shape in ((k, 1), (k, d), (k, d * (d + 1) // 2), (n, d))]
    path = tmp_path / "mixture.txt"
    path.write_text(text_of([d, k, n], *parts, np.array([gamma, m])))
    return path, parts, (gamma, m)


def mixture_by_loops(alphas, means, icf, x, gamma, m):
    (n, d), k = x.shape, alphas.size
    total, prior = 0.0, 0.0
    for point in x:
        terms = []
        for component in range(k):
            factor = np.diag(np.exp(icf[component, :d]))
            place = d
            for column in range(d):
                for row in range(column + 1, d):
                    factor[row, column] = icf[component, place]
                    place += 1
            terms.append(
                alphas[component] + icf[component, :d].sum() - 0.5 * np.sum((factor @ (point - means[component])) ** 2)
            )
        total += np.log(np.sum(np.exp(terms)))
    for row in icf:
        prior += 0.5 * gamma**2 * (np.sum(np.exp(row[:d]) ** 2) + np.sum(row[d:] ** 2)) - m * row[:d].sum()
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2)) - multigammaln(0.5 * freedom, d)
    return -0.5 * n * d * math.log(2 * math.pi) + total - n * np.log(np.sum(np.exp(alphas))) + prior - k * constant


def test_the_mixture_on_a_drawn_input(tmp_path):
    path, (alphas, means, icf, x), prior = drawn_mixture(tmp_path)
    problem = reading.read_mixture(path)
    value, gradient = gmm.value_and_gradient(problem)
    close(value, mixture_by_loops(alphas[:, 0], means, icf, x, *prior))
    params = [alphas[:, 0], means, icf]
    for which, got in enumerate(gradient):

        def of_one(moved, which=which):
            return gmm.objective([moved if k == which else param for k, param in enumerate(params)], x, *prior)

        close(got.reshape(-1), by_complex_steps(of_one, params[which]))


def test_a_replicated_point_stands_for_all(tmp_path):
    path, (alphas, means, icf, x), prior = drawn_mixture(tmp_path)
    path.write_text(text_of([3, 4, 6], alphas, means, icf, x[:1], np.array(prior)))
    problem = reading.read_mixture(path, replicate_point=True)
    np.testing.assert_array_equal(problem.x, np.repeat(x[:1], 6, axis=0))


def test_the_mixture_has_the_same_bits_under_a_policy(tmp_path):
    problem = reading.read_mixture(drawn_mixture(tmp_path)[0])
    _, gradient = gmm.value_and_gradient(problem)
    with pb.using(pb.Recompute()):
        _, under = gmm.value_and_gradient(problem)
    assert all(np.array_equal(a, b) for a, b in zip(gradient, under, strict=True))


# --------------------------------------------------------------------------------------------------------------- bundle
CAMERA = np.array([0.3, -0.2, 0.1, 0.5, -0.4, -6.0, 320.0, 10.0, -20.0, 0.05, -0.01])


def drawn_bundle(tmp_path, n=2, m=3, p=5):
    path = tmp_path / "bundle.txt"
    path.write_text(text_of([n, m, p], CAMERA, [0.7, -0.3, 1.1], [0.8], [25.0, -40.0]))
    return reading.read_bundle(path)


def one_projection(camera, point):
    turn = np.array([[0, -camera[2], camera[1]], [camera[2], 0, -camera[0]], [-camera[1], camera[0], 0]])
    angle = np.linalg.norm(camera[:3])
    rotation = np.eye(3) + np.sin(angle) / angle * turn + (1 - np.cos(angle)) / angle**2 * turn @ turn
    seen = rotation @ (point - camera[3:6])
    flat = seen[:2] / seen[2]
    square = flat @ flat
    return flat * (1 + camera[9] * square + camera[10] * square**2) * camera[6] + camera[7:9]


def test_the_bundle_on_a_drawn_input(tmp_path):
    problem = drawn_bundle(tmp_path)
    np.testing.assert_array_equal(problem.observed, [[0, 0], [1, 1], [0, 2], [1, 0], [0, 1]])
    (errors, weight_errors), _, _ = ba.value_and_jacobian(problem)
    close(errors[3], 0.8 * (one_projection(CAMERA, np.array([0.7, -0.3, 1.1])) - [25.0, -40.0]))
    close(weight_errors, np.full(5, 1 - 0.64))


def test_the_sparse_jacobian_of_the_bundle(tmp_path):
    problem = drawn_bundle(tmp_path)
    n, m, p = 2, 3, 5
    rng = np.random.default_rng(1)
    cameras = problem.cameras + 0.01 * rng.normal(size=(n, 11))
    cameras[1, :3] = 0.3 * rng.normal(size=3)
    problem = reading.Bundle(
        cameras,
        problem.points + rng.normal(size=(m, 3)),
        rng.normal(size=p),
        problem.observed,
        problem.features + rng.normal(size=(p, 2)),
    )
    _, blocks, of_weights = ba.value_and_jacobian(problem)
    data, indices, indptr, shape = ba.compressed_rows(problem, blocks, of_weights)
    assert shape == (3 * p, 11 * n + 3 * m + p)
    assert data.size == indices.size == 31 * p

    def all_residuals(unknowns):
        moved = reading.Bundle(
            unknowns[: 11 * n].reshape(n, 11),
            unknowns[11 * n : 11 * n + 3 * m].reshape(m, 3),
            unknowns[11 * n + 3 * m :],
            problem.observed,
            problem.features,
        )
        return np.concatenate([part.reshape(-1) for part in ba.objective(moved)])

    unknowns = np.concatenate([problem.cameras.ravel(), problem.points.ravel(), problem.weights])
    close(csr_array((data, indices, indptr), shape=shape).toarray(), by_complex_steps(all_residuals, unknowns))
    close(pb.jacobian(all_residuals)(unknowns), by_complex_steps(all_residuals, unknowns))


def test_a_camera_without_rotation_has_the_right_derivative():
    points = np.array([[1.0, 2.0, 3.0]])
    at_rest = pb.jacobian(lambda r: ba.rotate(r, points))(np.zeros((1, 3)))[0, :, 0]
    np.testing.assert_array_equal(at_rest, [[0, 3, -2], [-3, 0, 1], [2, -1, 0]])  # r x (1, 2, 3)
    near = pb.jacobian(lambda r: ba.rotate(r, points))(np.full((1, 3), 1e-9))[0, :, 0]
    np.testing.assert_allclose(near, at_rest, atol=1e-7)


# ----------------------------------------------------------------------------------------------------------------- lstm
def drawn_sequence(tmp_path, layers=2, characters=6, bits=3):
    rng = np.random.default_rng(2)
    parts = [rng.normal(size=shape) for shape in ((2 * layers, 4 * bits), (3, bits), (2 * layers, bits))]
    text = rng.integers(2, size=(characters, bits))
    path = tmp_path / "sequence.txt"
    path.write_text("\n".join([text_of([layers, characters, bits]), *(text_of(part) for part in (*parts, text))]))
    return path, parts, text


def lstm_by_loops(main, extra, state, text):
    b = text.shape[1]
    hidden, cell = [row.astype(main.dtype) for row in state[::2]], [row.astype(main.dtype) for row in state[1::2]]
    total = 0.0
    for now, following in pairwise(text):
        flow = now * extra[0]
        for k in range(len(hidden)):
            forget, into, out, change = main[2 * k].reshape(4, b)
            b_forget, b_into, b_out, b_change = main[2 * k + 1].reshape(4, b)
            kept = cell[k] / (1 + np.exp(-(flow * forget + b_forget)))
            cell[k] = kept + np.tanh(hidden[k] * change + b_change) / (1 + np.exp(-(hidden[k] * into + b_into)))
            hidden[k] = np.tanh(cell[k]) / (1 + np.exp(-(flow * out + b_out)))
            flow = hidden[k]
        scores = flow * extra[1] + extra[2]
        total += np.sum(following * (scores - np.log(np.sum(np.exp(scores)) + 2)))
    return -total / (b * (len(text) - 1))


def test_the_lstm_on_a_drawn_input(tmp_path):
    path, (weights, extra, state), text = drawn_sequence(tmp_path)
    problem = reading.read_sequence(path)
    value, (of_weights, of_extra) = lstm.value_and_gradient(problem)
    close(value, lstm_by_loops(weights, extra, state, text))
    close(
        of_weights.reshape(-1),
        by_complex_steps(lambda moved: lstm_by_loops(moved, extra.astype(complex), state, text), weights),
    )
    close(
        of_extra.reshape(-1),
        by_complex_steps(lambda moved: lstm_by_loops(weights.astype(complex), moved, state, text), extra),
    )


@pytest.mark.parametrize("policy", [pb.Binomial(2), pb.Recompute()])
def test_the_lstm_has_the_same_bits_under_a_policy(tmp_path, policy):
    problem = reading.read_sequence(drawn_sequence(tmp_path)[0])
    plain, under = lstm.value_and_gradient(problem), lstm.value_and_gradient(problem, policy=policy)
    assert plain[0] == under[0]
    assert all(np.array_equal(a, b) for a, b in zip(plain[1], under[1], strict=True))


# ----------------------------------------------------------------------------------------------------------------- hand
N_BONES, N_VERTICES = 22, 7


def write_model(folder):
    """A drawn model in the text format: a wrist, five fingers of four bones, a forearm; seven vertices."""
    rng = np.random.default_rng(3)
    folder.mkdir()
    bones = []
    for bone in range(N_BONES):
        parent = -1 if bone == 0 else 0 if bone % 4 == 1 else bone - 1
        matrices = np.concatenate([
            np.eye(4) + 0.3 * rng.normal(size=(4, 4)) * np.array([[1.0], [1.0], [1.0], [0.0]]) for _ in range(2)
        ])
        bones.append(":".join([f"bone{bone}", str(parent), *(repr(number) for number in matrices.ravel().tolist())]))
    vertices = []
    for vertex in range(N_VERTICES):
        carriers = rng.choice(N_BONES, size=1 + vertex % 3, replace=False)
        pairs = [word for bone in carriers for word in (str(bone), repr(float(rng.random())))]
        vertices.append(
            ":".join([*(repr(number) for number in rng.normal(size=8).tolist()), str(len(carriers)), *pairs])
        )
    (folder / "bones.txt").write_text("\n".join(bones) + "\n")
    (folder / "vertices.txt").write_text("\n".join(vertices) + "\n")
    (folder / "triangles.txt").write_text("0:1:2\n2:3:4\n4:6:5\n")


def drawn_hand(tmp_path, *, complicated):
    rng = np.random.default_rng(4)
    write_model(tmp_path / "model")
    table = np.concatenate([[[1.0], [0.0], [2.0], [1.0]], rng.normal(size=(4, 3))], axis=1)
    us, theta = rng.random((4, 2)), rng.normal(size=(26, 1))
    path = tmp_path / "hand.txt"
    path.write_text(text_of([4, 26], table, *([us] if complicated else []), theta))
    return reading.read_hand(path)


def turned(axis, angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]]) if axis == "x" else np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def vertex_by_loops(theta, model, vertex):
    angles = np.zeros((N_BONES, 2), theta.dtype)
    for finger in range(5):
        four = theta[6 + 4 * finger : 10 + 4 * finger]
        angles[2 + 4 * finger] = four[:2]
        angles[3 + 4 * finger, 0], angles[4 + 4 * finger, 0] = four[2:]
    placed, absolute = np.zeros(3, theta.dtype), []
    for bone in range(N_BONES):
        local = np.eye(4, dtype=theta.dtype)
        local[:3, :3] = turned("z", angles[bone, 1]) @ turned("x", angles[bone, 0])
        local = model.relatives[bone] @ local
        absolute.append(local if model.parents[bone] < 0 else absolute[model.parents[bone]] @ local)
        placed = (
            placed
            + model.weights[vertex, bone]
            * (absolute[bone] @ model.inverse_absolutes[bone] @ model.positions[vertex])[:3]
        )
    angle = np.sqrt(np.sum(theta[:3] ** 2))
    x, y, z = theta[:3] / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross) @ placed + theta[3:6]


def test_the_simple_hand_on_a_drawn_input(tmp_path):
    problem = drawn_hand(tmp_path, complicated=False)
    assert problem.us is None

    def by_loops(theta):
        rows = zip(problem.points, problem.correspondences, strict=True)
        return np.concatenate([point - vertex_by_loops(theta, problem.model, vertex) for point, vertex in rows])

    errors, jacobian = hand.value_and_jacobian(problem)
    close(errors.ravel(), by_loops(problem.theta))
    close(jacobian, by_complex_steps(by_loops, problem.theta))


def test_the_complicated_hand_on_a_drawn_input(tmp_path):
    problem = drawn_hand(tmp_path, complicated=True)

    def by_loops(us, theta):
        found = []
        for point, triangle, (u, v) in zip(problem.points, problem.correspondences, us, strict=True):
            a, b, c = (vertex_by_loops(theta, problem.model, vertex) for vertex in problem.model.triangles[triangle])
            found.append(point - (u * a + v * b + (1 - u - v) * c))
        return np.concatenate(found)

    errors, jacobian = hand.value_and_jacobian(problem)
    close(errors.ravel(), by_loops(problem.us, problem.theta))
    assert jacobian.shape == (12, 28)
    close(jacobian[:, 2:], by_complex_steps(lambda theta: by_loops(problem.us, theta), problem.theta))
    by_us = by_complex_steps(lambda us: by_loops(us, problem.theta), problem.us).reshape(4, 3, 4, 2)
    close(jacobian[:, :2], np.concatenate([by_us[k, :, k] for k in range(4)]))


def test_a_hand_that_is_hardly_turned_is_not_turned(tmp_path):
    problem = drawn_hand(tmp_path, complicated=False)
    theta = np.concatenate([[1e-5, 0.0, 0.0], problem.theta[3:]])
    at_rest = np.concatenate([np.zeros(3), problem.theta[3:]])
    np.testing.assert_array_equal(hand.simple_residuals(theta, problem), hand.simple_residuals(at_rest, problem))


# ---------------------------------------------------------------------------------------------- command line, bad input
def test_the_command_line_prints_value_norm_and_seconds(tmp_path, capsys):
    path, _, _ = drawn_mixture(tmp_path)
    assert main(["gmm", str(path)]) == 0
    value, gradient = gmm.value_and_gradient(reading.read_mixture(path))
    norm = math.sqrt(sum(float(np.sum(part**2)) for part in gradient))
    said = capsys.readouterr().out.splitlines()
    assert float(said[0].removeprefix("value ")) == pytest.approx(value, rel=1e-14)
    assert float(said[1].removeprefix("norm of the derivative ")) == pytest.approx(norm, rel=1e-14)
    assert float(said[2].removeprefix("seconds ")) > 0


@pytest.mark.parametrize("objective", ["ba", "lstm", "hand"])
def test_the_command_line_runs_every_objective(tmp_path, capsys, objective):
    if objective == "ba":
        drawn_bundle(tmp_path)
    elif objective == "lstm":
        drawn_sequence(tmp_path)
    else:
        drawn_hand(tmp_path, complicated=True)
    name = {"ba": "bundle", "lstm": "sequence", "hand": "hand"}[objective]
    assert main([objective, str(tmp_path / f"{name}.txt")]) == 0
    assert re.fullmatch(
        r"value [-0-9.e]+\nnorm of the derivative [0-9.e]+\nseconds [0-9.e-]+\n", capsys.readouterr().out
    )


def test_a_file_of_another_length_is_refused(tmp_path, capsys):
    path, _, _ = drawn_mixture(tmp_path)
    whole = path.read_text()
    path.write_text(whole + "1.0\n")
    with pytest.raises(pb.InputFileError, match=r"mixture.txt holds 64 numbers, its first line asks for 63"):
        reading.read_mixture(path)
    path.write_text(whole[:40])
    assert main(["gmm", str(path)]) == 1
    assert re.search(r"holds \d+ numbers, its first line asks for \d+ or more", capsys.readouterr().err)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2 3 x", "could not convert string to float: .*; ADBench's files hold numbers between blanks"),
        ("2 0 3", r"begins with \[2.0, 0.0, 3.0\], which are no sizes"),
        ("2.5 1 3", r"begins with \[2.5, 1.0, 3.0\], which are no sizes"),
        ("", r"begins with \[\], which are no sizes"),
    ],
)
def test_a_file_that_begins_otherwise_is_refused(tmp_path, text, message):
    path = tmp_path / "odd.txt"
    path.write_text(text)
    with pytest.raises(pb.InputFileError, match=message):
        reading.read_sequence(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(pb.InputFileError, match=r"none.txt cannot be read \(No such file or directory\)"):
        reading.read_bundle(tmp_path / "none.txt")


# ----------------------------------------------------------------------------------------------------- published values
@pytest.fixture
def checkout():
    if "ADBENCH" not in os.environ:
        pytest.skip(
            "ADBENCH names no checkout of microsoft/ADBench, whose inputs and values are not part of this repository"
        )
    return Path(os.environ["ADBENCH"])


def published(checkout, objective, name):
    """The numbers that ADBench's own test of an objective expects of its output ``name``: scalars one by one, or
    lists."""
    text = (checkout / "test" / "cpp" / "modules" / "common" / f"{objective}Tests.cpp").read_text("utf-8")
    lists = re.findall(r"vector<double>\s+" + name + r"\s*\{([^}]*)\}", text)
    scalars = re.findall(r"EXPECT_NEAR\(([-+0-9.e]+),\s*output\." + name, text)
    return [np.array(re.findall(r"[-+0-9.e]+", found), float) for found in lists] or np.array(scalars, float)


def test_the_mixture_has_the_published_values(checkout):
    value, gradient = gmm.value_and_gradient(reading.read_mixture(checkout / "data" / "gmm" / "test.txt"))
    np.testing.assert_allclose(value, published(checkout, "Gmm", "objective")[0], atol=1e-12)
    (expected,) = published(checkout, "Gmm", "expected_gradient")
    np.testing.assert_allclose(np.concatenate([part.ravel() for part in gradient]), expected, atol=1e-12)


def test_the_bundle_has_the_published_values(checkout):
    problem = reading.read_bundle(checkout / "data" / "ba" / "test.txt")
    (errors, weight_errors), blocks, of_weights = ba.value_and_jacobian(problem)
    data, _, indptr, shape = ba.compressed_rows(problem, blocks, of_weights)
    np.testing.assert_allclose(errors, np.tile(published(checkout, "Ba", "reproj_err"), (10, 1)), atol=1e-12)
    np.testing.assert_allclose(weight_errors, np.repeat(published(checkout, "Ba", "w_err"), 10), atol=1e-12)
    (expected,) = published(checkout, "Ba", "expected_J_vals")
    np.testing.assert_allclose(data, expected, rtol=1e-12, atol=1e-11)
    assert (indptr.size, shape) == (31, (30, 62))


def test_the_lstm_has_the_published_values(checkout):
    value, gradient = lstm.value_and_gradient(reading.read_sequence(checkout / "data" / "lstm" / "lstm_l2_c1024.txt"))
    np.testing.assert_allclose(
        value, published(checkout, "Lstm", "objective")[0], atol=5e-9
    )  # it is published to eight digits
    (expected,) = published(checkout, "Lstm", "expectedGradient")
    np.testing.assert_allclose(np.concatenate([part.ravel() for part in gradient]), expected, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize(("which", "name"), [(0, "test.txt"), (1, "hand_complicated.txt")])
def test_the_hand_has_the_published_values(checkout, which, name):
    errors, jacobian = hand.value_and_jacobian(reading.read_hand(checkout / "data" / "hand" / name))
    np.testing.assert_allclose(
        errors.ravel(), published(checkout, "Hand", "objective")[6 * which : 6 * which + 6], atol=1e-14
    )
    np.testing.assert_allclose(jacobian.T.ravel(), published(checkout, "Hand", "expectedJ")[which], atol=1e-14)
