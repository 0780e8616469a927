"""Random numbers in loops: the legacy generator's state is kept whatever was drawn last, and costs nothing where
nothing is drawn."""
# ruff: noqa: NPY002 - the legacy generator is what is tested

import numpy as np
import pytest

import pullback as pb
from pullback.loops.bodies.randomness import Randomness

X = np.array([0.5, -0.2])
POLICIES = [pb.Recompute(), pb.Binomial(1), pb.Binomial(3)]


def drawn(count):
    """A loop whose step draws ``count`` normal numbers, of which the legacy generator makes two at a time and keeps
    one."""

    def f(x):
        def body(_, u):
            noise = sum(np.random.randn() for _ in range(count))
            return u * (1 + 0.1 * noise) + 0.01 * x

        return np.sum(pb.fori_loop(0, 11, body, x) ** 2)

    return f


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("before", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_kept_second_numbers_of_a_pair_are_drawn_again(count, before, policy):
    gradients = []
    for chosen in (pb.SaveAll(), policy):
        np.random.seed(3)
        np.random.randn(before)
        gradients.append(pb.grad(drawn(count), policy=chosen)(X))
        gradients.append(np.random.randn())  # the generator goes on where a single run leaves it
    assert gradients[0].tobytes() == gradients[2].tobytes()
    assert gradients[1] == gradients[3]


def test_an_untouched_state_is_neither_read_nor_set_again():
    np.random.seed(0)
    randomness = Randomness([])
    first = randomness.save()
    assert randomness.save()[0] is first[0]
    np.random.uniform()
    second = randomness.save()
    assert second[0] is not first[0]
    randomness.restore(first)
    assert np.random.uniform() == np.random.RandomState(0).uniform()
    np.random.seed(0)
    np.random.randn()
    with_kept = randomness.save()
    assert randomness.save()[0] is with_kept[0], "each snapshot would hold 2.5 kB of its own"
    kept = np.random.randn()  # moves no bit of the generator
    assert randomness.save()[0] is not with_kept[0]
    randomness.restore(with_kept)
    assert np.random.randn() == kept


def test_another_kind_of_legacy_generator_is_kept_too():
    before = np.random.get_bit_generator()
    gradients = []
    try:
        for policy in (pb.SaveAll(), pb.Binomial(1)):
            np.random.set_bit_generator(np.random.PCG64(5))
            gradients.append(pb.grad(drawn(1), policy=policy)(X))
    finally:
        np.random.set_bit_generator(before)
    assert gradients[0].tobytes() == gradients[1].tobytes()


@pytest.mark.parametrize("policy", [pb.SaveAll(), *POLICIES], ids=repr)
@pytest.mark.parametrize(
    "around", [lambda loop, x: loop(x), lambda loop, x: pb.checkpoint(loop)(x)], ids=["alone", "in a checkpoint"]
)
def test_a_pull_leaves_the_generator_where_it_was(around, policy):
    """Also where it is not the first, and where a step raises."""
    rng, broken = np.random.default_rng(1), []

    def body(_, u):
        noise = rng.normal()
        if broken:
            message = "out of luck"
            raise RuntimeError(message)
        return u * np.sin(u) + noise

    _, pull = pb.vjp(lambda x: around(lambda v: pb.fori_loop(0, 6, body, v), x), X, policy=policy)
    gradients = []
    for _ in range(2):
        rng.normal(size=5)
        before = rng.bit_generator.state
        gradients.append(pull(X)[0].tobytes())
        assert rng.bit_generator.state == before
    assert gradients[0] == gradients[1]
    broken.append(True)
    with pytest.raises(RuntimeError, match="out of luck"):
        pull(X)
    assert rng.bit_generator.state == before
