"""A ``while_loop`` whose condition and body draw random numbers from one generator: the numbers of a step are those of
its first run under every policy, whether or not anything is verified."""

import random
import warnings

import numpy as np
import pytest
from attrs import frozen

import pullback as pb

X = np.linspace(0.2, 0.9, 200)
GENERATORS = {
    "default_rng": lambda seed: np.random.default_rng(seed).random,
    "RandomState": lambda seed: np.random.RandomState(seed).normal,
    "legacy": lambda seed: (np.random.seed(seed), np.random.normal)[1],  # noqa: NPY002 - users of it are replayed, too
    "random": lambda seed: random.Random(seed).random,  # noqa: S311 - programs, no secrets
}  # fmt: skip
POLICIES = (pb.Binomial(1), pb.Binomial(3), pb.Recompute(), pb.Periodic(3), pb.Budget("40 kB"), pb.Budget("1 MB"))
PLACES = ("alone", "fori", "steps", "plain", "checkpoint", "twice")


@frozen
class Drawing:
    """A loop of so many steps, in whose condition and body numbers are drawn before steps that are multiples of a
    number (0: never)."""

    generator: str
    n: int
    condition: int
    body: int
    place: str
    seed: int


def drawn(seed):
    """The loop of this number."""
    rng = random.Random(seed)  # noqa: S311 - programs, no secrets
    return Drawing(
        rng.choice([*GENERATORS]), rng.choice((1, 2, 5, 9, 16)), rng.choice((0, 1, 1, 2, 3)), rng.choice((0, 1, 1, 2)),
        rng.choice(PLACES), seed,
    )  # fmt: skip


def program(drawing):
    """The function."""

    def looped(x, draw):
        def number(every, k):
            return draw() if every and k % every == 0 else 0.3

        def goes_on(state):
            return state[1] < drawing.n and number(drawing.condition, state[1]) < 10.0

        def body(state):
            u, k = state
            number_here = number(drawing.body, k)
            return np.sin(u) * (1 + 0.1 * number_here) + 0.1 * number_here * u * u, k + 1

        return pb.while_loop(goes_on, body, (x, 0))[0]

    def f(x):
        draw = GENERATORS[drawing.generator](drawing.seed)
        if drawing.place == "fori":
            return np.sum(pb.fori_loop(0, 3, lambda _, u: looped(u, draw), x))
        if drawing.place == "steps":
            for _ in pb.steps(3):
                x = looped(np.cos(x), draw)
        elif drawing.place == "checkpoint":
            x = pb.checkpoint(lambda u: looped(u * 1.1, draw))(x)
        elif drawing.place == "plain":
            x = np.sin(looped(np.cos(x) * x, draw)) + np.tanh(x)
        else:
            x = looped(x, draw)
        return np.sum(x * x)

    return f


def gradients(drawing, policy, verify):
    """The bits of the gradients of each pull."""
    with warnings.catch_warnings(), pb.using(verify=verify):
        warnings.simplefilter("ignore", pb.PolicyWarning)
        if drawing.place != "twice":
            return [pb.grad(program(drawing), policy=policy)(X).tobytes()]
        _, pull = pb.vjp(program(drawing), X, policy=policy)
        return [pull(1.0)[0].tobytes() for _ in range(2)]


def assert_same_bits(drawing):
    wanted = gradients(drawing, pb.SaveAll(), "all")
    for policy in POLICIES:
        for verify in ("off", "all"):
            try:
                found = gradients(drawing, policy, verify)
            except pb.BudgetError:
                continue
            assert found == wanted, (policy, verify)


@pytest.mark.parametrize("seed", range(16))
def test_drawn_loops_have_the_bits_of_save_all(seed):
    assert_same_bits(drawn(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16, 1000))
def test_many_drawn_loops_have_the_bits_of_save_all(seed):
    assert_same_bits(drawn(seed))


@pytest.mark.parametrize("generator", GENERATORS)
def test_condition_and_body_share_a_generator(generator):
    assert_same_bits(Drawing(generator, 12, 1, 1, "alone", 3))


def test_a_condition_that_ends_the_loop_elsewhere_is_told():
    """It draws, so it is asked again, and reads what has changed since."""
    asked = []

    def f(x):
        rng = np.random.default_rng(0)

        def goes_on(state):
            asked.append(rng.random())
            return state[1] < 8 and len(asked) < 10

        return np.sum(pb.while_loop(goes_on, lambda s: (np.sin(s[0]), s[1] + 1), (x, 0))[0])

    with pytest.raises(pb.ReplayError, match="the condition has said that the loop ends before step"):
        pb.grad(f, policy=pb.Binomial(1))(X)
