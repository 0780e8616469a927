"""``explain_stage``: what is known of a body, in words."""

import numpy as np
import pytest

import pullback as pb
from pullback.instruments.inspect.stage_texts import StageTexts
from pullback.staging.generated.shelf import forget


def gradient(body):
    return pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, body, x, staging="numpy")))(np.ones(3))


def test_a_staged_body_shows_its_functions_and_an_unstaged_one_says_why():
    forget()
    staged, read = (lambda k, u: np.sin(u) * 0.5), (lambda k, u: u * 0.1 + pb.stop_gradient(u))
    gradient(staged)
    gradient(read)
    found = pb.explain_stage(staged)
    assert isinstance(found, StageTexts)
    assert len(found.stages) == 1
    assert not found.why
    assert "sin(v0)" in str(found)
    assert "works in 0 B" in str(found)
    assert "recorded, since" in str(pb.explain_stage(read))


def test_marked_steps_show_what_executes_them_again():
    def marked(x):
        for _ in pb.steps(9):
            x = np.sin(x) * 0.5
        return np.sum(x)

    with pb.using(staging="numpy"):
        pb.grad(marked, policy=pb.Binomial(2))(np.ones(3))
    found = pb.explain_stage(marked)
    back, forward = found.stages
    assert "def reverse" in back
    assert "def record" in forward
    assert "sin(v0)" in back
    assert "sin(v0)" in forward


def test_why_marked_steps_are_recorded():
    def marked(x):
        u = x * 1.0
        for _ in pb.steps(20):
            u += 0.1 * x
        return np.sum(u)

    with pb.using(staging="numpy"):
        pb.grad(marked)(np.ones(3))
    assert "own run of marked steps cannot be followed: an operation is met that is not followed" in str(
        pb.explain_stage(marked)
    )


def test_a_body_that_nobody_has_run():
    assert "seen twice" in str(pb.explain_stage(lambda k, u: u))


def test_what_is_no_function_is_refused():
    with pytest.raises(pb.StructureError, match="explain_stage takes the body of a loop"):
        pb.explain_stage(3)
