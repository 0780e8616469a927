"""Steps that mark values are staged: the bits, and what is heard of their cotangents, are those of recorded steps."""

import numpy as np
import pytest

import pullback as pb
from pullback.loops.stepping.held_steps import StepKind
from pullback.programs.marks import named_values
from pullback.staging.marks.following import FollowedMarks

pytestmark = pytest.mark.usefixtures("nothing_is_known")
X, W = np.random.default_rng(3).uniform(0.2, 0.9, (2, 5))
N = 30
POLICIES = [pb.SaveAll(), pb.Binomial(4), pb.Recompute()]


def inner(k, u, w):
    """A value in the middle, of which the step reads a view later."""
    z = np.sin(u) * w
    part = z[1:]
    z = pb.name(z, "z")
    return u * 0.9 + 0.1 * z + 0.01 * np.sum(part)


def entering(k, u, w):
    """What enters, and what leaves."""
    u = pb.name(u, "z")
    return pb.name(np.cos(u) * w + 0.1 * u, "after", step=k)


def twice(k, u, w):
    """One value by two names, and then written to."""
    z = pb.name(pb.name(u * w, "z"), "after")
    z[0] *= 0.5
    return np.tanh(z) + 0.1 * u


def by_step(k, u, w):
    """A label of each step's own, of a number."""
    s = pb.name(np.sum(u * w), f"z{k}")
    return u * 0.9 + 0.05 * s


STEPS = {each.__name__: each for each in (inner, entering, twice, by_step)}


def looped(step):
    return lambda x, w: np.sum(pb.fori_loop(0, N, lambda k, u: step(k, u, w), x) ** 2)


def scanned(step):
    def f(x, w):
        u, ys = pb.scan(lambda u, k: (step(k, u, w), u * 0.5), x, np.arange(N))
        return np.sum(u**2) + np.sum(ys)

    return f


def marked(step):
    def f(x, w):
        for k in pb.steps(N):
            x = step(k, x, w)
        return np.sum(x**2)

    return f


def two_levels(step):
    """What enters a step lives on after it."""

    def f(x, w):
        before, u = x * 0.5, x
        for k in pb.steps(N):
            before, u = u, step(k, u, w) + 0.1 * before
        return np.sum(u * before)

    return f


KINDS = {each.__name__: each for each in (looped, scanned, marked, two_levels)}
FUNCTIONS = [pytest.param(kind, step, id=f"{kind}-{step}") for kind in KINDS for step in STEPS]


def told(kind, step, **options):
    """The gradient, and what is heard."""
    f, heard, tags = KINDS[kind](STEPS[step]), [], {"z", "after"}
    if step == "inner":
        tags = {"z"}
    if step == "by_step":
        tags = {"z0", "z29"}  # a step that a policy only advances runs on plain arrays, and marks nothing
    hear = {tag: lambda k, ct, tag=tag: heard.append((tag, k, np.asarray(ct).tobytes())) for tag in tags}
    gradients = pb.grad(f, (0, 1), on_adjoint=hear, **options)(X, W)
    return [g.tobytes() for g in gradients], heard


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize(("kind", "step"), FUNCTIONS)
def test_bits_and_what_is_heard_are_those_of_recorded_steps(kind, step, policy):
    with pb.using(staging="off"):
        wanted, heard = told(kind, step)
    assert len(heard) >= 2
    with pb.using(staging="numpy"):
        for _ in range(2):
            gradients = pb.grad(KINDS[kind](STEPS[step]), (0, 1), policy=policy)(X, W)
            assert [g.tobytes() for g in gradients] == wanted
            assert told(kind, step, policy=policy) == (wanted, heard)


@pytest.mark.parametrize("step", ["inner", "entering", "twice"])
@pytest.mark.parametrize("policy", POLICIES[:2], ids=repr)
def test_adjoints_that_are_kept_are_those_of_recorded_steps(step, policy):
    def adjoints(staging):
        with pb.using(staging=staging):
            _, pull = pb.vjp(marked(STEPS[step]), X, W, policy=policy)
            pull(1.0)
            found = [ct.tobytes() for ct in pull.adjoint("z")]
            pull.close()
        return found

    wanted = adjoints("off")
    assert len(wanted) == N
    assert adjoints("numpy") == adjoints("numpy") == wanted


def test_steps_that_mark_go_by_functions(monkeypatch):
    n_followed, n_reversed = [], []
    compute, reverse = FollowedMarks._compute, StepKind.reverse
    monkeypatch.setattr(FollowedMarks, "_compute", lambda self: (n_followed.append(1), compute(self))[1])
    monkeypatch.setattr(
        StepKind, "reverse", lambda self, *args, **options: (n_reversed.append(1), reverse(self, *args, **options))[1]
    )
    with pb.using(staging="numpy"):
        pb.grad(marked(entering))(X, W)
        assert len(n_followed) > N // 2
        pb.grad(looped(entering))(X, W)
        assert n_reversed
        n_reversed.clear()
        pb.grad(looped(entering), on_adjoint={"z": lambda k, ct: None})(X, W)
        assert not n_reversed


def test_a_loop_whose_step_0_is_followed_tells_the_tags_that_it_marks():
    f = looped(inner)
    with pb.using(staging="numpy"):
        for _ in range(3):
            _, pull = pb.vjp(f, X, W)
            pull(1.0)
            with pytest.raises(pb.StructureError, match="belong to the steps of a loop"):
                pull.adjoint("z")


@pytest.mark.parametrize("policy", POLICIES[:2], ids=repr)
def test_a_body_that_marks_may_rest(policy, monkeypatch):
    def body(k, u):
        return pb.name(np.sin(u) * 0.5, "s") + 0.5 * u

    def labelled(k, u):
        return pb.name(np.sin(u) * 0.5, "s", step=k) + 0.5 * u

    def run(staging, body, **options):
        heard = []
        hear = {"s": lambda k, ct: heard.append((k, ct.tobytes()))}
        f = lambda x: np.sum(pb.fori_loop(0, 200, body, x, staging=staging))  # noqa: E731 - differentiated
        streamed = pb.grad(f, on_adjoint=hear, **options)(X)
        assert pb.grad(f, **options)(X).tobytes() == streamed.tobytes()
        return streamed.tobytes(), heard

    wanted = run("off", body)
    assert len(wanted[1]) == 200
    assert run("numpy", body, policy=policy) == run("numpy", labelled, policy=policy) == wanted
    f = lambda x: np.sum(pb.fori_loop(0, 200, body, x, staging="numpy"))  # noqa: E731 - differentiated
    met, marked = [], named_values._marked
    monkeypatch.setattr(named_values, "_marked", lambda *given: (met.append(1), marked(*given))[1])
    pb.grad(f, policy=policy)(X)
    assert len(met) < (60 if policy == POLICIES[0] else 260)  # each run of the body meets one; the first sweep runs it
