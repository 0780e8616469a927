"""Random programs whose steps read and change what is not in their state: by number, each with a world of its own.

A body is a few operations on the state, each with something that is read somewhere (:data:`PLACES`); it may write down
what it did, count, use scratch, or change what it reads (:data:`HABITS`). Between the forward pass and the pull
somebody may change the world (:data:`CHANGES`). Every operation is written once, on ``ops``: NumPy's, or
the naive reference's.
"""

import functools
import types
from collections import deque
from random import Random
from typing import Any

import numpy as np
from attrs import frozen
from tests.programs import naive

import pullback as pb

N = 3


class NumPyOps:
    """The operations of bodies on arrays and tracers."""

    multiply, add, maximum, sin, tanh = np.multiply, np.add, np.maximum, np.sin, np.tanh

    @staticmethod
    def turned(u):
        return u[::-1]

    @staticmethod
    def plain(u):
        return pb.value(u)


class NaiveOps:
    """The same on the nodes of the naive reference."""

    @staticmethod
    def _node(x):
        return x if isinstance(x, naive.Node) else naive.Node(np.array(x, float))

    def __getattr__(self, name):
        return lambda *operands: naive.elementwise(name, *map(self._node, operands))

    @staticmethod
    def turned(u):
        return naive.gather(lambda a: a[::-1], u)

    @staticmethod
    def plain(u):
        return u.array


class Slotted:
    """An object without a dict."""

    __slots__ = ("c",)


class Owner:
    """An object with attributes, one of them of the class."""

    shared = np.array([0.5, 1.0, -0.5])

    def __init__(self):
        self.random = np.random.default_rng(5)


class World:
    """All that a program can read besides its state, made afresh for every run. ``SETTINGS`` stands for the globals of
    a module."""

    def __init__(self, zero: bool) -> None:
        self.array = np.array([1.0, -0.0, 2.0]) if zero else np.array([0.9, 1.1, -0.7])
        self.number = 0.5
        self.dict, self.list, self.deque = {"c": self.array.copy()}, [self.array.copy()], deque([self.array.copy()])
        self.owner, self.slotted = Owner(), Slotted()
        self.owner.c, self.slotted.c = self.array.copy(), self.array.copy()
        Owner.shared = np.array([0.5, 1.0, -0.5])
        self.space = types.SimpleNamespace(a=types.SimpleNamespace(c=self.array.copy()))
        self.scratch, self.log, self.count = np.zeros(N), [], {"n": 0}
        self.partial = functools.partial(lambda c: c, self.array.copy())
        SETTINGS["c"], SETTINGS["n"] = self.array.copy(), 0
        self.run_plainly: Any = lambda start: None  # of the program of this world


SETTINGS: dict[str, Any] = {"c": None, "n": 0}
PLACES = {
    "array": lambda w: w.array,
    "number": lambda w: w.number,
    "dict": lambda w: w.dict["c"],
    "list": lambda w: w.list[0],
    "deque": lambda w: w.deque[0],
    "attribute": lambda w: w.owner.c,
    "class attribute": lambda w: w.owner.shared,
    "slot": lambda w: w.slotted.c,
    "attribute of an attribute": lambda w: w.space.a.c,
    "partial": lambda w: w.partial(),
    "global": lambda w: SETTINGS["c"],
    "random": lambda w: w.owner.random.normal(size=N),
    "legacy random": lambda w: np.random.standard_normal(N),  # noqa: NPY002 - users of it are replayed too
}


def _scratch(world, k, _):
    world.scratch[:] = k
    return world.scratch


HABITS = {
    "none": lambda world, k, u: 1.0,
    "logs": lambda world, k, u: world.log.append(k) or 1.0,
    "logs later": lambda world, k, u: (world.log.append(k) if k % 3 == 2 else None) or 1.0,
    "counts": lambda world, k, u: world.count.update(n=world.count["n"] + 1) or 1.0,
    "scratch": _scratch,
    "counts beside": lambda world, k, u: setattr(world.owner, "n", getattr(world.owner, "n", 0) + 1) or 1.0,
    "counts in a namespace": lambda world, k, u: setattr(world.space.a, "n", k) or world.log.append(k) or 1.0,
    "counts among globals": lambda world, k, u: SETTINGS.update(n=SETTINGS["n"] + 1) or 1.0,
    "counts in a dict": lambda world, k, u: world.dict.update(n=world.dict.get("n", 0) + 1) or 1.0,
    "counts and reads": lambda world, k, u: world.count.update(n=world.count["n"] + 1) or float(world.count["n"]),
    "an attribute goes on": lambda world, k, u: setattr(world, "number", world.number + 0.25) or world.number,
    "a global goes on": lambda world, k, u: SETTINGS.update(n=SETTINGS["n"] + 1) or float(SETTINGS["n"]),
    "in place": lambda world, k, u: np.multiply(world.array, -1.5, out=world.array),
    "late": lambda world, k, u: (world.dict.update(c=2 * world.dict["c"]) if k == 2 else None) or 1.0,
}
HARMLESS = (
    "none", "logs", "logs later", "counts", "scratch", "counts beside", "counts in a namespace", "counts among globals",
    "counts in a dict",
)  # fmt: skip
CHANGES = {
    "none": lambda world: None,
    "an array": lambda world: world.array.__setitem__(1, 7.0),
    "a sign of zero": lambda world: world.array.__imul__(-1.0),
    "an item": lambda world: world.dict.update(c=np.full(N, 3.0)),
    "a list": lambda world: world.list.__setitem__(0, np.full(N, 3.0)),
    "an attribute": lambda world: setattr(world.owner, "c", np.full(N, 3.0)),
    "an array in an attribute": lambda world: world.owner.c.fill(3.0),
    "a slot": lambda world: setattr(world.slotted, "c", np.full(N, 3.0)),
    "a class": lambda world: setattr(Owner, "shared", np.full(N, 3.0)),
    "a global": lambda world: SETTINGS.update(c=np.full(N, 3.0)),
    "an array in a namespace": lambda world: world.space.a.c.fill(3.0),
    "what a partial holds": lambda world: world.partial.args[0].fill(3.0),
    "draws": lambda world: (world.owner.random.normal(size=4), np.random.standard_normal()),  # noqa: NPY002 - as above
    "runs again": lambda world: world.run_plainly(np.array([0.1, 0.9, -0.4])),
}
COMBINED = ("multiply", "add", "maximum")
ALONE = ("sin", "tanh", "turned")
FORMS = ("fori_loop", "scan", "scan outputs", "while_loop", "steps", "plain", "nested", "checkpoint", "shared cell")


@frozen
class Program:
    """``lines`` of (operation, place) for each step of ``form``; the initial state is zero where ``hidden``."""

    form: str
    lines: tuple[tuple[str, str], ...]
    habit: str
    change: str
    n: int
    hidden: bool
    first: int = 0
    """The steps before this one read nothing, so that no tape of step 0 shows what they read."""
    asked: bool = False
    """Whether the program has been run on plain arrays before: it leaves what it leaves behind as it finds it."""

    def start(self) -> Any:
        """The state in the beginning."""
        return np.zeros(N) if self.hidden else np.array([0.3, -0.5, 0.8])

    def body(self, world: World, ops: Any) -> Any:
        """``body(k, u)``, which reads ``world``."""

        def step(k: Any, u: Any) -> Any:
            factor = HABITS[self.habit](world, int(k), u)
            for name, place in self.lines if k >= self.first else ():
                if name in ALONE:
                    u = getattr(ops, name)(u)
                else:
                    u = getattr(ops, name)(u, PLACES[place](world))
            return ops.multiply(u, factor)

        return step

    def naive(self) -> Any:
        """The gradient of the sum of the last state, by the reference: the body runs once for each step, in order."""
        world = World(self.hidden)
        np.random.seed(3)  # noqa: NPY002 - as above
        ops = NaiveOps()
        body, x = self.body(world, ops), naive.Node(self.start())
        u = x
        for k in range(self.n):
            u = body(k, u)
        return naive.gradients(naive.total(np.sum, u, None), [x])[0]

    def run(self, world: World, x: Any) -> Any:
        """The sum of the last state, by the form of the program."""
        body, n = self.body(world, NumPyOps), self.n
        if self.form == "fori_loop":
            return np.sum(pb.fori_loop(0, n, body, x))
        if self.form == "scan":
            return np.sum(pb.scan(lambda u, k: (body(k, u), None), x, np.arange(n))[0])
        if self.form == "scan outputs":
            return np.sum(pb.scan(lambda u, k: ((v := body(k, u)), v), x, np.arange(n))[1][-1])
        if self.form == "while_loop":
            return np.sum(pb.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[0], s[1])), (0, x))[1])
        if self.form == "nested":
            return np.sum(
                pb.fori_loop(0, 1, lambda _, u: pb.fori_loop(0, n, lambda k, v: body(k, v), u), x)  # noqa: PLW0108
            )
        if self.form == "shared cell":
            return self._shared(body, x)
        for k in pb.steps(n) if self.form == "steps" else range(n):
            x = pb.checkpoint(body)(k, x) if self.form == "checkpoint" else body(k, x)
        return np.sum(x)

    def _shared(self, body: Any, x: Any) -> Any:
        """The loop's body and a helper share a variable that the body binds anew, which does not matter."""
        last = -1

        def helper(u: Any) -> Any:
            return u if last >= 0 else u * np.nan

        def step(k: Any, u: Any) -> Any:
            nonlocal last
            last = k
            return helper(body(k, u))

        return np.sum(pb.fori_loop(0, self.n, step, x))


def drawn(number: int) -> Program:
    """The program of a number."""
    rng = Random(number)  # noqa: S311 - drawing, not cryptography
    lines = tuple(
        (rng.choice(COMBINED), rng.choice(sorted(PLACES))) if rng.random() < 0.75 else (rng.choice(ALONE), "array")
        for _ in range(rng.randint(1, 3))
    )
    habit = rng.choice(sorted(HABITS)) if rng.random() < 0.5 else "none"
    change = rng.choice(sorted(CHANGES)) if rng.random() < 0.6 else "none"
    form, n, hidden = rng.choice(FORMS), rng.randint(1, 7), rng.random() < 0.5
    first, repeats = rng.choice((0, 0, 1, 2)), habit in HARMLESS and not any("random" in place for _, place in lines)
    return Program(form, lines, habit, change, n, hidden, first, repeats and rng.random() < 0.5)
