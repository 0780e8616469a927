"""The residuals of a bundle adjustment and their sparse Jacobian (ADBench's BA).

A camera is (rotation as an angle times its axis (3), centre (3), focal length, principal point (2), radial distortion
(2)). For every observation

    w (f d(q) q + c - feature)    with  q = (X_1 / X_3, X_2 / X_3),  X = R (point - centre),
                                     d(q) = 1 + k_1 |q|^2 + k_2 |q|^4

are two residuals, and 1 - w^2 is a third. An observation depends on 11 + 3 + 1 unknowns of its own camera, point and
weight, whatever their number: gathered by observation, all residuals have the same 15 columns, and the Jacobian is two
rows of 15 for each observation. Two reverse passes give it, each with the same component of all observations as its
seed.
"""

from typing import Any

import numpy as np

import pullback as pb


def project(cameras: Any, points: Any) -> Any:
    """Where each camera sees its point: (p, 2), for ``cameras`` (p, 11) and ``points`` (p, 3)."""
    seen = rotate(cameras[:, :3], points - cameras[:, 3:6])
    flat = seen[:, :2] / seen[:, 2:]
    square = np.sum(flat * flat, axis=1)
    distortion = 1.0 + square * (cameras[:, 9] + square * cameras[:, 10])
    return (cameras[:, 6] * distortion)[:, None] * flat + cameras[:, 7:9]


def rotate(rotations: Any, points: Any) -> Any:
    """The points (p, 3) turned about the axes ``rotations`` (p, 3) by the angles that are their lengths (Rodrigues'
    formula).

    At a length of 0 it is the linear part, x + r x x, whose derivative is the right one there.
    """
    square = np.sum(rotations * rotations, axis=1, keepdims=True)
    still = pb.value(square) == 0.0
    angle = np.sqrt(np.where(still, 1.0, square))
    axis = rotations / angle
    cosine = np.where(still, 1.0, np.cos(angle))
    sine = np.where(still, 1.0, np.sin(angle))
    along = np.sum(axis * points, axis=1, keepdims=True)
    return points * cosine + cross(axis, points) * sine + axis * (along * (1.0 - cosine))


def cross(a: Any, b: Any) -> Any:
    """The cross products of the rows."""
    forward, backward = [1, 2, 0], [2, 0, 1]
    return a[:, forward] * b[:, backward] - a[:, backward] * b[:, forward]


def residuals(cameras: Any, points: Any, weights: Any, features: Any) -> tuple[Any, Any]:
    """The reprojection errors (p, 2) and the weight errors (p,), for operands gathered by observation."""
    return weights[:, None] * (project(cameras, points) - features), 1.0 - weights * weights


def gathered(bundle: Any) -> tuple[Any, Any, Any, Any]:
    """Camera, point, weight and feature of each observation."""
    return bundle.cameras[bundle.observed[:, 0]], bundle.points[bundle.observed[:, 1]], bundle.weights, bundle.features


def objective(bundle: Any) -> tuple[Any, Any]:
    """The residuals: (p, 2) and (p,)."""
    return residuals(*gathered(bundle))


def value_and_jacobian(bundle: Any) -> tuple[tuple[Any, Any], Any, Any]:
    """The residuals, the derivatives (p, 2, 15) of the first by camera, point and weight, and (p,) of the second by
    the weight."""
    cameras, points, weights, features = gathered(bundle)
    errors, pull = pb.vjp(lambda c, x, w: residuals(c, x, w, features), cameras, points, weights)
    blocks = np.empty((weights.size, 2, 15))
    for row in range(2):
        seed = np.zeros_like(errors[0])
        seed[:, row] = 1.0
        of_camera, of_point, of_weight = pull((seed, None))
        blocks[:, row] = np.concatenate([of_camera, of_point, of_weight[:, None]], axis=1)
    of_weights = pull((None, np.ones_like(errors[1])))[2]
    pull.close()
    return errors, blocks, of_weights


def compressed_rows(bundle: Any, blocks: Any, of_weights: Any) -> tuple[Any, Any, Any, tuple[int, int]]:
    """``(data, indices, indptr, shape)`` of the whole Jacobian in compressed rows, as ``scipy.sparse.csr_array`` takes
    them.

    Rows: both errors of each observation, then the weight errors. Columns: cameras, points, weights. These are
    ADBench's.
    """
    n, m, p = len(bundle.cameras), len(bundle.points), bundle.weights.size
    columns = np.concatenate([
        11 * bundle.observed[:, :1] + np.arange(11),
        11 * n + 3 * bundle.observed[:, 1:] + np.arange(3),
        11 * n + 3 * m + np.arange(p)[:, None],
    ], axis=1)  # fmt: skip
    data = np.concatenate([blocks.ravel(), of_weights])
    indices = np.concatenate([np.repeat(columns, 2, axis=0).ravel(), columns[:, -1]])
    indptr = np.concatenate([15 * np.arange(2 * p), 30 * p + np.arange(p + 1)])
    return data, indices, indptr, (3 * p, 11 * n + 3 * m + p)
