"""Drawn loops whose bodies return what they hold elsewhere, write to what they get, and catch what NumPy warns of.

What the next step writes to may then be an array that the body captures, a slice of ``xs``, the initial state, or the
other leaf; and a step that is run again has to catch what it caught.
"""

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from attrs import define

import pullback as pb

START = np.array([0.31, 0.83, -0.52, 0.17])
LEAVES: dict[str, Callable[..., Any]] = {
    "first": lambda u, v, c, fixed, row: u,
    "second": lambda u, v, c, fixed, row: v,
    "captured": lambda u, v, c, fixed, row: c,
    "fixed": lambda u, v, c, fixed, row: fixed,
    "slice": lambda u, v, c, fixed, row: row,
    "view": lambda u, v, c, fixed, row: u[::-1],
    "view as it is": lambda u, v, c, fixed, row: u.view(),
    "of captured": lambda u, v, c, fixed, row: c[::-1],
    "one number": lambda u, v, c, fixed, row: np.broadcast_to(fixed[1:2], (4,)),
    "one element": lambda u, v, c, fixed, row: np.broadcast_to(u[:1], (4,)),
    "read-only": lambda u, v, c, fixed, row: pb.value(u * 0.5),
    "plain": lambda u, v, c, fixed, row: np.linspace(0.2, 0.5, 4),
    "plain, read-only": lambda u, v, c, fixed, row: pb.value(fixed * 1.0),
    "fresh": lambda u, v, c, fixed, row: np.tanh(u + 0.1 * v),
}
CATCHING = ("nothing", "a state around", "a state within", "a filter around", "a filter within")


def _decay(u: Any, v: Any) -> None:
    u *= 0.9
    v += 0.1 * u


def _overlap(u: Any, v: Any) -> None:
    u[1:] += 0.1 * v[:-1]
    v[0] = 0.3


def _nothing(u: Any, v: Any) -> None:
    pass


WRITES = (_decay, _overlap, _nothing)
COUNTS: dict[str, Any] = {"no": None, "a number": 2, "an array": np.arange(3), "NumPy's": np.int64(2), "a flag": False}
"""A leaf that is no float, at first."""
USES = ("not", "as a factor", "as an index", "in a branch", "as a bound", "as a row", "in a call")


def counted(count: Any) -> Any:
    """The leaf after a step."""
    if isinstance(count, np.ndarray):
        count += 1  # the step's own
        return count
    return count + 1 if not isinstance(count, bool) else not count


def used(how: str, count: Any, u: Any, fixed: Any) -> Any:
    """What a step does with the leaf."""
    number = int(np.sum(count)) % 4
    if how == "as a factor":
        return 0.01 * np.sum(count)
    if how == "as an index":
        return 0.01 * fixed[number]
    if how == "in a branch":
        return 0.01 if number == 3 else u * 0.01
    if how == "as a bound":
        return 0.01 * np.sum(u[number:])
    if how == "as a row":
        return 0.01 * u[number]
    return 0.01 * np.full(4, number) if how == "in a call" else 0.0


@define(frozen=True)
class Carrying:
    """One program: ``value(x)`` is a number."""

    form: str
    n: int
    leaves: tuple[str, str]
    write: Callable[[Any, Any], None]
    start: str
    """What the second leaf is at first."""
    traced_xs: bool
    catching: str
    keeps: bool
    """Whether the body keeps what it returns."""
    late: int
    """The first step that reads what the body closes over."""
    plain: bool
    """Whether the state begins with plain arrays."""
    count: str = "no"
    """The leaf that is no float."""
    use: str = "not"
    gives: bool = False
    """Whether what a step of ``scan`` gives counts."""

    def value(self, x: Any) -> Any:
        """Of all that the loop may have written to."""
        x = x * 1.0
        c, fixed, kept = np.sin(x), np.linspace(0.1, 0.4, 4).copy(), []
        start = np.cos(np.arange(4.0)) if self.plain else x * 1.0
        xs = np.cos(np.arange(4.0 * self.n)).reshape(self.n, 4)
        xs = xs * x if self.traced_xs else xs

        def body(k: Any, state: Any, row: Any) -> Any:
            u, v = state
            self.write(u, v)
            u = u * 0.9 + (0.1 * c if k >= self.late else 0.05) + self.caught(k)
            new = tuple(LEAVES[name](u, v, c, fixed, row) for name in self.leaves)
            if self.keeps and not isinstance(new[0], pb.Tracer):
                kept.append(new)
            return new

        with ExitStack() as stack:
            self.enter(stack, "around")
            (u, v), ys = self.run(body, (start, LEAVES[self.start](start, start[::-1], c, fixed, None)), xs, fixed)
        u[0] = 0.2
        more = np.sum(np.tanh(ys)) if self.gives and ys is not None else 0.0
        total = np.sum(u * [0.3, -0.7, 1.1, 0.2]) + np.sum(v) + more
        return total + sum(np.sum(np.tanh(y)) for y in (c, fixed, start, xs))

    def run(self, body: Callable[..., Any], state: Any, xs: Any, table: Any) -> Any:
        """The state after the loop, and what its steps have given."""
        if self.count == "no":
            return self.loop(body, state, xs)

        def counting(k: Any, both: Any, row: Any) -> Any:
            count, (u, v) = both
            u = u + used(self.use, count, u, table)
            return counted(count), body(k, (u, v), row)

        start = COUNTS[self.count]
        (_, last), ys = self.loop(counting, (start.copy() if isinstance(start, np.ndarray) else start, state), xs)
        return last, ys

    def loop(self, body: Callable[..., Any], state: Any, xs: Any) -> Any:
        """The state after the loop, and what its steps have given, by form."""
        if self.form == "scan":
            numbers = np.arange(len(xs))
            first = lambda s: s[0] if self.count == "no" else s[1][0]  # noqa: E731
            return pb.scan(lambda s, x: (body(x[0], s, x[1]), first(s)[1:]), state, (numbers, xs))
        if self.form == "scan rows":
            first = lambda s: s[0] if self.count == "no" else s[1][0]  # noqa: E731
            return pb.scan(lambda s, x: (body(0, s, x), first(s) * x), state, xs)
        fixed = np.full(4, 0.25)
        if self.form == "while_loop":
            n = np.int8(self.n)
            return pb.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, body(s[0], s[1], fixed)), (0, state))[1], None
        if self.form == "while_loop by a clock":
            n = float(self.n)
            step = lambda s: (s[0] + 1.0, body(0, s[1], fixed))  # noqa: E731
            return pb.while_loop(lambda s: s[0] < n, step, (0.0, state))[1], None
        low = np.int8(100 - self.n)  # with numbers of this kind a step's own would wrap
        return pb.fori_loop(low, low + np.int16(self.n), lambda k, s: body(k - int(low), s, fixed), state), None

    def caught(self, k: Any) -> Any:
        """A number that is another one in the step in which NumPy has something to say."""
        if self.catching == "nothing":
            return 0.0
        with ExitStack() as stack:
            self.enter(stack, "within")
            try:
                return 0.01 * np.log(np.abs(np.float64(k) - 3.0))
            except (FloatingPointError, RuntimeWarning):
                return 0.25

    def enter(self, stack: ExitStack, where: str) -> None:
        """What makes an error of it, if here is the place."""
        if self.catching == f"a state {where}":
            stack.enter_context(np.errstate(divide="raise"))
        elif self.catching == f"a filter {where}":
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("error", RuntimeWarning)


def drawn(number: int) -> Carrying:
    """The program of a number."""
    r = np.random.default_rng(number)
    form = str(r.choice(["fori_loop", "scan", "while_loop"]))
    names = [name for name in LEAVES if name != "slice" or form == "scan"]
    form = form if r.integers(2) else {"scan": "scan rows", "while_loop": "while_loop by a clock"}.get(form, form)
    first, second = (str(name) for name in r.choice(names, 2))
    starts = ("second", "one number", "one element", "plain, read-only")
    write, n = WRITES[r.integers(len(WRITES))], int(r.choice([1 if form.startswith("scan") else 0, 2, 7, 40]))
    start = starts[number // 3 % 4]
    traced, catching, keeps = bool(r.integers(2)), str(r.choice(CATCHING)), bool(r.integers(2))
    late, plain = int(r.choice([0, 0, 1, 3])), bool(r.integers(3) == 0)
    count, use = str(r.choice(["no", *COUNTS])), str(r.choice(USES))
    return Carrying(
        form, n, (first, second), write, start, traced, catching, keeps, late, plain, count, use, bool(r.integers(2))
    )
