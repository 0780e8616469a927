"""The loss of a diagonal LSTM that predicts the bits of the next character."""

from typing import Any, cast

import numpy as np

import pullback as pb


def objective(main: Any, extra: Any, state: Any, sequence: Any) -> Any:
    """``main`` (2 l, 4 b) are weights and biases of each layer for the gates forget, in, out and change, ``extra``
    (3, b) those of input and output; ``state`` (2 l, b) hidden and cell vectors, ``sequence`` (c, b) the characters.
    """
    layers, bits = len(main) // 2, sequence.shape[1]
    gates = main.reshape(layers, 2, 4, bits)
    # Forget and out see the input of a layer, in and change its hidden vector.
    weights = tuple((*gates[k, :, ::2], *gates[k, :, 1::2]) for k in range(layers))

    def step(t: Any, carry: Any) -> Any:
        before, total = carry
        x, after = sequence[t] * extra[0], cast("tuple[Any, ...]", ())
        for (weight, bias, of_hidden, hidden_bias), (hidden, cell) in zip(weights, before, strict=True):
            forget, out = sigmoid(x * weight + bias)
            inner = hidden * of_hidden + hidden_bias
            kept = cell * forget + sigmoid(inner[0]) * np.tanh(inner[1])
            x = out * np.tanh(kept)
            after = (*after, (x, kept))
        predicted = x * extra[1] + extra[2]
        norm = np.log(np.sum(np.exp(predicted)) + 2.0)
        return after, total + np.sum(sequence[t + 1] * (predicted - norm))

    start = tuple(zip(state[::2], state[1::2], strict=True))
    _, total = pb.fori_loop(0, len(sequence) - 1, step, (start, 0.0))
    return -total / (bits * (len(sequence) - 1))


def sigmoid(x: Any) -> Any:
    return 1.0 / (1.0 + np.exp(-x))
