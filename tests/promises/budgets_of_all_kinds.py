"""Drawn programs of loops of all kinds, in one another and left by ``break``, with policies of their own and code
between them, under one ``Budget``: what they are, and what is to hold of them. ``fault_of(drawn(seed))`` says what does
not."""

import random
import warnings

import numpy as np
from attrs import frozen
from tests.promises.reading_programs import BODIES as FEW_BODIES
from tests.promises.reading_programs import READS, SLACK, looped, peak_of

import pullback as pb

BODIES = (
    *FEW_BODIES,
    lambda k, u, v, w: (np.where(u > 0.5, u, 0.9 * v), np.maximum(u, v) * 0.5),
    lambda k, u, v, w: (u * (1 + 0.01 * k) + 0.1 * np.roll(v, 1), np.tanh(u) * v),
)
FORMS = ("fori", "while", "scan", "outputs", "nest", "steps", "iterator", "range", "checkpoint")
OWN = ("deep", "rows", "break", "kept", "own policy")
FACTORS = (1.25, 1.6, 2, 3, 5)
"""Of the least bytes: all of these are accepted, and more bytes run no more steps, or few more: what follows a loop is
not known when it begins."""


@frozen
class Program:
    """(Number of arrays made, form, steps, body, how what is there is read) of each part."""

    size: int
    parts: tuple
    repeats: bool
    """Whether it is a ``vjp`` whose pull is called twice."""
    exact: bool

    def policy(self, nbytes):
        return pb.Budget(int(nbytes), exact=self.exact)


def drawn(seed):
    """The program of this number."""
    rng = random.Random(seed)  # noqa: S311 - programs, no secrets
    size = rng.choice((10_000, 10_000, 125_000))
    parts = []
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        form = rng.choice(FORMS + 2 * OWN)
        n = rng.randint(1, 6 if form in ("kept", "own policy") else 12 if size > 10_000 else 40)
        made = rng.choice((0, 0, 0, 2, 6, 12))
        parts.append((made, form, n, rng.randrange(len(BODIES)), rng.randrange(len(READS))))
    return Program(size, tuple(parts), rng.random() < 0.5, rng.random() < 0.15)


def part_of(form, n, body, u, v, w):
    """The state after a loop in this form."""
    if form == "deep":
        innermost = lambda s: pb.fori_loop(0, 3, lambda k, s: body(k, *s, w), s)  # noqa: E731 - short
        inner = lambda s: (*innermost(s[:2]), s[2] + 1)  # noqa: E731 - short
        return pb.fori_loop(0, 2, lambda _, s: pb.while_loop(lambda s: s[2] < n // 6 + 1, inner, (*s, 0))[:2], (u, v))
    if form == "rows":

        def step(s, _):
            s, ys = pb.scan(lambda s, k: (body(k, *s, w), s[1]), s, np.arange(n // 4 + 1))
            return s, np.sum(ys)

        (u, v), ys = pb.scan(step, (u, v), np.arange(3))
        return u + np.sum(ys), v
    if form == "own policy":
        return pb.fori_loop(0, n, lambda k, s: body(k, *s, w), (u, v), policy=pb.Binomial(2))
    if form not in ("break", "kept"):
        return looped(form, n, body, u, v, w)
    run = pb.checkpoint(body, policy=pb.Keep(np.sin, np.multiply)) if form == "kept" else body
    for k in pb.steps(n) if form == "break" else range(n):
        u, v = run(k, u, v, w)
        if form == "break" and k >= n // 2:
            break
    return u, v


def function(program):
    """The function."""

    def f(x):
        u, v, ws = x, np.cos(x), [x]
        for made, form, n, body, read in program.parts:
            ws = ws + [u * (1 + 0.01 * k) for k in range(made)]
            u, v = part_of(form, n, BODIES[body], u, v, ws[-1])
            u = READS[read](u, ws)
        return np.sum(u * v)

    return f


def gradients(program, f, policy, x):
    """The gradient of each pull, and the forward steps that the first of them has run; 0 where nobody counts them."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        if not program.repeats:
            return [pb.grad(f, policy=policy)(x).tobytes()], 0
        _, pull = pb.vjp(f, x, policy=policy)
        found, n_forward = [pull(1.0)[0].tobytes()], pull.report.n_forward
        found.append(pull(1.0)[0].tobytes())
        pull.close()
    return found, n_forward


def least_of(program, f, x):
    """The first figure that is accepted, and the last that was not; each part may tell some of its own."""
    nbytes = refused = 1
    most = sum(n + 2 if form == "kept" else 2 for _, form, n, _, _ in program.parts) + 2 + 8 * program.exact
    for _ in range(most):
        try:
            gradients(program, f, program.policy(nbytes), x)
        except pb.BudgetError as error:
            if error.minimum_bytes <= nbytes:
                raise AssertionError(f"{nbytes} are refused, and {error.minimum_bytes} said to be enough") from error
            refused, nbytes = nbytes, error.minimum_bytes
        else:
            return nbytes, refused
    raise AssertionError(f"refused {most} times")


def fault_of(program):
    """What does not hold of a program; "" where all does."""
    f, x = function(program), np.linspace(0.2, 0.9, program.size)
    wanted, _ = gradients(program, f, pb.SaveAll(), x)
    try:
        least, refused = least_of(program, f, x)
    except AssertionError as error:
        return str(error)
    n_before = float("inf")
    for factor in (1, *FACTORS):
        policy = program.policy(least * factor)
        try:
            found, n_forward = gradients(program, f, policy, x)
            _, peak = peak_of(lambda policy=policy: gradients(program, f, policy, x))
        except pb.BudgetError as error:
            return f"{least} are accepted, and {policy.max_bytes} are not: {error}"
        if found != wanted:
            return f"other bits than under save-all, at {policy.max_bytes} of {least} bytes"
        if peak > policy.max_bytes + SLACK * (1 + program.exact):
            return f"peak: {peak / x.nbytes:.1f} of {policy.max_bytes / x.nbytes:.1f} arrays"
        if n_forward > 1.6 * n_before + 4 and not program.exact:  # that counts single operations
            return f"{n_forward} steps within {policy.max_bytes} bytes, {n_before} within fewer"
        n_before = min(n_before, n_forward)
    return lower(program, f, x, least, refused)


def lower(program, f, x, least, refused):
    """Whether much fewer bytes than the figure told do, between it and those that were refused."""
    for share in (0.25, 0.5, 0.75):
        nbytes = int(refused + share * (least - refused))
        if nbytes < 0.85 * least:
            try:
                gradients(program, f, program.policy(nbytes), x)
            except pb.BudgetError:
                continue
            return f"told {least / x.nbytes:.1f} arrays, {nbytes / x.nbytes:.1f} do"
    return ""
