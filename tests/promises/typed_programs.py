"""What type checkers accept, and what they refuse: mypy reads this file as a part of the sources.

A line that it must refuse carries an ``ignore``; if it were accepted, the ``ignore`` would be unused, which is an
error as well. Nothing here is run.
"""

from typing import Any

import attrs
import numpy as np

import pullback as pb


def loss(x: np.ndarray, scale: float = 1.0) -> Any:
    return scale * np.sum(x**2)


def accepted(x: np.ndarray) -> None:
    pb.grad(loss)(x)
    value, gradient = pb.value_and_grad(loss, policy=pb.Binomial(20))(x)
    out, pull = pb.vjp(loss, x, policy="auto")
    pull(1.0)
    pb.grad(loss, policy=pb.Budget("200 MB"))(x)
    pb.grad(loss, policy=pb.Budget(200_000_000, exact=True))(x)
    pb.grad(loss, policy=pb.Recompute(segments="sqrt"))(x)
    pb.grad(loss, policy=None)(x)
    pb.fori_loop(0, 10, lambda k, u: u * 2, x, policy=pb.Mixed(3), staging="off")
    with pb.using(pb.Periodic(10), threads=2):
        pb.jacobian(loss)(x)
    for _ in pb.steps(10):
        pass
    pb.profile(loss, x, policies=[pb.SaveAll(), "auto"]).assert_peak("1 GB", "auto")
    planned = pb.plan(loss, pb.spec((4096, 4096)), policy=pb.Tiered(2, None))
    advice = pb.plan(loss, x, budget="200 MB")
    pb.map_leaves(float, [planned.peak_bytes, *(plan.peak_bytes for plan in advice.others), value, gradient, out])


@pb.primitive
def cubed(x: np.ndarray) -> np.ndarray:
    return x**3


@cubed.vjp("x")
def _(ct: Any, x: Any) -> Any:
    return 3 * ct * x**2


@pb.primitive(residuals=("root",), elementwise=True, name="square root")
def rooted(x: np.ndarray) -> Any:
    root = np.sqrt(x)
    return root, {"root": root}


@attrs.frozen
class Own(pb.MemoryPolicy):
    """A policy of a user's."""


def refused(x: np.ndarray) -> None:
    pb.grad(loss, policy="binomial")  # type: ignore[arg-type]
    pb.grad(loss, policy=20)  # type: ignore[arg-type]
    pb.grad(loss, policy=pb.Binomial)  # type: ignore[arg-type]
    pb.grad(3.0)  # type: ignore[arg-type]
    pb.Binomial("20")  # type: ignore[arg-type]
    pb.Binomial()  # type: ignore[call-arg]
    pb.Mixed(snapshots=2.5)  # type: ignore[arg-type]
    pb.Periodic(10, snapshot=3)  # type: ignore[call-arg]
    pb.Budget(None)  # type: ignore[arg-type]
    pb.primitive(loss, lineer=("x",))  # type: ignore[call-overload]
    pb.primitive(loss, linear=True)  # type: ignore[call-overload]
    pb.fori_loop(0, 10, x, x)  # type: ignore[arg-type]
    pb.grade(loss)  # type: ignore[attr-defined]
    with pb.using(policy="save-all"):  # type: ignore[arg-type]
        pass
