"""How far a hand model is from measured points."""

from typing import Any

import numpy as np


def objective(theta: Any, us: Any, model: Any, points: Any, correspondences: Any) -> Any:
    """Points less where the model has them (n, 3). ``theta`` (26,) is a rotation, a translation and four angles for
    each finger. A point belongs to a vertex of the model, or, with ``us`` (n, 2), to a place in a triangle."""
    placed = vertices(theta, model)
    if us is None:
        return points - placed[correspondences]
    a, b, c = placed[model["triangles"][correspondences]].transpose(1, 0, 2)
    u, v = us[:, :1], us[:, 1:]
    return points - (u * a + v * b + (1.0 - u - v) * c)


def vertices(theta: Any, model: Any) -> Any:
    """All vertices (v, 3): each follows its bones by weights."""
    relatives = model["base_relatives"] @ joints(theta[6:], len(model["parents"]))
    absolutes: list[Any] = []
    for relative, parent in zip(relatives, model["parents"], strict=True):
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
    transforms = np.stack(absolutes) @ model["inverse_base_absolutes"]
    moved = transforms[:, :3] @ model["base_positions"].T
    blended = np.sum(moved * model["weights"].T[:, None], axis=0)
    if model["is_mirrored"]:
        blended = blended * np.array([[-1.0], [1.0], [1.0]])
    return (rotation(theta[:3]) @ blended).T + theta[3:6]


def joints(angles: Any, bones: int) -> Any:
    """The rotations (bones, 4, 4) about x, then z. Bone 0 is the wrist; of the four of each finger the first is still,
    the second turns about both axes, the others about x."""
    about_x, about_z = np.zeros(bones), np.zeros(bones)
    for finger in range(5):
        about_x[4 * finger + 2 : 4 * finger + 5] = angles[4 * finger + np.array([0, 2, 3])]
        about_z[4 * finger + 2] = angles[4 * finger + 1]
    cx, sx, cz, sz = np.cos(about_x), np.sin(about_x), np.cos(about_z), np.sin(about_z)
    turns = np.zeros((bones, 4, 4))
    turns[:, 0, 0], turns[:, 0, 1], turns[:, 0, 2] = cz, -sz * cx, sz * sx
    turns[:, 1, 0], turns[:, 1, 1], turns[:, 1, 2] = sz, cz * cx, -cz * sx
    turns[:, 2, 1], turns[:, 2, 2], turns[:, 3, 3] = sx, cx, 1.0
    return turns


def rotation(vector: Any) -> Any:
    """About ``vector`` by its length."""
    angle = np.sqrt(np.sum(vector**2))
    if angle < 1e-4:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
