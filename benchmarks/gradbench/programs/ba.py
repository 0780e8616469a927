"""The errors of a bundle adjustment: where cameras see points, less where they were seen, times a weight.

A camera (11,) is a rotation as an angle times its axis (3), a centre (3), a focal length, a principal point (2) and a
radial distortion (2).
"""

from typing import Any

import numpy as np


def errors(cameras: Any, points: Any, weights: Any, features: Any) -> tuple[Any, Any]:
    """The reprojection errors (p, 2) and the errors of the weights (p,); a row of each operand is an observation."""
    seen = rotate(cameras[:, :3], points - cameras[:, 3:6])
    flat = seen[:, :2] / seen[:, 2:]
    square = np.sum(flat**2, axis=1, keepdims=True)
    distortion = 1.0 + cameras[:, 9:10] * square + cameras[:, 10:] * square**2
    projected = flat * distortion * cameras[:, 6:7] + cameras[:, 7:9]
    return weights[:, None] * (projected - features), 1.0 - weights**2


def rotate(rotations: Any, points: Any) -> Any:
    """Rodrigues' formula; where the angle is 0, its linear part."""
    square = np.sum(rotations**2, axis=1, keepdims=True)
    turned = square > 0.0
    angle = np.sqrt(np.where(turned, square, 1.0))
    axis = rotations / angle
    cosine = np.where(turned, np.cos(angle), 1.0)
    sine = np.where(turned, np.sin(angle), 1.0)
    along = np.sum(axis * points, axis=1, keepdims=True)
    return points * cosine + np.cross(axis, points) * sine + axis * (along * (1.0 - cosine))
