"""The loss of a diagonal LSTM that predicts the next character from its bits, and its gradient (ADBench's LSTM).

Each layer keeps a hidden and a cell vector of b numbers; every gate is elementwise. Of the two rows of ``main`` that
belong to a layer the first holds the weights, the second the biases, of the gates forget, in, out and change, b numbers
each:

    forget, out = sigmoid(w x + b)    in = sigmoid(w h + b)    change = tanh(w h + b)
    cell = cell forget + in change    h = out tanh(cell)

for the layer's input x and hidden vector h. The prediction is normalised by log(2 + sum exp), and the loss is the mean
over all predicted bits of -bit * prediction.
"""

from typing import Any

import numpy as np

import pullback as pb


def objective(params: Any, state: Any, sequence: Any) -> Any:
    """The loss at ``params`` = (main (2 l, 4 b), extra (3, b)) from ``state`` (2 l, b) over ``sequence`` (c, b): a
    scalar."""
    main, extra = params
    c, b = sequence.shape
    gates = main.reshape(-1, 2, 4, b)
    # What depends on no character is made once: forget and out see the input, in and change the hidden vector.
    layers = [(gates[k, :, ::2], gates[k, :, 1::2]) for k in range(gates.shape[0])]
    hidden, cell = list(state[::2]), list(state[1::2])
    scores = sequence[:-1] * extra[0]
    loss = 0.0
    for t in pb.steps(c - 1):
        flow = scores[t]
        for k, (of_input, of_hidden) in enumerate(layers):
            forget_out = sigmoid(flow * of_input[0] + of_input[1])
            in_change = hidden[k] * of_hidden[0] + of_hidden[1]
            cell[k] = cell[k] * forget_out[0] + sigmoid(in_change[0]) * np.tanh(in_change[1])
            flow = hidden[k] = forget_out[1] * np.tanh(cell[k])
        predicted = flow * extra[1] + extra[2]
        target = sequence[t + 1]
        loss = loss - np.sum(target * predicted) + np.sum(target) * np.log(np.sum(np.exp(predicted)) + 2.0)
    return loss / (b * (c - 1))


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)), elementwise."""
    return 1.0 / (1.0 + np.exp(-x))


def value_and_gradient(problem: Any, *, policy: Any = None) -> tuple[float, tuple[Any, Any]]:
    """The value, and the gradient as (main, extra)."""
    params = (problem.main, problem.extra)
    value, gradient = pb.value_and_grad(objective, policy=policy)(params, problem.state, problem.sequence)
    return float(value), gradient
