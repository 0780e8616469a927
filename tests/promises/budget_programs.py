"""Drawn mixtures of loops, marked steps, checkpoints and code between them, under one ``Budget``: what they are, and
what is to hold of them. ``fault_of(drawn(seed))`` says what does not."""

import random
import warnings
from functools import lru_cache

import numpy as np
from attrs import frozen
from tests.programs.measured import peak_of

import pullback as pb

SIZE = 20_000
X, C = np.linspace(0.2, 0.9, SIZE), np.linspace(0.5, 1.0, SIZE)
INPUTS = X, 0.9 * X[::-1]
SLACK = 64 * 1024
"""Of Python's own objects that belong to no step."""
STATEMENTS = (
    "v = np.sin(u) * 0.3 + v", "u, v = v, u", "u = u * c", "t = np.exp(-u * u); u = u + 0.1 * t", "v = np.roll(v, 1)",
    "w = u.copy(); w[1:-1] += 0.1 * (u[2:] - u[:-2]); u = w", "u = u + 0.1 * np.sum(v) / v.size", "v = v * 0.5",
    "a = np.concatenate([u[1:], v[:1]]); u = 0.5 * a", "u = np.where(u > 0.5, u, 0.9 * v)",
    "v = np.tanh(u @ v * 1e-4) + u", "v = np.maximum(u, v) + c", "u = np.tanh(u * v) * c",
    "z = np.zeros_like(u); z[1:] = u[1:] - u[:-1]; v = v + z", "w = v.copy(); w[INDEX] *= 0.5; v = w",
    "u = u + 0.1 * LARGE[0] * v",
)  # fmt: skip
MASK = 9
"""The statement that makes a mask of values."""
INDEX = np.random.default_rng(0).permutation(SIZE)[:1000]
LARGE = np.linspace(0.1, 0.2, 2 * SIZE).reshape(2, SIZE)
LOOPS = ("fori", "scan", "while", "outputs", "nest")
FORMS = (*LOOPS, *LOOPS, "steps", "steps", "iterator", "plain", "plain", "checkpoint", "kept")
PULLS = ("grad", "once", "twice", "twice", "interleaved")
MOST_REFUSALS = 40


@frozen
class Mixture:
    """A program: (form, number of steps, statements) of each part; how it is pulled, and within which bytes."""

    parts: tuple
    pulls: str
    exact: bool
    kept: bool
    """Whether what the program begins with is read once more at its end."""
    more: float
    """Of the least bytes that are accepted."""

    def policy(self, nbytes):
        return pb.Budget(int(nbytes), exact=self.exact)


def drawn(seed):
    """The mixture of this number."""
    rng = random.Random(seed)  # noqa: S311 - programs, no secrets
    parts = []
    for _ in range(rng.choice((1, 2, 2, 3, 3, 4, 5))):
        statements = tuple(rng.randrange(len(STATEMENTS)) for _ in range(rng.randint(1, 3)))
        form, n = rng.choice(FORMS), rng.choice((1, 2, 3, 6, 10, 16, 25))
        parts.append((form, min(n, 3) if form == "kept" else n, statements))  # each of these tells a figure
    more = 1.0 if rng.random() < 0.3 else 8 ** rng.random()
    return Mixture(tuple(parts), rng.choice(PULLS), rng.random() < 0.2, rng.random() < 0.3, more)


@lru_cache(maxsize=64)
def body_of(statements):
    """``body(u, v, c)`` of these statements."""
    names = {"np": np, "INDEX": INDEX, "LARGE": LARGE}
    text = "def body(u, v, c):\n" + "".join(f"    {STATEMENTS[k]}\n" for k in statements) + "    return u, v\n"
    exec(text, names)  # noqa: S102 - a body is drawn as text
    return names["body"]


def part_of(form, n, step, u, v):
    """What a part makes of ``u`` and ``v``."""
    if form == "fori":
        return pb.fori_loop(0, n, lambda k, s: step(*s), (u, v))
    if form == "scan":
        (u, v), ys = pb.scan(lambda s, k: (step(*s), s[0][:3]), (u, v), np.arange(n))
        return u + np.sum(ys), v
    if form == "outputs":
        (u, v), ys = pb.scan(lambda s, k: (step(*s), s[0]), (u, v), np.arange(n))
        return u + 0.1 * np.sum(ys, axis=0), v
    if form == "while":
        return pb.while_loop(lambda s: pb.value(s[2]) < n, lambda s: (*step(*s[:2]), s[2] + 1), (u, v, 0))[:2]
    if form == "nest":
        inner = lambda _, s: pb.fori_loop(0, n // 4 + 1, lambda k, s: step(*s), s)  # noqa: E731 - short
        return pb.fori_loop(0, 4, inner, (u, v))
    if form in ("steps", "iterator"):
        for _ in pb.steps(n if form == "steps" else iter(range(n))):
            u, v = step(u, v)
        return u, v
    run = step
    if form in ("checkpoint", "kept"):
        run = pb.checkpoint(step, policy=pb.Keep(np.sin, np.multiply) if form == "kept" else None)
    for _ in range(n):
        u, v = run(u, v)
    return u, v


def program(mixture):
    """The function."""

    def f(x, c):
        u, v = x * 1.5, np.cos(x)
        first = u if mixture.kept else 0
        for form, n, statements in mixture.parts:
            u, v = part_of(form, n, lambda u, v, statements=statements: body_of(statements)(u, v, c), u, v)
            v = v + 0.1 * first if mixture.kept else v
        return np.sum(u * v)

    return f


def gradients(f, pulls, policy, x=X):
    """The gradients of each pull, as digests where they are of several, and the report after the first of them."""
    found, report = [], None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        if pulls == "grad":
            return [bits(pb.grad(f, argnums=(0, 1), policy=policy)(x, C))], None
        ways = [pb.vjp(f, each, C, policy=policy)[1] for each in ((x, x[::-1]) if pulls == "interleaved" else (x,))]
        for pull in ways * (1 if pulls == "once" else 2):
            found.append(bits(pull(1.0)))
            report = report or pull.report
        most = max(pull.report.peak_bytes for pull in ways)
        for pull in ways:
            pull.close()
    return found, (report, most)


def bits(arrays):
    """The bits of arrays, in short."""
    return [hash(array.tobytes()) for array in arrays]


def least_of(mixture, f, nbytes=1):
    """The first figure that is accepted, beginning at this one, and how often it was refused."""
    for refused in range(MOST_REFUSALS):
        try:
            for x in INPUTS:  # which of the plain arrays that steps read are equal may hang on it
                gradients(f, mixture.pulls, mixture.policy(nbytes), x)
        except pb.BudgetError as error:
            if error.minimum_bytes <= nbytes:
                raise AssertionError(f"{nbytes} are refused, and {error.minimum_bytes} said to be enough") from error
            nbytes = error.minimum_bytes
        else:
            return nbytes, refused
    raise AssertionError(f"refused {MOST_REFUSALS} times")


def fault_of(mixture):
    """What does not hold of a mixture; "" where all does."""
    f = program(mixture)
    try:
        least, _ = least_of(mixture, f)
        budget = int(least * mixture.more)
        larger, refused = least_of(mixture, f, budget)
    except AssertionError as error:
        return str(error)
    if refused:
        return f"refused: {least} are accepted, {budget} are not, {larger} are"
    policy, n_ways = mixture.policy(budget), 1 + (mixture.pulls == "interleaved")
    for x in INPUTS:
        wanted, _ = gradients(f, mixture.pulls, pb.SaveAll(), x)
        (found, reports), peak = peak_of(gradients, f, mixture.pulls, policy, x)
        if found != wanted:
            return "other bits than under save-all"
        if peak > n_ways * (budget + SLACK):
            return f"peak: {peak / X.nbytes:.1f} of {n_ways * budget / X.nbytes:.1f} arrays"
        if reports is not None and reports[1] > budget + SLACK:
            return f"report: {reports[1] / X.nbytes:.1f} of {budget / X.nbytes:.1f} arrays"
    masks = any(MASK in statements for _, _, statements in mixture.parts)
    return "" if reports is None else unplanned(f, policy, x, reports[0], masks=masks)


def unplanned(f, policy, x, report, *, masks):
    """In what a plan and a report differ. A plan takes all steps to hold what the second and third hold, but
    ``masks`` of values may be equal in these, and held once, and others in later ones: they are not compared."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        plan = pb.plan(f, x, C, policy=policy)
    told, booked = ((each.n_forward, dict(each.bytes_by_reason)) for each in (plan, report))
    for by_reason in (told[1], booked[1]) if masks else ():
        by_reason.pop("constant", None)
    return "" if told == booked else f"planned {told}, booked {booked}"
