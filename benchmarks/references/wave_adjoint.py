"""The wave misfit and its gradient by hand: what the automatic gradient is measured against.

The discrete adjoint of ``pullback.demos.wave_model.misfit``, written as a NumPy programmer would who cares for speed
but not for records: no step allocates a field, every step works in place, and nothing is fused or blocked. With the
step

    v = u + damp (u - p);  v[inner] += c2 L u;  v[source] += wavelet[k];  r = v[receivers] - data[k];  loss += r . r

and ``P, U`` the cotangents of the pair ``(u, v)`` that the step hands on, the reverse of a step is

    U[receivers] += 2 r;  g2 += U[inner] L u;  u_ct = P + U + damp U + L^T (c2 U[inner]);  p_ct = -damp U

The cotangent of the Laplacian's outer ring is kept, because ``u`` may be non-zero there. Every function takes the
problem by its attributes alone (see ``WaveProblem``); fields are ``(nz, nx)`` or ``(n_shots, nz, nx)``.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

Array = Any
INNER = (..., slice(1, -1), slice(1, -1))
BELOW = (..., slice(2, None), slice(1, -1))
ABOVE = (..., slice(None, -2), slice(1, -1))
RIGHT = (..., slice(1, -1), slice(2, None))
LEFT = (..., slice(1, -1), slice(None, -2))


class Stepper:
    """The forward step, the recording step and the reverse step over buffers made once.

    ``u_prev``, ``u`` and ``loss`` are the live state; ``ct_prev``, ``ct`` and ``g2`` the live cotangents.
    """

    def __init__(self, c: Array, problem: Any) -> None:
        self.problem = problem
        self.courant = (problem.dt / problem.dx) * c[1:-1, 1:-1]
        self.c2 = problem.gain * (self.courant * self.courant)
        self.u_prev, self.u, self.u_next = (np.zeros(problem.field_shape, c.dtype) for _ in range(3))
        self.ct_prev, self.ct, self.damped = (np.zeros(problem.field_shape, c.dtype) for _ in range(3))
        self.g2 = np.zeros_like(self.c2)
        self.inner = np.empty_like(self.u[INNER])
        self.term = np.empty_like(self.inner)
        self.loss = c.dtype.type(0)
        self.shape = c.shape

    def advance(self, k: int, laplacian: Array) -> Array:
        """Run step ``k``; ``L u`` is left in ``laplacian``. Returns the residual of the recording."""
        problem, u, u_next, term = self.problem, self.u, self.u_next, self.term
        np.subtract(u, self.u_prev, out=u_next)
        u_next *= problem.damp
        u_next += u
        np.add(u[BELOW], u[ABOVE], out=laplacian)
        laplacian += u[RIGHT]
        laplacian += u[LEFT]
        np.multiply(u[INNER], 4.0, out=term)
        laplacian -= term
        np.multiply(self.c2, laplacian, out=term)
        u_next[INNER] += term
        u_next[problem.source_index] += problem.wavelet[k]
        residual = u_next[problem.receiver_index] - problem.data[k]
        self.loss = self.loss + np.sum(residual * residual)
        self.u_prev, self.u, self.u_next = u, u_next, self.u_prev
        return residual

    def reverse(self, laplacian: Array, residual: Array) -> None:
        """Reverse one step from its two saved values; cotangents and ``g2`` are updated in place.

        Receivers are distinct, so that ``+=`` with an index array adds each value once.
        """
        ct, ct_u, damped, weight = self.ct, self.ct_prev, self.damped, self.term
        ct[self.problem.receiver_index] += 2.0 * residual
        np.multiply(ct[INNER], laplacian, out=weight)
        if weight.ndim == self.g2.ndim:
            self.g2 += weight
        else:
            for shot in weight:
                self.g2 += shot
        np.multiply(ct[INNER], self.c2, out=weight)
        np.multiply(ct, self.problem.damp, out=damped)
        ct_u += ct
        ct_u += damped
        ct_u[BELOW] += weight
        ct_u[ABOVE] += weight
        ct_u[RIGHT] += weight
        ct_u[LEFT] += weight
        weight *= 4.0
        ct_u[INNER] -= weight
        np.negative(damped, out=damped)
        self.ct, self.ct_prev, self.damped = ct_u, damped, ct

    def result(self) -> tuple[Array, Array]:
        """``(misfit, gradient)``; the gradient has the shape of ``c`` and is zero on the outermost ring."""
        problem = self.problem
        gradient = np.zeros(self.shape, self.g2.dtype)
        gradient[1:-1, 1:-1] = self.g2 * problem.gain * self.courant * (2.0 * problem.scale * problem.dt / problem.dx)
        return problem.scale * self.loss, gradient


def misfit_only(c: Array, problem: Any) -> Array:
    """The misfit alone: one plain forward run, nothing kept."""
    stepper = Stepper(c, problem)
    for k in range(problem.n_steps):
        stepper.advance(k, stepper.inner)
    return problem.scale * stepper.loss


def value_and_gradient(c: Array, problem: Any) -> tuple[Array, Array]:
    """``(misfit, gradient)``, keeping the Laplacian and the residual of every step: nothing is computed twice."""
    stepper = Stepper(c, problem)
    laplacians = np.empty((problem.n_steps, *stepper.inner.shape), c.dtype)
    residuals = [stepper.advance(k, laplacians[k]) for k in range(problem.n_steps)]
    for k in reversed(range(problem.n_steps)):
        stepper.reverse(laplacians[k], residuals[k])
    return stepper.result()


def value_and_gradient_from_states(c: Array, problem: Any) -> tuple[Array, Array]:
    """``(misfit, gradient)``, keeping every wavefield, the textbook way; the reverse computes each Laplacian again."""
    stepper = Stepper(c, problem)
    states = np.empty((problem.n_steps, *problem.field_shape), c.dtype)
    residuals = []
    for k in range(problem.n_steps):
        states[k] = stepper.u
        residuals.append(stepper.advance(k, stepper.inner))
    for k in reversed(range(problem.n_steps)):
        u, laplacian, term = states[k], stepper.inner, stepper.term
        np.add(u[BELOW], u[ABOVE], out=laplacian)
        laplacian += u[RIGHT]
        laplacian += u[LEFT]
        np.multiply(u[INNER], 4.0, out=term)
        laplacian -= term
        stepper.reverse(laplacian, residuals[k])
    return stepper.result()


def value_and_gradient_by_schedule(c: Array, problem: Any, actions: Iterable[Any]) -> tuple[Array, Array]:
    """``(misfit, gradient)`` by a schedule of Advance, Record, Reverse, Save, Load, Delete, EndForward and EndReverse.

    An action is an object of a class of that name with the attributes ``start, stop`` / ``step`` / ``kind, step``, or
    a tuple ``(name, ...)`` of the same fields in that order. States are copied when saved and when loaded; a buffer of
    a deleted state is used again. Tapes stay in a dict until reversed. Any other action raises ``ValueError``.
    """
    run = ScheduleRun(Stepper(c, problem))
    handlers: dict[str, Any] = {
        "Advance": run.advance,
        "Record": run.record,
        "Reverse": run.reverse,
        "Save": run.save,
        "Load": run.load,
        "Delete": run.delete,
        "EndForward": run.end_forward,
        "EndReverse": run.end_reverse,
    }
    for action in actions:
        name, fields = _read(action)
        if name not in handlers:
            raise ValueError(f"unknown action {name!r}; the handwritten adjoint carries out {', '.join(handlers)}")
        handlers[name](*fields)
    return run.stepper.result()


class ScheduleRun:
    """One method per action; ``_cursor`` is the step whose starting state is live."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self._cursor = 0
        self._states: dict[int, tuple[Array, Array, Array]] = {}
        self._tapes: dict[int, tuple[Array, Array]] = {}
        self._free_states: list[tuple[Array, Array]] = []
        self._free_tapes: list[Array] = []
        self._final_loss: Array = None

    def advance(self, start: int, stop: int) -> None:
        self._expect(start)
        for k in range(start, stop):
            self.stepper.advance(k, self.stepper.inner)
        self._cursor = stop

    def record(self, step: int) -> None:
        self._expect(step)
        laplacian = self._free_tapes.pop() if self._free_tapes else np.empty_like(self.stepper.inner)
        self._tapes[step] = (laplacian, self.stepper.advance(step, laplacian))
        self._cursor = step + 1
        if self._cursor == self.stepper.problem.n_steps:
            self._final_loss = self.stepper.loss

    def reverse(self, step: int) -> None:
        laplacian, residual = self._tapes.pop(step)
        self.stepper.reverse(laplacian, residual)
        self._free_tapes.append(laplacian)

    def save(self, kind: str, step: int, *_tier: Any) -> None:
        if kind == "state":
            self._expect(step)
            buffers = (
                self._free_states.pop()
                if self._free_states
                else (np.empty_like(self.stepper.u), np.empty_like(self.stepper.u))
            )
            np.copyto(buffers[0], self.stepper.u_prev)
            np.copyto(buffers[1], self.stepper.u)
            self._states[step] = (*buffers, self.stepper.loss)

    def load(self, kind: str, step: int, *_tier: Any) -> None:
        if kind == "state":
            u_prev, u, self.stepper.loss = self._states[step]
            np.copyto(self.stepper.u_prev, u_prev)
            np.copyto(self.stepper.u, u)
            self._cursor = step

    def delete(self, kind: str, step: int, *_tier: Any) -> None:
        if kind == "state":
            self._free_states.append(self._states.pop(step)[:2])

    def end_forward(self) -> None:
        """Nothing to do: the last step is already recorded."""

    def end_reverse(self) -> None:
        """Put the loss of the whole run back; the live one is that of the last re-run."""
        self.stepper.loss = self._final_loss

    def _expect(self, step: int) -> None:
        if step != self._cursor:
            raise ValueError(
                f"the schedule asks for step {step}, but the live state is the start of step {self._cursor}"
            )


def _read(action: Any) -> tuple[str, tuple[Any, ...]]:
    if isinstance(action, tuple):
        return action[0], () if action[0].startswith("End") else action[1:]
    name = type(action).__name__
    if name == "Advance":
        return name, (action.start, action.stop)
    if name in ("Record", "Reverse"):
        return name, (action.step,)
    if name in ("Save", "Load", "Delete"):
        return name, (action.kind, action.step)
    return name, ()
