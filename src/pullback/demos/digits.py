"""The digits demo: a small network learns the handwritten digits that scikit-learn ships. Its products come from
pullback-linalg."""

from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from pullback.demos.pictures import draw_digits
from pullback.instruments.watching.parts import Tell, silent
from pullback.transforms.derivatives.reverse import value_and_grad
from pullback.words.optional_libraries import optional_library

Parameters = dict[str, Any]
"""Weights and offsets by name; arrays, or tracers over them."""

PICTURE = "digits-misread.png"
HELD_OUT = 450
"""How many of the 1797 digits are kept for judging."""


@frozen(eq=False)
class Digits:
    """Images of shape ``(n, 64)``, float64 in 0 .. 1, and what they show, integers 0 .. 9; split for training and
    for judging."""

    train_images: NDArray[Any]
    train_labels: NDArray[Any]
    test_images: NDArray[Any]
    test_labels: NDArray[Any]


@frozen(eq=False)
class DigitsReport:
    """What the training reached. Prints as two lines."""

    parameters: Parameters
    losses: tuple[float, ...]
    """Mean over the batches of each epoch."""
    accuracies: tuple[float, ...]
    """Part of the held-out digits read rightly after each epoch."""
    n_misread: int
    n_test: int
    picture: Path | None = None

    def __str__(self) -> str:
        right = f"{self.accuracies[-1]:.1%} of {self.n_test} held-out digits read rightly"
        line = f"{right} after {len(self.losses)} epochs ({self.n_misread} misread)"
        return line if self.picture is None else f"{line}\npicture: {self.picture}"


def load_digits(seed: int = 0) -> Digits:
    """The digits in a random order, split. ``PullbackError`` where scikit-learn is missing."""
    datasets = optional_library("sklearn.datasets", "the digits ship with scikit-learn")
    images, labels = datasets.load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    images, labels = images[order] / 16.0, labels[order]
    return Digits(images[HELD_OUT:], labels[HELD_OUT:], images[:HELD_OUT], labels[:HELD_OUT])


def initial_parameters(rng: np.random.Generator, hidden: int) -> Parameters:
    """Two layers, 64 to ``hidden`` to 10; weights of variance 2 / inputs (He et al., ICCV 2015), offsets zero."""
    return {
        "w1": rng.standard_normal((64, hidden)) * np.sqrt(2 / 64),
        "b1": np.zeros(hidden),
        "w2": rng.standard_normal((hidden, 10)) * np.sqrt(2 / hidden),
        "b2": np.zeros(10),
    }


def scores(parameters: Parameters, images: Any) -> Any:
    """One score for each digit, shape ``(n, 10)``."""
    layer = np.maximum(images @ parameters["w1"] + parameters["b1"], 0.0)
    return layer @ parameters["w2"] + parameters["b2"]


def loss(parameters: Parameters, images: Any, labels: NDArray[Any]) -> Any:
    """Mean cross-entropy of the scores against the labels."""
    s = scores(parameters, images)
    s = s - np.max(s, axis=1, keepdims=True)
    right = s[np.arange(len(labels)), labels]
    return np.mean(np.log(np.sum(np.exp(s), axis=1)) - right)


def run_digits(
    *,
    epochs: int = 15,
    hidden: int = 64,
    batch: int = 32,
    rate: float = 0.05,
    momentum: float = 0.9,
    seed: int = 0,
    out: Path | None = None,
    progress: Tell | None = None,
) -> DigitsReport:
    """The :class:`DigitsReport` of training by stochastic gradient descent with momentum and a rate that falls to 0.

    ``out`` is the folder for a picture of misread digits (made if missing); None draws none.
    ``progress(what, done, total)`` is called after each epoch. ``UnknownFunctionError`` names pullback-linalg where it
    is not installed.
    """
    digits, tell = load_digits(seed), progress or silent
    rng = np.random.default_rng(seed)
    parameters = initial_parameters(rng, hidden)
    velocity = {name: np.zeros_like(value) for name, value in parameters.items()}
    gradient = value_and_grad(loss)
    losses: list[float] = []
    accuracies: list[float] = []
    for epoch in range(epochs):
        order, step = rng.permutation(len(digits.train_labels)), rate * (1 - epoch / epochs)
        total = 0.0
        for start in range(0, len(order), batch):
            members = order[start : start + batch]
            value, slope = gradient(parameters, digits.train_images[members], digits.train_labels[members])
            total += float(value) * len(members)
            velocity = {name: momentum * v - step * slope[name] for name, v in velocity.items()}
            parameters = {name: p + velocity[name] for name, p in parameters.items()}
        losses.append(total / len(order))
        accuracies.append(float(np.mean(read(parameters, digits.test_images) == digits.test_labels)))
        tell(
            f"epoch {epoch + 1}: loss {losses[-1]:.4f}, held-out digits read rightly {accuracies[-1]:.1%}",
            epoch + 1,
            epochs,
        )
    readings = read(parameters, digits.test_images)
    wrong = np.flatnonzero(readings != digits.test_labels)
    report = DigitsReport(parameters, tuple(losses), tuple(accuracies), len(wrong), len(readings))
    if out is None or not len(wrong):
        return report
    out.mkdir(parents=True, exist_ok=True)
    draw_digits(digits.test_images[wrong], digits.test_labels[wrong], readings[wrong], out / PICTURE)
    return evolve(report, picture=out / PICTURE)


def read(parameters: Parameters, images: NDArray[Any]) -> NDArray[Any]:
    """The digit of the highest score for each image."""
    digits: NDArray[Any] = np.argmax(scores(parameters, images), axis=1)
    return digits
