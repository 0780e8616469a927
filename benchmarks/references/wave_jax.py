"""The wave misfit in JAX, jitted: ``scan`` with everything saved, and equinox's checkpointed loop, which recomputes by
a binomial schedule. Both take the problem by its attributes, as ``wave_adjoint`` does, for one shot."""

import os
from collections.abc import Callable
from typing import Any

# XLA reads this when it starts: one thread, as everybody else has.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

Array = Any


def save_all(problem: Any) -> Callable[[Array], Any]:
    """A function of ``c`` that gives ``(misfit, gradient)``, by ``jax.lax.scan``."""
    return _gradient(problem, jax.lax.scan)


def checkpointed(problem: Any, snapshots: int) -> Callable[[Array], Any]:
    """As :func:`save_all`, by equinox's loop with this many checkpoints. ``ImportError`` where equinox is missing."""
    from equinox import internal  # noqa: PLC0415  the other function needs none

    return _gradient(
        problem, lambda step, init, xs: internal.scan(step, init, xs, kind="checkpointed", checkpoints=snapshots)
    )


def _gradient(problem: Any, scan: Callable[..., Any]) -> Callable[[Array], Any]:
    damp, gain = jnp.asarray(problem.damp), jnp.asarray(problem.gain)
    wavelet, data = jnp.asarray(problem.wavelet), jnp.asarray(problem.data)

    def misfit(c: Array) -> Array:
        courant = (problem.dt / problem.dx) * c[1:-1, 1:-1]
        c2 = gain * (courant * courant)

        def step(state: Any, x: Any) -> Any:
            u_prev, u, loss = state
            source, recorded = x
            inner = u[1:-1, 1:-1]
            laplacian = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * inner
            u_next = (u + damp * (u - u_prev)).at[1:-1, 1:-1].add(c2 * laplacian)
            u_next = u_next.at[problem.source_index].add(source)
            residual = u_next[problem.receiver_index] - recorded
            return (u, u_next, loss + jnp.sum(residual * residual)), None

        rest = jnp.zeros(problem.field_shape, c.dtype)
        (_, _, loss), _ = scan(step, (rest, rest, jnp.zeros((), c.dtype)), (wavelet, data))
        return problem.scale * loss

    gradient = jax.jit(jax.value_and_grad(misfit))
    return lambda c: jax.block_until_ready(gradient(c))
