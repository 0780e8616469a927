"""The wave misfit in JAX, jitted: ``scan`` with everything saved or with nested ``jax.checkpoint``, and equinox's
checkpointed loop. All take the problem by its attributes, as ``wave_adjoint`` does, for one shot."""

import os
from collections.abc import Callable
from typing import Any

# XLA reads this when it starts: one thread, as everybody else has.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

Array = Any


Scan = Callable[..., Any]
"""``(step, init, xs) -> (carry, ys)``, as ``jax.lax.scan``."""


def save_all(problem: Any) -> Callable[[Array], Any]:
    """A function of ``c`` that gives ``(misfit, gradient)``, by ``jax.lax.scan``."""
    return gradient_by(jax.lax.scan, problem)


def checkpointed(problem: Any, snapshots: int) -> Callable[[Array], Any]:
    """As :func:`save_all`, by equinox's loop with this many checkpoints. ``ImportError`` where equinox is missing."""
    return gradient_by(checkpointed_scan(snapshots), problem)


def checkpointed_scan(snapshots: int) -> Scan:
    """Equinox's loop with this many checkpoints."""
    from equinox import internal  # noqa: PLC0415  the other functions need none

    return lambda step, init, xs: internal.scan(step, init, xs, kind="checkpointed", checkpoints=snapshots)


def nested_scan(nest: tuple[int, ...]) -> Scan:
    """``jax.lax.scan`` over segments of segments, each under ``jax.checkpoint``; ``nest`` says how many parts each
    level has, the outermost first."""

    def scan(step: Any, init: Any, xs: Any) -> Any:
        def level(parts: tuple[int, ...]) -> Any:
            if len(parts) == 1:
                return lambda carry, xs: jax.lax.scan(step, carry, xs)
            inner = jax.checkpoint(level(parts[1:]), prevent_cse=False)

            def run(carry: Any, xs: Any) -> Any:
                return jax.lax.scan(inner, carry, jax.tree.map(lambda x: x.reshape(parts[0], -1, *x.shape[1:]), xs))

            return run

        return level(nest)(init, xs)

    return scan


def steps_run(scan: Scan, n_steps: int) -> int:
    """How many forward steps a gradient through ``scan`` runs, told by the steps of a loop over one number."""
    ran: list[None] = []

    def step(u: Array, _: Array) -> Any:
        jax.debug.callback(lambda _: ran.append(None), u)
        return u + 0.1 * jnp.sin(u), None

    jax.block_until_ready(jax.jit(jax.grad(lambda u: scan(step, u, jnp.arange(n_steps))[0]))(1.0))
    jax.effects_barrier()
    return len(ran)


def gradient_by(scan: Scan, problem: Any) -> Callable[[Array], Any]:
    """A compiled function of ``c`` that gives ``(misfit, gradient)``, its loop by ``scan``."""
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

    spec = jax.ShapeDtypeStruct(problem.field_shape, problem.data.dtype)
    gradient = jax.jit(jax.value_and_grad(misfit)).lower(spec).compile()
    return lambda c: jax.block_until_ready(gradient(c))
