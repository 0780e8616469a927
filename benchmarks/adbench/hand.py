"""The residuals of a hand model fitted to points, and their Jacobian (ADBench's Hand, simple and complicated).

``theta`` is the rotation of the hand (an angle times its axis, 3), its translation (3) and four angles for each of five
fingers. The bones form a tree; each has a matrix that takes it to its parent, times the rotation of its joint. A vertex
follows its bones by weights (linear blend skinning). Simple: a residual is a point minus its vertex. Complicated: minus
a place in its triangle, u v_0 + v v_1 + (1 - u - v) v_2, whose u and v are unknowns of that point alone. The Jacobian
is dense by theta; by (u, v) it is a block of 3 by 2 for each point, and is kept as two columns.
"""

from typing import Any

import numpy as np

import pullback as pb

FINGERS, PARAMETERS = 5, 26
SMALLEST_ANGLE = 1e-4  # below it the published objective takes the rotation for the identity


def joint_angles(theta: Any, n_bones: int) -> Any:
    """The angles about x and about z of every bone: (n_bones, 2).

    Bone 0 is the wrist; each finger has four bones, of which the first does not turn, the second turns about both axes,
    the others about x.
    """
    angles = np.zeros_like(theta, shape=(n_bones, 2))
    of_fingers = theta[6:].reshape(FINGERS, 4)
    second = 2 + 4 * np.arange(FINGERS)
    angles[second, 0] = of_fingers[:, 0]
    angles[second, 1] = of_fingers[:, 1]
    angles[second + 1, 0] = of_fingers[:, 2]
    angles[second + 2, 0] = of_fingers[:, 3]
    return angles


def joint_rotations(angles: Any) -> Any:
    """Rz Rx of each bone as homogeneous matrices: (n_bones, 4, 4)."""
    cx, cz = np.cos(angles).T
    sx, sz = np.sin(angles).T
    out = np.zeros_like(angles, shape=(angles.shape[0], 4, 4))
    out[:, 0, 0], out[:, 0, 1], out[:, 0, 2] = cz, -sz * cx, sz * sx
    out[:, 1, 0], out[:, 1, 1], out[:, 1, 2] = sz, cz * cx, -cz * sx
    out[:, 2, 1], out[:, 2, 2], out[:, 3, 3] = sx, cx, 1.0
    return out


def rotation(vector: Any) -> Any:
    """The matrix (3, 3) of the rotation about ``vector`` by its length: I + sin [n] + (1 - cos) [n]^2 (Rodrigues'
    formula)."""
    angle = np.sqrt(np.sum(vector * vector))
    if pb.value(angle) < SMALLEST_ANGLE:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.zeros_like(vector, shape=(3, 3))
    cross[0, 1], cross[0, 2], cross[1, 2] = -z, y, -x
    cross[1, 0], cross[2, 0], cross[2, 1] = z, -y, x
    return np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)


def vertex_positions(theta: Any, model: Any, vertices: Any) -> Any:
    """Where these vertices (an array of indices) are: (len(vertices), 3)."""
    n_bones = len(model.parents)
    relatives = model.relatives @ joint_rotations(joint_angles(theta, n_bones))
    absolutes: list[Any] = []
    for k, parent in enumerate(model.parents):
        absolutes.append(relatives[k] if parent < 0 else absolutes[parent] @ relatives[k])
    transforms = (np.stack(absolutes) @ model.inverse_absolutes)[:, :3]
    blended = (model.weights[vertices] @ transforms.reshape(n_bones, 12)).reshape(-1, 3, 4)
    placed = np.sum(blended * model.positions[vertices, None, :], axis=2)
    return placed @ rotation(theta[:3]).T + theta[3:6]


def simple_residuals(theta: Any, hand: Any) -> Any:
    """(N, 3): point minus vertex."""
    return hand.points - vertex_positions(theta, hand.model, hand.correspondences)


def complicated_residuals(us: Any, theta: Any, hand: Any) -> Any:
    """(N, 3): point minus place in a triangle, for ``us`` (N, 2)."""
    vertices, corners = np.unique(hand.model.triangles[hand.correspondences], return_inverse=True)
    placed = vertex_positions(theta, hand.model, vertices)[corners.reshape(-1, 3)]
    u, v = us[:, :1], us[:, 1:]
    return hand.points - (u * placed[:, 0] + v * placed[:, 1] + (1.0 - u - v) * placed[:, 2])


def objective(hand: Any) -> Any:
    """The residuals (N, 3), simple or complicated as the problem is."""
    return simple_residuals(hand.theta, hand) if hand.us is None else complicated_residuals(hand.us, hand.theta, hand)


def value_and_jacobian(hand: Any) -> tuple[Any, Any]:
    """The residuals (N, 3), and the Jacobian (3 N, 26), or (3 N, 2 + 26) with the derivatives by u and v before those
    by theta.

    Forward mode: a column for each parameter, and one column for all u together, since no residual has two of them.
    """
    if hand.us is None:
        errors, push = pb.linearize(lambda theta: simple_residuals(theta, hand), hand.theta)
        columns = push([(unit,) for unit in np.eye(PARAMETERS)])
    else:
        errors, push = pb.linearize(lambda us, theta: complicated_residuals(us, theta, hand), hand.us, hand.theta)
        ones = [np.broadcast_to(unit, hand.us.shape) for unit in np.eye(2)]
        columns = push([*((unit, None) for unit in ones), *((None, unit) for unit in np.eye(PARAMETERS))])
    return errors, np.stack([column.ravel() for column in columns], axis=1)
