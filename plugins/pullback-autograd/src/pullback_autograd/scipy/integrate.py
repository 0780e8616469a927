"""``odeint`` with its adjoint (Pontryagin; Chen et al., Neural Ordinary Differential Equations, 2018, algorithm 1)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate

import pullback as pb
from pullback import numpy as pnp
from pullback_autograd.misc.flatten import flatten


def odeint(func: Callable[..., Any], y0: Any, t: Any, func_args: Any = (), **kwargs: Any) -> Any:
    """The solution of dy/dt = func(y, t, *func_args) at the times ``t``, of shape (len(t), len(y0)).

    Differentiable in ``y0``, ``t`` and the floats in ``func_args`` (any structure); ``func`` may close over no traced
    value. ``args`` by name is ``func_args``; other keywords go to SciPy's odeint, in the reverse pass too. Nothing of
    the solution but its values at ``t`` is kept: the reverse integrates the state back in time beside the adjoint, so
    the gradient is as exact as ``rtol`` and ``atol`` make both.
    """
    theta, unflatten = flatten(kwargs.pop("args", func_args))

    def of_vector(y: Any, time: Any, theta: Any) -> Any:
        return pnp.asarray(func(y, time, *unflatten(theta)))

    return _odeint(pnp.asarray(y0), pnp.asarray(t), theta, of_vector=of_vector, options=kwargs)


def _forward(y0: Any, t: Any, theta: Any, *, of_vector: Any, options: Any) -> Any:
    return integrate.odeint(of_vector, y0, t, args=(theta,), **options)


_odeint = pb.primitive(_forward, name="odeint")


@_odeint.vjp("y0", "t", "theta")
def _pull_odeint(ct: Any, t: Any, theta: Any, out: Any, of_vector: Any, options: Any) -> tuple[Any, Any, Any]:
    """The state y, the adjoint a and the integral of a df/dtheta, from each time to the one before; ct enters where it
    belongs.

    A time moves only the solution at that time, by f, except the first: moving that one moves the whole solution, by
    -f.
    """
    n = np.shape(out)[1]

    def backwards(state: Any, time: Any, theta: Any) -> Any:
        slope, pull = pb.vjp(lambda y, theta: of_vector(y, time, theta), state[:n], theta)
        by_state, by_theta = pull(-state[n : 2 * n])
        return np.concatenate([slope, by_state, by_theta])

    adjoint, total, by_time = ct[-1], np.zeros_like(theta), []
    for k in range(np.shape(out)[0] - 1, 0, -1):
        by_time.append(np.sum(ct[k] * of_vector(out[k], t[k], theta)))
        start = np.concatenate([out[k], adjoint, total])
        end = odeint(backwards, start, np.stack([t[k], t[k - 1]]), (theta,), **options)[1]
        adjoint, total = end[n : 2 * n] + ct[k - 1], end[2 * n :]
    by_time.append(-np.sum((adjoint - ct[0]) * of_vector(out[0], t[0], theta)))
    return adjoint, np.stack(by_time[::-1]), total


__all__ = ["odeint"]
