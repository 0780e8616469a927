"""Pulls of calls that meet calls of others: tried without a call, compared by what they are handed."""

import numpy as np
import pytest

import pullback as pb
from pullback.rules.generated_pulls import make_form
from pullback.staging.shadow.collective_pulls import CollectivePull, ComparedPull, UnlikeError, is_taken_part_in
from pullback.words.ordered_calls import has_effect
from pullback.words.specs import spec_of

SENT = []


@pb.primitive(collective=True, guarded=False, linear=("x",))
def sent(x, *, tag="forth"):
    SENT.append(tag)
    return x * 1.0


@sent.vjp("x")
def _sent_back(ct, tag):
    return sent(ct, tag="back") if tag == "forth" else ct


X = np.array([1.0, -2.0, 3.0])


def pull_of(x=X, tag="forth"):
    form = make_form(sent, (0,), 1, frozenset(), exact=False, site=0)
    return CollectivePull(7, (form.opcode, 3, *[spec_of(x)] * len(form.specs), (tag,), 0), masks=False)


def test_a_pull_makes_its_call_and_is_known_to():
    SENT.clear()
    pull = pull_of()
    assert has_effect(pull)
    assert is_taken_part_in((pull.form.opcode,))
    (g,) = pull(X * 2.0)
    assert g.tolist() == [2.0, -4.0, 6.0]
    assert SENT == ["back"]


def test_what_nothing_reaches_is_sent_as_zeros():
    SENT.clear()
    (g,) = pull_of()(None)
    assert g.tolist() == [0.0, 0.0, 0.0]
    assert SENT == ["back"]


def test_what_it_gives_is_nobody_elses():
    ct = X * 2.0
    (g,) = pull_of(tag="back")(ct)
    assert not np.may_share_memory(g, ct)


def test_a_trial_calls_nobody_and_gives_the_same_each_time():
    SENT.clear()
    pull, trial = pull_of(), ComparedPull()
    with trial.run():
        (first,) = pull(X)
    with trial.run():
        (again,) = pull(X.copy())
    assert SENT == []
    assert first.tobytes() == again.tobytes() != X.tobytes()


def handed_on(*cts):
    def run():
        pull = pull_of()
        for ct in cts:
            pull(ct)

    return run


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (handed_on(X), handed_on(-X)),
        (handed_on(np.zeros(3)), handed_on(-np.zeros(3))),
        (handed_on(X, -X), handed_on(-X, X)),
        (handed_on(X), handed_on()),
        (handed_on(X), handed_on(X, X)),
        (handed_on(X), handed_on(X.astype(np.float32))),
    ],
)
def test_functions_that_hand_on_something_else_are_told(first, then):
    trial = ComparedPull()
    with trial.run():
        first()
    with pytest.raises(UnlikeError, match="what the reverse pass sends"), trial.run():
        then()


def test_nothing_that_comes_is_what_zeros_are():
    trial = ComparedPull()
    with trial.run():
        handed_on(None)()
    with trial.run():
        handed_on(np.zeros(3))()
