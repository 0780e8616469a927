"""The evaluations by name: of each function what it is given, what it computes, and what it answers.

The programs are those of ``programs/``, as they are. Where their arrays are small, the derivative is that of a staged
function, which pays (docs/staged-functions.md); the one that fills buffers is adopted.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen
from benchmarks.gradbench.programs import ba, det, gmm, hello, ht, kmeans, llsq, lse, lstm, ode, particle, saddle

import pullback as pb

Prepare = Callable[[Any], tuple[Any, ...]]


@frozen
class Task:
    """A function of an evaluation."""

    prepare: Prepare
    """From the input to the arguments."""
    function: Callable[..., Any]
    """What is timed."""
    output: Callable[[Any], Any]
    """From its result to what JSON can hold."""


def listed(x: Any) -> Any:
    """An array as numbers, or as lists of them."""
    return np.asarray(x).tolist()


def arrays(*names: str) -> Prepare:
    """What an input has by these names, as arrays."""
    return lambda given: tuple([np.array(given[name], dtype=float) for name in names])


def pair(primal: str, derivative: str, prepare: Prepare, f: Any, g: Any, outputs: Any = (listed, listed)) -> Any:
    """The two functions that most evaluations have: the program, and its derivative."""
    return {primal: Task(prepare, f, outputs[0]), derivative: Task(prepare, g, outputs[1])}


def newton_direction(centroids: Any, points: Any) -> Any:
    """The gradient over the diagonal of the Hessian, which has nothing beside the diagonal: its sums of columns."""
    slope, pull = pb.vjp(lambda c: pb.grad(kmeans.cost)(c, points), centroids)
    (curvature,) = pull(np.ones_like(centroids))
    pull.close()
    return slope / curvature


def observations(given: Any) -> tuple[Any, ...]:
    """Cameras, points, weights and features, and which camera saw which point."""
    n, m, p = given["n"], given["m"], given["p"]
    rows = [np.tile(np.array(given[name]), (k, 1)) for name, k in (("cam", n), ("x", m), ("feat", p))]
    return rows[0], rows[1], np.full(p, given["w"]), rows[2], np.arange(p) % n, np.arange(p) % m


def bundle_errors(cameras: Any, points: Any, weights: Any, features: Any, camera: Any, point: Any) -> Any:
    """Both kinds of errors."""
    return ba.errors(cameras[camera], points[point], weights, features)


def bundle_jacobian(cameras: Any, points: Any, weights: Any, features: Any, camera: Any, point: Any) -> Any:
    """The sparse Jacobian by compressed rows: where rows begin, columns, values.

    An observation depends on its own camera, point and weight alone: two sweeps give 15 derivatives of each error.
    """
    operands = cameras[camera], points[point], weights
    (errors, _), pull = pb.vjp(lambda *xs: ba.errors(*xs, features), *operands)
    n, m, p = len(cameras), len(points), len(weights)
    seeds = np.zeros((2, *errors.shape))
    seeds[0, :, 0] = seeds[1, :, 1] = 1.0
    blocks = np.stack([np.column_stack(pull((seed, None))) for seed in seeds], axis=1)
    of_weights = pull((None, np.ones(p)))[2]
    pull.close()
    own = 11 * n + 3 * m + np.arange(p)
    columns = np.column_stack([
        11 * camera[:, None] + np.arange(11),
        11 * n + 3 * point[:, None] + np.arange(3),
        own,
    ])  # fmt: skip
    starts = np.concatenate([15 * np.arange(2 * p), 30 * p + np.arange(p + 1)])
    return (
        starts,
        np.concatenate([np.repeat(columns, 2, axis=0).ravel(), own]),
        np.concatenate([blocks.ravel(), of_weights]),
    )


def first_and_last(jacobian: Any) -> Any:
    """What is asked of the sparse Jacobian: the first 30 entries and the last."""
    return {
        name: listed(np.append(part[:30], part[-1]))
        for name, part in zip(("rows", "cols", "vals"), jacobian, strict=True)
    }


def first_errors(errors: Any) -> Any:
    """One observation's errors, and how many there are."""
    reprojection, of_weights = errors
    return {
        "reproj_error": {"elements": listed(reprojection[0]), "repeated": len(reprojection)},
        "w_err": {"element": float(of_weights[0]), "repeated": len(of_weights)},
    }


def hand(given: Any) -> tuple[Any, ...]:
    """Angles, places in triangles or None, the model, points, and to what each of them belongs."""
    data, model = given["data"], given["data"]["model"]
    whole, real = ("parents", "triangles"), ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")
    made = {name: np.array(model[name], dtype=int) for name in whole}
    made |= {name: np.array(model[name]) for name in real} | {"is_mirrored": model["is_mirrored"]}
    us = np.array(given["us"]).reshape(-1, 2) if len(given["us"]) else None
    return np.array(given["theta"]), us, made, np.array(data["points"]), np.array(data["correspondences"], dtype=int)


def hand_jacobian(theta: Any, us: Any, model: Any, points: Any, correspondences: Any) -> Any:
    """A column for each parameter, in forward mode; before them one for all u together, and one for all v, since an
    error has one of them."""
    adopted, fixed = traced_hand, (model, points, correspondences)
    units = np.eye(len(theta))
    if us is None:
        columns = pb.linearize(lambda t: adopted(t, None, *fixed), theta)[1]([(unit,) for unit in units])
    else:
        ones = [np.broadcast_to(unit, us.shape) for unit in np.eye(2)]
        directions = [*((None, one) for one in ones), *((unit, None) for unit in units)]
        columns = pb.linearize(lambda t, u: adopted(t, u, *fixed), theta, us)[1](directions)
    return np.stack([column.ravel() for column in columns], axis=1)


def flat(x: Any) -> Any:
    """All numbers in a row."""
    return listed(np.ravel(x))


def named_gradient(found: Any) -> Any:
    """The gradient of the mixture by the names of its parameters."""
    return {name: listed(part) for name, part in zip(MIXTURE, found, strict=True)}


def mixture(given: Any) -> tuple[Any, ...]:
    """The parameters, and the rest."""
    return *arrays(*MIXTURE, "x")(given), given["m"], given["gamma"]


def nested(prepare: Prepare, function: Callable[..., Any]) -> dict[str, Task]:
    """The four ways to choose the modes of two derivatives."""
    return {
        modes: Task(prepare, lambda start, modes=modes: function(start, modes), listed)
        for modes in ("ff", "fr", "rf", "rr")
    }


MIXTURE = ("alpha", "mu", "q", "l")
traced_hand = pb.adopt(ht.objective)

EVALUATIONS: dict[str, dict[str, Task]] = {
    "hello": pair("square", "double", lambda x: (float(x),), hello.square, pb.grad(hello.square)),
    "lse": pair("primal", "gradient", arrays("x"), lse.logsumexp, pb.grad(pb.staged(lse.logsumexp))),
    "llsq": pair(
        "primal", "gradient", lambda given: (*arrays("x")(given), given["n"]),
        llsq.objective, pb.grad(pb.staged(llsq.objective)),
    ),
    "ode": pair(
        "primal", "gradient", lambda given: (*arrays("x")(given), given["s"]),
        ode.solve, pb.grad(pb.staged(ode.last)),
    ),
    "kmeans": pair("cost", "dir", arrays("centroids", "points"), kmeans.cost, newton_direction),
    "det": pair(
        "primal", "gradient", lambda given: (np.array(given["A"]).reshape(given["ell"], given["ell"]),),
        det.determinant, pb.grad(det.determinant), (listed, flat),
    ),
    "gmm": pair(
        "objective", "jacobian", mixture,
        gmm.objective, pb.grad(pb.staged(gmm.objective), argnums=(0, 1, 2, 3)), (listed, named_gradient),
    ),
    "lstm": pair(
        "objective", "jacobian", arrays("main_params", "extra_params", "state", "sequence"),
        lstm.objective, pb.grad(lstm.objective, argnums=(0, 1)),
        (listed, lambda found: [*flat(found[0]), *flat(found[1])]),
    ),
    "ba": pair("objective", "jacobian", observations, bundle_errors, bundle_jacobian, (first_errors, first_and_last)),
    "ht": pair("objective", "jacobian", hand, ht.objective, hand_jacobian, (flat, listed)),
    "saddle": nested(arrays("start"), saddle.saddle),
    "particle": nested(lambda given: (given["w"],), particle.control),
}  # fmt: skip
