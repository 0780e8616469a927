"""The wave misfit in torch, eager: a Python loop whose segments of segments run under ``torch.utils.checkpoint``, the
reentrant one. The other runs fewer steps again (3.55 n for 4 n), but nested it holds several times as much (128 x 128,
1600 steps in 5 levels: 594 MB for 101 MB). It takes the problem by its attributes, as ``wave_adjoint`` does, for one
shot."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

Tensor = Any
State = tuple[Tensor, ...]


def nested(problem: Any, nest: tuple[int, ...]) -> tuple[Callable[[Any], Any], list[int]]:
    """A function of ``c`` that gives ``(misfit, gradient)`` as NumPy has them, and a list that gets the number of each
    step as it runs. ``nest`` says how many parts each level has, the outermost first."""
    damp, gain = torch.as_tensor(problem.damp), torch.as_tensor(problem.gain)
    data = torch.as_tensor(problem.data)
    rows, columns = (torch.as_tensor(index) for index in problem.receiver_index[-2:])
    ran: list[int] = []

    def step(k: int, c2: Tensor, u_prev: Tensor, u: Tensor, loss: Tensor) -> State:
        ran.append(k)
        inner = u[1:-1, 1:-1]
        laplacian = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
        u_next = u + damp * (u - u_prev)
        u_next[1:-1, 1:-1] += c2 * laplacian
        u_next[problem.source_index] += problem.wavelet[k]
        residual = u_next[rows, columns] - data[k]
        return u, u_next, loss + torch.sum(residual * residual)

    def run(start: int, stop: int, levels: tuple[int, ...], c2: Tensor, *state: Tensor) -> State:
        if len(levels) == 1:
            for k in range(start, stop):
                state = step(k, c2, *state)
            return state
        length = (stop - start) // levels[0]
        for k in range(start, stop, length):
            state = checkpoint(run, k, k + length, levels[1:], c2, *state, use_reentrant=True, preserve_rng_state=False)
        return state

    def gradient(c: Any) -> Any:
        speed = torch.tensor(c, requires_grad=True)
        courant = (problem.dt / problem.dx) * speed[1:-1, 1:-1]
        rest = torch.zeros(problem.field_shape, dtype=speed.dtype)
        start = rest, rest.clone(), torch.zeros((), dtype=speed.dtype)
        _, _, loss = run(0, problem.n_steps, nest, gain * (courant * courant), *start)
        (problem.scale * loss).backward()
        return problem.scale * loss.item(), speed.grad.numpy()

    return gradient, ran
