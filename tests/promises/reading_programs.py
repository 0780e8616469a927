"""Drawn programs of loops and code between them that reads arrays from before the loops, under one ``Budget``: what
they are, and what is to hold of them. ``fault_of(drawn(seed))`` says what does not."""

import random
import warnings

import numpy as np
from attrs import frozen
from tests.programs.measured import peak_of

import pullback as pb

SLACK = 64 * 1024
"""Of Python's own objects that belong to no step."""
BODIES = (
    lambda k, u, v, w: (u + 0.01 * np.sin(u) * 1.1, v),
    lambda k, u, v, w: (0.9 * np.tanh(u * v) + 0.1, u),
    lambda k, u, v, w: (u + 0.01 * w * np.sin(u), v * np.cos(u)),
    lambda k, u, v, w: (0.5 * u[::-1] + 0.1 * v * v, u),
    lambda k, u, v, w: (0.9 * u + 0.1 * w, v),
)
FORMS = ("fori", "fori", "while", "scan", "outputs", "nest", "steps", "iterator", "range", "checkpoint")
READS = (
    lambda u, ws: u + sum(1e-3 * np.sum(w * w * u) for w in ws),
    lambda u, ws: u + 0.01 * sum(ws),
    lambda u, ws: np.tanh(u * (1 + 0.01 * np.concatenate([w[:1] for w in ws]).sum())),
    lambda u, ws: sum((*map(np.sin, [u * w for w in ws]),)) / len(ws),
    lambda u, ws: u,
)
SIZES = (10_000, 125_000)
"""Elements of an array. With smaller ones Python's own objects weigh more than what is looked for here."""


@frozen
class Reading:
    """A program: (number of arrays made, form, steps, body, how what is there is read) of each part."""

    size: int
    parts: tuple
    repeats: bool
    """Whether it is a ``vjp`` whose pull is called twice."""
    share: float
    """Of what lies between the least bytes that are accepted and what save-all takes."""


def drawn(seed):
    """The program of this number."""
    rng = random.Random(seed)  # noqa: S311 - programs, no secrets
    size = rng.choice(SIZES)
    most = 25 if size > 10_000 else 120
    parts = tuple(
        (rng.choice((0, 0, 3, 10, 20)), rng.choice(FORMS), rng.randint(1, most), rng.randrange(len(BODIES)),
         rng.randrange(len(READS)))
        for _ in range(rng.choice((1, 1, 2, 2, 3)))
    )  # fmt: skip
    return Reading(size, parts, rng.random() < 0.3, rng.choice((0.0, 0.0, 0.02, 0.1, 0.3, 0.6, 1.0)))


def looped(form, n, body, u, v, w):
    """The state after a loop in this form."""
    if form == "fori":
        return pb.fori_loop(0, n, lambda k, s: body(k, *s, w), (u, v))
    if form == "while":
        return pb.while_loop(lambda s: s[2] < n, lambda s: (*body(s[2], *s[:2], w), s[2] + 1), (u, v, 0))[:2]
    if form in ("scan", "outputs"):
        row = (lambda u: u) if form == "outputs" else np.sum
        (u, v), ys = pb.scan(lambda s, k: (body(k, *s, w), row(s[0])), (u, v), np.arange(min(n, 20)))
        return u + 0.1 * np.sum(ys, axis=0), v
    if form == "nest":
        inner = lambda _, s: pb.fori_loop(0, n // 4 + 1, lambda k, s: body(k, *s, w), s)  # noqa: E731 - short
        return pb.fori_loop(0, 4, inner, (u, v))
    run = pb.checkpoint(body) if form == "checkpoint" else body
    for k in pb.steps(n) if form == "steps" else pb.steps(iter(range(n))) if form == "iterator" else range(min(n, 40)):
        u, v = run(k, u, v, w)
    return u, v


def program(reading):
    """The function."""

    def f(x):
        u, v, ws = x, np.cos(x), [x]
        for made, form, n, body, read in reading.parts:
            ws = ws + [u * (1 + 0.01 * k) for k in range(made)]
            u, v = looped(form, n, BODIES[body], u, v, ws[-1])
            u = READS[read](u, ws)
        return np.sum(u * v)

    return f


def gradients(f, policy, x, *, repeats):
    """The gradient, of each pull where there are several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        if not repeats:
            return [pb.grad(f, policy=policy)(x).tobytes()]
        _, pull = pb.vjp(f, x, policy=policy)
        return [pull(1.0)[0].tobytes() for _ in range(2)]


def least_of(reading, f, x, nbytes=1):
    """The first figure that is accepted, beginning at this one, and how often it was refused."""
    for refused in range(60):
        try:
            gradients(f, pb.Budget(nbytes), x, repeats=reading.repeats)
        except pb.BudgetError as error:
            if error.minimum_bytes <= nbytes:
                raise AssertionError(f"{nbytes} are refused, and {error.minimum_bytes} said to be enough") from error
            nbytes = error.minimum_bytes
        else:
            return nbytes, refused
    raise AssertionError("refused 60 times")


def fault_of(reading):
    """What does not hold of a program; "" where all does."""
    f, x = program(reading), np.linspace(0.2, 0.9, reading.size)
    once = lambda policy: gradients(f, policy, x, repeats=reading.repeats)  # noqa: E731 - short
    once(pb.SaveAll())
    wanted, most = peak_of(lambda: once(pb.SaveAll()))
    try:
        least, _ = least_of(reading, f, x)
        budget = least + int(reading.share * max(0, most - least))
        budget, refused = least_of(reading, f, x, budget)
    except AssertionError as error:
        return str(error)
    if refused:
        return f"refused: {least} are accepted, {budget} are, but not what lies between"
    found, peak = peak_of(lambda: once(pb.Budget(budget)))
    if found != wanted:
        return "other bits than under save-all"
    if peak > budget + SLACK:
        return f"peak {peak} of {budget} bytes, {(peak - budget) / x.nbytes:.1f} arrays more; save-all takes {most}"
    return ""
