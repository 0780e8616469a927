"""Small derivatives asked for again and again: a hot gradient, a Jacobian of many columns, nested derivatives, and the
price of recording one operation of each kind."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from adbench.reading import Hand, HandModel
from harness import Row, compare

import pullback as pb
from adbench import hand
from staged.ways import NOT_BUILT, US, agreement, row, rows_of, staged

STAGED = f"{US}, @pb.staged"


def hot_rows(*, quick: bool) -> list[Row]:
    """The gradient of ``x * x`` on a number, over the addition of two arrays of 4 elements."""
    x = np.ones(4)
    gradient = pb.grad(lambda x: x * x)
    assert gradient(3.0) == 6.0
    made = {"np.add": partial(np.add, x, x), US: partial(gradient, 3.0)}
    return rows_of("grad of x * x on a number", compare(made, rounds=3 if quick else 25))


def drawn_hand(n_points: int, n_vertices: int, n_bones: int = 22) -> Any:
    """A hand with a wrist, five fingers of four bones and a forearm, and points on drawn triangles."""
    rng = np.random.default_rng(0)
    parents = np.array([-1, *(0 if bone % 4 == 1 else bone - 1 for bone in range(1, n_bones))])
    relatives, inverses = (
        np.eye(4) + 0.3 * rng.normal(size=(n_bones, 4, 4)) * np.array([[1.0], [1.0], [1.0], [0.0]]) for _ in range(2)
    )
    positions = np.concatenate([rng.normal(size=(n_vertices, 3)), np.ones((n_vertices, 1))], axis=1)
    weights = rng.random((n_vertices, n_bones)) * (rng.random((n_vertices, n_bones)) < 0.15)
    triangles = rng.integers(n_vertices, size=(2 * n_vertices, 3))
    model = HandModel(parents, relatives, inverses, positions, weights, triangles)
    return Hand(
        model, rng.integers(len(triangles), size=n_points), rng.normal(size=(n_points, 3)),
        rng.normal(size=hand.PARAMETERS), rng.random((n_points, 2)),
    )  # fmt: skip


def hand_rows(*, quick: bool) -> list[Row]:
    """ADBench's hand tracking with free places in triangles: 28 columns, over the residuals alone."""
    rows: list[Row] = []
    for n_points in (10,) if quick else (100, 1000):
        problem = drawn_hand(n_points, 544)
        made = {"residuals": partial(hand.objective, problem), US: partial(hand.value_and_jacobian, problem)}
        agreement("residuals", made[US]()[0], made["residuals"]())
        rows += rows_of(f"hand tracking's Jacobian, {n_points} points", compare(made, rounds=2 if quick else 9))
    return rows


def potential(q: Any) -> Any:
    """Henon and Heiles, Astronomical Journal 69 (1964) 73: two degrees of freedom, some 2 us of NumPy."""
    return 0.5 * np.dot(q, q) + q[0] * q[0] * q[1] - q[1] * q[1] * q[1] / 3.0


def nested(program: Callable[[Any], Any], q: Any, t: Any) -> dict[str, Callable[[], Any]]:
    """Four derivatives of a potential: two of the first order, and two Hessian-vector products."""
    gradient = pb.grad(program)
    reverse_twice = pb.grad(lambda q: np.dot(gradient(q), t))
    return {
        "grad": lambda: gradient(q),
        "jvp": lambda: pb.jvp(program, (q,), (t,)),
        "reverse over reverse": lambda: reverse_twice(q),
        "forward over reverse": lambda: pb.jvp(gradient, (q,), (t,)),
    }


def potential_rows(*, quick: bool) -> list[Row]:
    """Derivatives of a small potential over its value in plain NumPy."""
    q, t = np.array([0.3, -0.2]), np.array([1.0, 0.5])
    slope = np.array([q[0] + 2 * q[0] * q[1], q[1] + q[0] ** 2 - q[1] ** 2])
    curved = np.array([[1 + 2 * q[1], 2 * q[0]], [2 * q[0], 1 - 2 * q[1]]]) @ t
    expected = {"grad": slope, "jvp": np.dot(slope, t), "reverse over reverse": curved, "forward over reverse": curved}
    rows: list[Row] = []
    for name, program in ((US, potential), (STAGED, staged(potential))):
        if program is None:
            rows += [row(f"potential, {what}", name, over="plain", note=NOT_BUILT) for what in expected]
            continue
        made = nested(program, q, t)
        for what, right in expected.items():
            got = made[what]()
            agreement(what, got[1] if isinstance(got, tuple) else got, right, 1e-14)
        timed = compare({"plain": lambda: potential(q), **made}, rounds=3 if quick else 15)
        us = {result.name: result.seconds * 1e6 for result in timed}
        if not rows:
            rows.append(row("potential, value", "plain", us["plain"], 1.0, "plain"))
        rows += [row(f"potential, {what}", name, us[what], timed.ratio(what), "plain") for what in expected]
    return rows


INDEX = np.array([1, 3, 3, 8, 12, 15])
MASK = np.arange(256).reshape(16, 16) % 3 == 0


def add_to_slice(u: Any, w: Any, a: Any) -> Any:
    w[1:-1, 1:-1] += a
    return u


KINDS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "nothing": lambda u, w, a: u,
    "u * v": lambda u, w, a: u * w,
    "np.sum": lambda u, w, a: np.sum(u),
    "@": lambda u, w, a: u @ w,
    "fancy read": lambda u, w, a: u[INDEX],
    "w[s] += a": add_to_slice,
    "where": lambda u, w, a: np.where(MASK, u, w),
}


def repeated(operation: Callable[[Any, Any, Any], Any], n: int) -> Callable[[Any, Any, Any], Any]:
    """The operation ``n`` times on the same operands; ``w`` is an array of the program's own, so it may be written
    to."""

    def program(u: Any, v: Any, a: Any) -> Any:
        w, out = v + 0.0, u
        for _ in range(n):
            out = operation(u, w, a)
        return out, w

    return program


def kind_rows(*, quick: bool) -> list[Row]:
    """Recorded minus plain, of one operation on 16 x 16, over the same of an elementwise product."""
    n = 20 if quick else 200
    rng = np.random.default_rng(0)
    operands = (rng.normal(size=(16, 16)), rng.normal(size=(16, 16)), rng.normal(size=(14, 14)))
    made: dict[str, Callable[[], Any]] = {}
    for kind, operation in KINDS.items():
        program = repeated(operation, n)
        made[f"plain {kind}"] = partial(program, *operands)
        made[f"recorded {kind}"] = partial(pb.vjp, program, *operands)
    timed = compare(made, rounds=3 if quick else 15)

    def extra(kind: str) -> float:
        """Microseconds that recording adds to one operation, without what a trace costs."""
        of = {way: timed[f"{way} {kind}"].seconds - timed[f"{way} nothing"].seconds for way in ("recorded", "plain")}
        return (of["recorded"] - of["plain"]) / n * 1e6

    product = extra("u * v")
    return [
        row(f"recorded minus plain, {kind}", US, extra(kind), extra(kind) / product, "u * v")
        for kind in KINDS if kind != "nothing"
    ]  # fmt: skip
