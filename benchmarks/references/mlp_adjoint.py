"""A network of three layers with ``maximum(., 0)`` between them, its mean cross-entropy, and the gradient by hand.

Parameters are ``(w, b)`` of each layer in turn, as one flat tuple; images are (batch, inputs), labels are integers.
"""

from typing import Any

import numpy as np

Array = Any


def loss(params: Any, images: Array, labels: Array) -> Array:
    """The mean cross-entropy, as a user writes it; parameters may be arrays or tracers."""
    w1, b1, w2, b2, w3, b3 = params
    first = np.maximum(images @ w1 + b1, 0.0)
    second = np.maximum(first @ w2 + b2, 0.0)
    scores = second @ w3 + b3
    scores = scores - np.max(scores, axis=1, keepdims=True)
    right = scores[np.arange(len(labels)), labels]
    return np.mean(np.log(np.sum(np.exp(scores), axis=1)) - right)


def value_and_gradient(params: Any, images: Array, labels: Array) -> tuple[Array, tuple[Array, ...]]:
    """``(loss, gradient)``. The greatest score cancels, so it has no cotangent."""
    w1, b1, w2, b2, w3, b3 = params
    n, rows = len(labels), np.arange(len(labels))
    first = images @ w1
    first += b1
    np.maximum(first, 0.0, out=first)
    second = first @ w2
    second += b2
    np.maximum(second, 0.0, out=second)
    scores = second @ w3
    scores += b3
    scores -= np.max(scores, axis=1, keepdims=True)
    right = scores[rows, labels]
    ct = np.exp(scores, out=scores)
    total = np.sum(ct, axis=1)
    value = np.mean(np.log(total) - right)
    ct /= total[:, None]
    ct[rows, labels] -= 1.0
    ct /= n
    ct_w3, ct_b3 = second.T @ ct, np.sum(ct, axis=0)
    ct = ct @ w3.T
    ct *= second > 0.0
    ct_w2, ct_b2 = first.T @ ct, np.sum(ct, axis=0)
    ct = ct @ w2.T
    ct *= first > 0.0
    return value, (images.T @ ct, np.sum(ct, axis=0), ct_w2, ct_b2, ct_w3, ct_b3)
