"""Pulls that are called again and again: the bits of the sweep, whatever the cotangent."""

import numpy as np
import pytest

import pullback as pb
from pullback.staging.generated import shelf
from pullback.staging.pulls import repeated_pulls
from pullback.testing.comparing.bits import same_bits
from pullback.transforms.derivatives import pulls

X = np.array([0.3, -0.7, 1.1, 0.2])
PROGRAMS = {
    "elementwise": lambda x: np.sin(x) * x + np.exp(-x) / (1.0 + x * x),
    "writes": lambda x: written(np.cos(x), x),
    "masks": lambda x: np.where(x > 0, np.sqrt(np.abs(x)), x * x) + np.clip(x, -0.5, 0.5),
    "products": lambda x: np.outer(x, x) @ x + x[::-1] * x[1],
    "reads": lambda x: x[[0, 0, 3]] * x[1:],
    "the argument itself": lambda x: x,
    "several": lambda x: (np.sin(x), x * 2.0, 3.0),
    "a constant": lambda x: np.ones(4) + 0.0 * x,
    "a loop": lambda x: pb.fori_loop(0, 3, lambda k, u: np.sin(u) * x, x),
}


def written(y, x):
    y[1:] *= x[:-1]
    y += x
    return y


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(pulls, "ENOUGH", 2)
    monkeypatch.setattr(pulls, "FEW", 0)
    monkeypatch.setattr(pulls, "SOME", 0)
    shelf.forget()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_bits_are_those_of_the_sweep(name):
    f, random = PROGRAMS[name], np.random.default_rng(0)
    y, pull = pb.vjp(f, X)
    _, plain = pb.vjp(f, X)
    for k in range(8):
        ct = pb.map_leaves(lambda leaf: random.normal(size=np.shape(leaf)) * (k != 5), y)  # noqa: B023
        if name == "several":
            ct = (ct[0] if k != 6 else None, ct[1], ct[2])
        found = pull(ct)
        with pb.using(staging="off"):
            assert same_bits(found, plain(ct))


def test_what_is_returned_belongs_to_the_caller():
    _, pull = pb.vjp(PROGRAMS["elementwise"], np.linspace(0, 1, 4000))
    kept = [pull(np.full(4000, float(k)))[0] for k in range(6)]
    wanted = kept[1].copy()
    for g in kept[2:]:
        g[:] = 0.0
    assert same_bits(kept[1], wanted)
    assert same_bits(pull(np.full(4000, 1.0))[0], wanted)


def test_it_is_used():
    _, pull = pb.vjp(PROGRAMS["elementwise"], X)
    for _ in range(4):
        pull(X)
    assert [known.reverse is not None for known, _ in pull._repeated.known.values()] == [True]
    pull.close()
    assert pull._repeated is None


def test_other_seeds_are_swept():
    _, pull = pb.vjp(PROGRAMS["elementwise"], X)
    _, plain = pb.vjp(PROGRAMS["elementwise"], X)
    for _ in range(4):
        pull(X)
    for ct in (np.broadcast_to(1.0, 4), np.arange(8.0)[::2]):
        assert same_bits(pull(ct), plain(ct))
    second = pb.grad(lambda ct: np.sum(pull(ct)[0] ** 2))(X)
    assert same_bits(second, pb.grad(lambda ct: np.sum(plain(ct)[0] ** 2))(X))


def test_rows_and_columns_of_jacobians():
    for f in (PROGRAMS["elementwise"], PROGRAMS["products"], lambda x: np.concatenate([x, x * x, x])):
        for mode in ("reverse", "forward"):
            assert np.allclose(pb.jacobian(f, mode=mode)(X), pb.jacobian(f)(X))
    _, push = pb.linearize(PROGRAMS["products"], X)
    assert len({push(X).tobytes() for _ in range(6)}) == 1


def test_records_that_say_the_same_share_it():
    """Whatever they hold; where a key, a number or what is shared differs, it is another."""
    keys = [np.array([0, 0, 3]), np.array([0, 1, 3]), np.array([0, 0, 3])]
    programs = [
        *((lambda x, key=key, c=c: np.sin(x[key]) * c + x[1:] * x[0]) for key in keys for c in (2.0, 0.5)),
        lambda x: np.sin(x) * np.cos(x) * x,
        lambda x: np.sin(x) * np.cos(x) * (x + 0.0),
        lambda x: np.exp(x) * np.sin(x) + np.exp(x) ** 2,
    ]
    random = np.random.default_rng(1)
    for _ in range(3):
        for f in programs:
            x = random.normal(size=4)
            y, pull = pb.vjp(f, x)
            _, push = pb.linearize(f, x)
            for _ in range(3):
                ct, t = random.normal(size=y.shape), random.normal(size=4)
                found = pull(ct), push(t)
                with pb.using(staging="off"):
                    assert same_bits(found, (pull(ct), push(t)))
    made = [known for alike in repeated_pulls._SHELF.values() for known in alike if known.reverse is not None]
    assert 6 <= len(made) < 2 * 3 * len(programs)


def test_a_pull_uses_what_another_has_made_from_its_second_call_on(monkeypatch):
    for expected in (0, 3):
        _, pull = pb.vjp(PROGRAMS["elementwise"], X + expected)
        used = []
        monkeypatch.setattr(pulls, "FEW", 1)
        monkeypatch.setattr(pulls, "ENOUGH", 2)
        before = repeated_pulls.ReverseFunction.each
        noted = lambda *args: used.append(1) or before(*args)  # noqa: B023, E731 - called within this turn
        monkeypatch.setattr(repeated_pulls.ReverseFunction, "each", noted)
        for _ in range(4):
            pull(X)
        monkeypatch.setattr(repeated_pulls.ReverseFunction, "each", before)
        assert len(used) >= expected
