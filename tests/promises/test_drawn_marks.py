"""Drawn programs of marked steps, adopted whole or calling adopted functions: the value of plain NumPy, the slope of
its differences, and the bits of save-all and recorded steps under every policy."""

from itertools import count

import numpy as np
import pytest
from tests.promises.drawn_marks import program_text

import pullback as pb
from pullback.staging.generated.shelf import forget
from pullback.staging.marks.following import FollowedMarks
from pullback.stores import Disk, InMemory, Stored, Zlib

pytestmark = [
    pytest.mark.usefixtures("nothing_is_known"),
    pytest.mark.filterwarnings("ignore:.*:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pullback.PolicyWarning"),
]
FILES = count()
X, W, P = np.random.default_rng(11).uniform(0.2, 0.9, (3, 5))
ALONG = np.random.default_rng(12).normal(size=(2, 5))
POLICIES = [
    pb.Recompute(), pb.Binomial(3), pb.Periodic(4), pb.Tiered(2, 2), Stored(pb.Binomial(4), memory=Disk()),
    Stored(pb.SaveAll(), memory=Disk()), pb.Budget("1 MB"), pb.Keep(np.sin), pb.Periodic(5, snapshots=1),
    Stored(pb.Recompute(), memory=InMemory(Zlib())), pb.Keep(np.sin, np.multiply, outer=pb.Binomial(2)),
    pb.Keep({np.multiply: Zlib()}, outer=Stored(pb.Recompute(), memory=Disk())),
]  # fmt: skip


def program_of(text, path, adopted):
    """The program on plain arrays, and that which is differentiated."""
    path = path / f"marks_{next(FILES)}.py"
    path.write_text(text)
    plain, copy = {"__name__": "plain"}, pb.adopt(path)
    exec(compile(text, str(path), "exec"), plain)  # noqa: S102 - drawn by the test
    if adopted:
        return plain["program"], copy.program, (plain["KEPT"], copy.KEPT)
    own = {"__name__": "own"}
    exec(compile(text, f"{path}.own", "exec"), own)  # noqa: S102 - drawn by the test
    own |= {name: getattr(copy, name) for name in own if name.startswith(("h_", "k_")) or name in ("Holder", "KEPT")}
    return plain["program"], own["program"], (plain["KEPT"], copy.KEPT)


def outcome(function, kept, *args, **options):
    """Value and gradients, or None where one cannot be traced."""
    for each in kept:
        each.clear()
    try:
        value, gradients = pb.value_and_grad(function, (0, 1), **options)(*map(np.copy, args))
    except pb.ConversionError:
        return None
    return [value, *gradients]


def bits(parts):
    return parts and [np.asarray(part).tobytes() for part in parts]


def heard(function, text, kept, **options):
    """What is told of the cotangents of marked values, or why nothing is."""
    told, tags = [], {tag for tag in ("u", "z", "v", "un", "part", "w") if f", '{tag}'" in text}
    hear = {tag: lambda step, ct, tag=tag: told.append((tag, step, np.asarray(ct).tobytes())) for tag in tags}
    for each in kept:
        each.clear()
    try:
        pb.grad(function, (0, 1), on_adjoint=hear, **options)(*map(np.copy, (X, W, P)))
    except pb.StructureError as error:
        return str(error)
    return told


def assert_slope(plain, kept, parts):
    """The gradient along a direction is what differences say, where two of them agree."""

    def at(h):
        for each in kept:
            each.clear()
        return plain(X + h * ALONG[0], W + h * ALONG[1], P.copy())

    def difference(h):
        return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h)

    with np.errstate(all="ignore"):
        near, far = difference(3e-5), difference(1e-4)
        slope = np.sum(parts[1] * ALONG[0]) + np.sum(parts[2] * ALONG[1])
        if np.isfinite(slope) and abs(near - far) < 1e-7 * max(1.0, abs(far)):
            np.testing.assert_allclose(far, slope, rtol=1e-6, atol=1e-6)


def assert_right(path, seed, adopted):
    forget()
    text = program_text(seed, adopted)
    plain, traced, kept = program_of(text, path, adopted)
    with pb.using(staging="off"):
        wanted = outcome(traced, kept, X, W, P)
    if wanted is None:
        return
    for each in kept:
        each.clear()
    assert np.asarray(plain(X.copy(), W.copy(), P.copy())).tobytes() == np.asarray(wanted[0]).tobytes(), seed
    assert_slope(plain, kept, wanted)
    for policy in (pb.SaveAll(), POLICIES[seed % len(POLICIES)], POLICIES[(seed * 7 + 3) % len(POLICIES)]):
        for _ in range(2):
            with pb.using(staging="numpy"):
                assert bits(outcome(traced, kept, X, W, P, policy=policy)) == bits(wanted), (seed, policy)
        if "pb.name(" in text:
            with pb.using(staging="off"):
                told = heard(traced, text, kept)
            with pb.using(staging="numpy"):
                assert heard(traced, text, kept, policy=policy) == told, (seed, policy)


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("start", [0, 10])
def test_drawn_marks(tmp_path, start, adopted):
    for seed in range(start, start + 10):
        assert_right(tmp_path, seed, adopted)


def test_many_of_them_are_followed(tmp_path, monkeypatch):
    followed, compute = set(), FollowedMarks._compute

    def noted(marks):
        followed.add(seed)
        compute(marks)

    monkeypatch.setattr(FollowedMarks, "_compute", noted)
    for seed in range(20, 32):
        assert_right(tmp_path, seed, adopted=False)
    assert len(followed) >= 4


@pytest.mark.slow
@pytest.mark.parametrize("adopted", [False, True])
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_many_drawn_marks(tmp_path, start, adopted):
    for seed in range(start, start + 100):
        assert_right(tmp_path, seed, adopted)
