"""An LSTM layer over a sequence and its adjoint by hand.

One step takes the batch ``x`` (batch, inputs), the hidden and the cell state (batch, hidden) and the loss:

    z = x w + h u + b;  i, f, o = sigmoid of three quarters of z;  g = tanh of the last
    cell = f cell + i g;  h = o tanh(cell);  loss += sum(h h)

Gradients are taken by ``w`` (inputs, 4 hidden), ``u`` (hidden, 4 hidden) and ``b`` (4 hidden).
"""

from typing import Any

import numpy as np

Array = Any


def sigmoid(z: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-z))


def step(params: Any, x: Array, state: Any) -> Any:
    """``(h, cell, loss)`` one step later, as a user writes it; operands may be arrays or tracers."""
    w, u, b = params
    h, cell, loss = state
    n = h.shape[1]
    z = x @ w + h @ u + b
    i, f, o = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n]), sigmoid(z[:, 2 * n : 3 * n])
    cell = f * cell + i * np.tanh(z[:, 3 * n :])
    h = o * np.tanh(cell)
    return h, cell, loss + np.sum(h * h)


def value_and_gradient(params: Any, xs: Array, h: Array, cell: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    """``(loss, (d/dw, d/du, d/db))`` from the initial state; the gates are kept, nothing is computed twice."""
    w, u, b = params
    n, loss, kept = h.shape[1], 0.0, []
    for x in xs:
        before, cell_before = h, cell
        z = x @ w + h @ u + b
        i, f, o = sigmoid(z[:, :n]), sigmoid(z[:, n : 2 * n]), sigmoid(z[:, 2 * n : 3 * n])
        g = np.tanh(z[:, 3 * n :])
        cell = f * cell + i * g
        t = np.tanh(cell)
        h = o * t
        loss = loss + np.sum(h * h)
        kept.append((x, before, cell_before, i, f, o, g, t, h))
    ct_w, ct_u, ct_b = np.zeros_like(w), np.zeros_like(u), np.zeros_like(b)
    ct_h, ct_cell, ct_z = np.zeros_like(h), np.zeros_like(cell), np.empty_like(z)
    for x, before, cell_before, i, f, o, g, t, h in reversed(kept):
        ct_h += 2.0 * h
        ct_z[:, 2 * n : 3 * n] = ct_h * t * o * (1.0 - o)
        ct_h *= o
        ct_cell += ct_h * (1.0 - t * t)
        ct_z[:, 3 * n :] = ct_cell * i * (1.0 - g * g)
        ct_z[:, :n] = ct_cell * g * i * (1.0 - i)
        ct_z[:, n : 2 * n] = ct_cell * cell_before * f * (1.0 - f)
        ct_cell *= f
        ct_w += x.T @ ct_z
        ct_u += before.T @ ct_z
        ct_b += np.sum(ct_z, axis=0)
        ct_h = ct_z @ u.T
    return loss, (ct_w, ct_u, ct_b)
