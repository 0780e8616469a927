"""Random numbers that a loop's body draws are drawn again, bit for bit, or refused."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.programs.policies import LOOPED, UNTOLD, X

import pullback as pb
from pullback.words.errors import ReplayError

pytestmark = pytest.mark.filterwarnings(UNTOLD)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_a_generator_in_the_body_is_replayed(policy):
    def f(x, policy):
        rng = np.random.default_rng(7)
        return np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u) + x * rng.normal(size=3), x, policy=policy))

    expected = pb.grad(lambda x: f(x, pb.SaveAll()))(X)
    rng = np.random.default_rng(7)
    noise = [rng.normal(size=3) for _ in range(9)]

    def unrolled(x):
        u = x
        for e in noise:
            u = np.sin(u) + x * e
        return np.sum(u)

    assert pb.grad(lambda x: f(x, policy))(X).tobytes() == expected.tobytes()
    np.testing.assert_allclose(expected, pb.grad(unrolled)(X), rtol=1e-13)


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_a_generator_goes_on_where_one_run_leaves_it(policy):
    rng = np.random.default_rng(3)
    pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: u * rng.random(3) + x, x, policy=policy)))(X)
    once = np.random.default_rng(3)
    for _ in range(9):
        once.random(3)
    assert rng.random() == once.random()


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_the_legacy_generator_is_replayed(policy):
    state = np.random.get_state(legacy=False)  # noqa: NPY002 - the legacy generator is what is tested
    try:
        grads = []
        for p in (pb.SaveAll(), policy):
            np.random.seed(11)  # noqa: NPY002
            body = lambda k, u, x: u * np.random.rand(3) + x  # noqa: E731, NPY002
            loss = lambda x, p=p: pb.fori_loop(0, 9, lambda k, u: body(k, u, x), x, policy=p).sum()  # noqa: B023, E731
            grads.append(pb.grad(loss)(X))
            after = np.random.rand()  # noqa: NPY002
        np.random.seed(11)  # noqa: NPY002
        np.random.rand(9, 3)  # noqa: NPY002
        assert after == np.random.rand()  # noqa: NPY002
    finally:
        np.random.set_state(state)  # noqa: NPY002
    assert grads[0].tobytes() == grads[1].tobytes()


@pytest.mark.parametrize("policy", LOOPED, ids=repr)
def test_a_generator_hidden_in_an_object_is_replayed_or_refused(policy):
    class Noise:
        def __init__(self):
            self.source = {"rng": np.random.default_rng(5)}

        def draw(self):
            return self.source["rng"].normal(size=3)

    def f(x, p):
        noise = Noise()
        return np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u) + x * noise.draw(), x, policy=p))

    expected = pb.grad(lambda x: f(x, pb.SaveAll()))(X)
    try:
        found = pb.grad(lambda x: f(x, policy))(X)
    except ReplayError:
        return
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("policy", [*LOOPED, pb.Periodic(2, tier="disk")], ids=repr)
@pytest.mark.parametrize("made", [np.random.default_rng, np.random.RandomState, random.Random])  # noqa: S311
def test_a_generator_of_any_kind_in_the_carry_is_replayed(policy, made):
    def f(x):
        def body(k, carry):
            u, generator = carry
            return np.sin(u) + x * generator.uniform(0.0, 1.0), generator

        return np.sum(pb.fori_loop(0, 9, body, (x, made(7)))[0])

    expected = pb.grad(f)(X).tobytes()
    assert pb.grad(f, policy=policy)(X).tobytes() == expected
    _, pull = pb.vjp(f, X, policy=policy)
    assert [pull(1.0)[0].tobytes() for _ in range(2)] == [expected] * 2


def drawn_beside(draw):
    """A gradient whose re-runs draw by ``draw`` while another thread draws from NumPy's legacy generator."""
    again = threading.Event()
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()  # the thread is there

        def body(k, u):
            if again.is_set():
                other.submit(np.random.standard_normal, 3).result()
            return u * (1.0 + draw())

        _, pull = pb.vjp(lambda x: pb.fori_loop(0, 5, body, x), 0.5, policy=pb.Binomial(1))
        again.set()
        return pull(1.0)


def test_threads_are_named_where_they_draw_from_the_legacy_generator():
    with pytest.raises(
        pb.ReplayError,
        match=r"other bytes than the first run.*NumPy's legacy generator.*of which \d+ more are running.*default_rng",
    ):
        drawn_beside(np.random.standard_normal)
    own = np.random.default_rng(3)
    drawn_beside(own.standard_normal)


def test_no_threads_are_named_where_nobody_has_drawn():
    calls = threading.Event()

    def body(k, u):
        return u * (2.0 if calls.is_set() else 3.0)

    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()
        _, pull = pb.vjp(lambda x: pb.fori_loop(0, 5, body, x), 0.5, policy=pb.Binomial(1))
        calls.set()
        with pytest.raises(pb.ReplayError, match="other bytes than the first run") as caught:
            pull(1.0)
    assert "legacy" not in str(caught.value)


ADOPTED = """
import random
import numpy as np

RNG, OLD, PYTHON = np.random.default_rng(3), np.random.RandomState(4), random.Random(5)

def march(u):
    return np.sin(u) + 0.1 * RNG.standard_normal(u.shape) * OLD.random_sample() + PYTHON.random() * 1e-3
"""


@pytest.mark.parametrize("form", ["fori_loop", "steps", "checkpoint"])
@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(), pb.Periodic(2), pb.Budget("1 MB")], ids=repr)
def test_generators_of_an_adopted_module_are_put_back(tmp_path, form, policy):
    """Its name begins as a plugin's does, and it is a user's code all the same."""
    (tmp_path / "drawing_from_globals.py").write_text(ADOPTED)

    def gradient(policy):
        module = pb.adopt(tmp_path / "drawing_from_globals.py")
        module.RNG.bit_generator.state = np.random.default_rng(3).bit_generator.state
        module.OLD.seed(4)
        module.PYTHON.seed(5)

        def f(x):
            if form == "fori_loop":
                return np.sum(pb.fori_loop(0, 9, lambda k, u: module.march(u), x) ** 2)
            u = x
            for _ in pb.steps(9):
                u = module.march(u) if form == "steps" else pb.checkpoint(module.march)(u)
            return np.sum(u**2)

        found = pb.grad(f, policy=policy)(np.linspace(0.1, 1, 6))
        return found, module.RNG.random(), module.OLD.random_sample(), module.PYTHON.random()

    for found, expected in zip(gradient(policy), gradient(pb.SaveAll()), strict=True):
        np.testing.assert_array_equal(found, expected)
