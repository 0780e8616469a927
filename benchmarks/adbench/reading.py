"""ADBench's text formats: numbers between blanks, and for the hand model fields between colons.

Each reader takes the path of a file and returns a frozen value; a file that is too short, too long or not numeric
raises :class:`pullback.InputFileError` with the counts.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

import pullback as pb

Array = NDArray[Any]
CAMERA = 11  # rotation (3), centre (3), focal length, principal point (2), radial distortion (2)


@frozen(eq=False)
class Mixture:
    """k Gaussians in d dimensions and n points: ``alphas`` (k,), ``means`` (k, d), ``icf`` (k, d (d + 1) / 2), ``x``
    (n, d), and the prior's ``gamma`` and ``m``."""

    alphas: Array
    means: Array
    icf: Array
    x: Array
    gamma: float
    m: int


@frozen(eq=False)
class Bundle:
    """``cameras`` (n, 11), ``points`` (m, 3), ``weights`` (p,), ``observed`` (p, 2: camera, point), ``features`` (p,
    2)."""

    cameras: Array
    points: Array
    weights: Array
    observed: Array
    features: Array


@frozen(eq=False)
class Sequence:
    """l layers, c characters of b bits: ``main`` (2 l, 4 b), ``extra`` (3, b), ``state`` (2 l, b), ``sequence`` (c,
    b)."""

    main: Array
    extra: Array
    state: Array
    sequence: Array


@frozen(eq=False)
class HandModel:
    """B bones and V vertices: ``parents`` (B,), -1 at the root; ``relatives``, ``inverse_absolutes`` (B, 4, 4);
    ``positions`` (V, 4), homogeneous; ``weights`` (V, B); ``triangles`` (T, 3)."""

    parents: Array
    relatives: Array
    inverse_absolutes: Array
    positions: Array
    weights: Array
    triangles: Array


@frozen(eq=False)
class Hand:
    """``theta`` (26,), ``us`` (N, 2) or None in the simple form, ``correspondences`` (N,) (vertices, or triangles with
    ``us``), ``points`` (N, 3)."""

    model: HandModel
    correspondences: Array
    points: Array
    theta: Array
    us: Array | None


def read_mixture(path: str | Path, *, replicate_point: bool = False) -> Mixture:
    """A Gaussian mixture: ``d k n``, alphas, means, icf, points (one, taken n times, with ``replicate_point``),
    ``gamma m``."""
    numbers = _numbers(path)
    d, k, n = _whole(path, numbers[:3])
    take = _taker(path, numbers, 3)
    alphas, means, icf = take(k), take(k, d), take(k, d * (d + 1) // 2)
    x = np.repeat(take(1, d), n, axis=0) if replicate_point else take(n, d)
    gamma, m = take(2)
    take()
    return Mixture(alphas, means, icf, x, float(gamma), int(m))


def read_bundle(path: str | Path) -> Bundle:
    """A bundle adjustment: ``n m p``, one camera, one point, one weight, one feature; each stands for all, observation
    i is of camera i mod n and point i mod m."""
    numbers = _numbers(path)
    n, m, p = _whole(path, numbers[:3])
    take = _taker(path, numbers, 3)
    camera, point, weight, feature = take(1, CAMERA), take(1, 3), take(1), take(1, 2)
    take()
    observed = np.stack([np.arange(p) % n, np.arange(p) % m], axis=1)
    return Bundle(
        np.repeat(camera, n, axis=0),
        np.repeat(point, m, axis=0),
        np.repeat(weight, p),
        observed,
        np.repeat(feature, p, axis=0),
    )


def read_sequence(path: str | Path) -> Sequence:
    """An LSTM: ``l c b``, main parameters, extra parameters, state, sequence."""
    numbers = _numbers(path)
    layers, characters, bits = _whole(path, numbers[:3])
    take = _taker(path, numbers, 3)
    read = Sequence(take(2 * layers, 4 * bits), take(3, bits), take(2 * layers, bits), take(characters, bits))
    take()
    return read


def read_hand(path: str | Path, model: str | Path | None = None) -> Hand:
    """A hand: ``N t``, N times ``correspondence x y z``, in the complicated form N times ``u v``, and t parameters.

    ``model`` is the folder of ``bones.txt``, ``vertices.txt`` and ``triangles.txt``; by default ``model`` beside the
    file. The form is told by the count of numbers.
    """
    numbers = _numbers(path)
    n, n_theta = _whole(path, numbers[:2])
    take = _taker(path, numbers, 2)
    table = take(n, 4)
    us = take(n, 2) if numbers.size == 2 + 6 * n + n_theta else None
    theta = take(n_theta)
    take()
    folder = Path(path).parent / "model" if model is None else Path(model)
    return Hand(read_hand_model(folder), table[:, 0].astype(int), table[:, 1:], theta, us)


def read_hand_model(folder: Path) -> HandModel:
    """The model of a hand: a line per bone ``name:parent:16 numbers:16 numbers`` (row by row), per vertex
    ``3 numbers:5 ignored:n:bone:weight: ...``, per triangle ``v:v:v``."""
    bones = [line[1:] for line in _fields(folder / "bones.txt")]
    matrices = np.array([[float(number) for number in line[1:33]] for line in bones]).reshape(-1, 2, 4, 4)
    vertices = [[float(number) for number in line] for line in _fields(folder / "vertices.txt")]
    positions = np.ones((len(vertices), 4))
    weights = np.zeros((len(vertices), len(bones)))
    for row, line in enumerate(vertices):
        positions[row, :3] = line[:3]
        weights[row, np.array(line[9::2], int)] = line[10::2]
    triangles = np.array([[int(number) for number in line] for line in _fields(folder / "triangles.txt")])
    return HandModel(
        np.array([int(line[0]) for line in bones]), matrices[:, 0], matrices[:, 1], positions, weights, triangles
    )


def _fields(path: Path) -> Iterator[list[str]]:
    return (line.strip().split(":") for line in _text(path).splitlines() if line.strip())


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"{path} cannot be read ({error.strerror}); give a file of ADBench's data"
        raise pb.InputFileError(message) from error


def _numbers(path: str | Path) -> Array:
    words = _text(path).split()
    try:
        return np.array(words, dtype=float)
    except ValueError as error:
        message = f"{path}: {error}; ADBench's files hold numbers between blanks"
        raise pb.InputFileError(message) from error


def _whole(path: str | Path, numbers: Array) -> list[int]:
    if numbers.size < 2 or (numbers < 1).any() or (numbers != np.floor(numbers)).any():
        message = (
            f"{path} begins with {numbers.tolist()}, which are no sizes; its first line holds two or three "
            "positive whole numbers"
        )
        raise pb.InputFileError(message)
    return [int(number) for number in numbers]


def _taker(path: str | Path, numbers: Array, start: int) -> Any:
    """A function that takes the next numbers as an array of a shape; without a shape it makes sure that none is
    left."""
    used = start

    def take(*shape: int) -> Array:
        nonlocal used
        count = int(np.prod(shape)) if shape else 0
        if used + count > numbers.size or (not shape and used < numbers.size):
            message = (
                f"{path} holds {numbers.size} numbers, its first line asks for "
                f"{used + count}{'' if not shape else ' or more'}"
            )
            raise pb.InputFileError(message)
        used += count
        return numbers[used - count : used].reshape(shape or (0,)).copy()

    return take
