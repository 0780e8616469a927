"""Steps that do what the last two did are told by their records alone; where one does something else, nothing is
lost."""

import numpy as np
import pytest

import pullback as pb
from pullback.programs.replay.followed_steps import FollowedRecipes
from pullback.programs.replay.step_recipes import StepRecipes
from pullback.staging.marks import which_are_followed

N = 40
X = np.linspace(0.3, 1.1, 6)
ROWS = np.random.default_rng(3).normal(size=(N, 6))
BUFFER = np.zeros(6)


def steady(x):
    u = x
    for _ in pb.steps(N):
        u = u + 0.01 * np.sin(u) * x
    return np.sum(u * u)


def rows(x):
    """Each step reads a row of its own, and a buffer that is filled again within the step."""
    u = x
    for k in pb.steps(N):
        BUFFER[:] = k % 3
        u = u * 0.9 + BUFFER
        BUFFER[:] = -1.0
        u = u + 0.01 * ROWS[k] * BUFFER
    return np.sum(u * u)


def another_in_the_middle(x):
    """One step ends otherwise than it began, one has an operation more, one fewer, one another number."""
    u = x
    for k in pb.steps(N):
        u = np.sin(u) * (0.5 if k == 9 else 0.9)
        u = np.cos(u) if k == 17 else u + 0.1 * x
        if k != 23:
            u = u * x
        if k == 31:
            u = u + 1.0
    return np.sum(u * u)


def another_value(x):
    """From the middle on the same operations read other values."""
    u, first = x, np.exp(-x)
    before = u
    for k in pb.steps(N):
        u, before = u * 0.9 + 0.1 * (first if k < 20 else before), u
    return np.sum(u * u)


def parts(x):
    """Keys, regions and masks, of which one differs."""
    u = x * 1.0
    for k in pb.steps(N):
        v = u * 0.95
        v[1 : 3 if k != 25 else 4] += 0.1 * u[0 : 2 if k != 25 else 3]
        v[0] = 0.5 * u[-1]
        u = np.where(ROWS[k] > 0, v, u)
    return np.sum(u * u)


def mixed(x):
    """A plain array where there was a value."""
    u = x
    for k in pb.steps(N):
        u = 0.9 * u + (x if k != 12 else ROWS[0])
    return np.sum(u * u)


def a_loop_in_one(x):
    """In one step a loop function stands, after what the others do as well, and one begins with one."""
    u = x
    for k in pb.steps(N):
        if k == 29:
            u = pb.fori_loop(0, 3, lambda j, v: np.cos(v) + 0.1 * x, u)
        u = np.sin(u) * 0.9
        if k == 12:
            u = pb.fori_loop(0, 3, lambda j, v: np.sin(v) + 0.1 * x, u)
    return np.sum(u * u)


PROGRAMS = [steady, rows, another_in_the_middle, another_value, parts, mixed, a_loop_in_one]


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(), pb.Periodic(7)], ids=repr)
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_bits_and_the_same_entries(program, policy, monkeypatch):
    program(X)  # the interpreter may change the code that it runs first
    made, begin = [], FollowedRecipes.begin

    def begun(recipes, ident):
        made.append(recipes)
        begin(recipes, ident)

    monkeypatch.setattr(FollowedRecipes, "begin", begun)
    for _ in range(2):
        value, gradient = pb.value_and_grad(program, policy=policy)(X)
    monkeypatch.setattr(FollowedRecipes, "follow", StepRecipes.follow)
    assert pb.grad(program, policy=policy)(X).tobytes() == gradient.tobytes()
    wanted, saved = pb.value_and_grad(program)(X)
    assert (np.asarray(value).tobytes(), gradient.tobytes()) == (np.asarray(wanted).tobytes(), saved.tobytes())
    _, followed, alone = made
    assert followed.cuts == alone.cuts
    assert [len(p.recipes) for p in followed.patterns] == [len(p.recipes) for p in alone.patterns]
    same = [[p is q for q in (each.patterns[0], each.patterns[-1])] for each in made[1:] for p in each.patterns]
    assert same[:N] == same[N:]
    for k in range(N):
        told = [each.operands_of(k) for each in made[1:]]
        assert [np.asarray(x).tobytes() for x in told[0]] == [np.asarray(x).tobytes() for x in told[1]]


def test_steps_are_followed(monkeypatch):
    met, meets = [], FollowedRecipes.meets

    def noted(recipes, *others):
        met.append(meets(recipes, *others))
        return met[-1]

    monkeypatch.setattr(FollowedRecipes, "meets", noted)
    monkeypatch.setattr(which_are_followed, "ENOUGH", 10**9)  # recorded steps
    pb.grad(steady, policy=pb.Binomial(3))(X)
    assert sum(met) >= (N - 3) * 4
    assert all(met[-(N - 3) * 4 :])


def test_an_error_in_a_followed_step_ends_the_chain():
    def fails(x):
        u = x
        for k in pb.steps(N):
            u = u * 0.9
            if k == 30:
                raise ValueError("mine")
            u = u + x
        return np.sum(u)

    with pytest.raises(ValueError, match="mine"):
        pb.grad(fails, policy=pb.Binomial(3))(X)


def test_left_by_break_in_a_followed_step():
    def left(x, policy_n):
        u = x
        for k in pb.steps(policy_n):
            u = u * 0.9
            if k == 30:
                break
            u = u + x
        return np.sum(u * u)

    wanted = pb.grad(left)(X, N).tobytes()
    assert pb.grad(left, policy=pb.Binomial(3))(X, N).tobytes() == wanted


BUFFERS = """
import numpy as np

def step(u, filled):
    z = np.zeros(6)
    z[0] = 0.5 if filled else 0.0
    z[1:] = u[1:]
    return np.sin(z) * (1.0 + z[0]) * 0.5 + u * 0.5

def joined(u, others):
    return np.sum(np.stack([u, *others]), 0) * 0.4
"""


@pytest.mark.parametrize("policy", [pb.Binomial(3), pb.Recompute(), pb.Periodic(7)], ids=repr)
def test_records_of_more_or_fewer_operands_are_others(policy, tmp_path):
    """A buffer is blank when it is written first, or has contents; a call is given one array more."""
    (tmp_path / "buffers.py").write_text(BUFFERS)
    adopted = pb.adopt(tmp_path / "buffers.py")

    def program(x, filled, several):
        u = x
        for k in pb.steps(N):
            u = adopted.step(u, filled(k))
            u = adopted.joined(u, [ROWS[0]] * several(k))
        return np.sum(u * u)

    late, early, never = (lambda k: k >= N // 2), (lambda k: k < N // 2), (lambda _: False)
    for filled, several in ((late, early), (early, late), (late, never), (early, never), (never, late)):
        given = X, filled, several
        wanted = pb.grad(program)(*given)
        for staging in ("off", "numpy"):
            with pb.using(staging=staging):
                assert pb.grad(program, policy=policy)(*given).tobytes() == wanted.tobytes()
