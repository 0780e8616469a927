"""One term: it knows what was in force where it was made, and whether it has travelled; two are added leaf by leaf."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.scaling.summed import X, misfit, raises_at_two

import pullback as pb
from pullback.scaling import Term, plus


def test_a_term_that_was_pickled_knows_it():
    term = Term.here(misfit, pb.Binomial(2))
    again = pickle.loads(pickle.dumps(term))  # noqa: S301 - what was dumped just now
    assert (term.travelled, again.travelled) == (False, True)
    assert again.settings == term.settings
    assert again(X, 0.5, 0)[0] == term(X, 0.5, 0)[0]
    told = pickle.loads(pickle.dumps(Term.here(raises_at_two, None))).part_or_error(np.ones(1), 2, 2)  # noqa: S301
    assert "raises_at_two" in told.told
    assert not Term.here(raises_at_two, None).part_or_error(np.ones(1), 2, 2).told


def test_a_function_that_ends_its_process_is_an_error_of_the_item():
    def ends(x, item):
        raise SystemExit(item)

    with ThreadPoolExecutor(1) as pool, pytest.raises(pb.WorkerError, match=r"item 1 of the sum .* SystemExit\(3\)"):
        pb.over_executor(pool, lambda x, item: ends(x, item) if item == 3 else np.sum(x), np.ones(2), [2, 3])


def test_parts_are_added_in_place_only_where_that_is_said():
    left, right = (1.0, np.ones(3)), (2.0, np.full(3, 5.0))
    value, gradient = plus(left, right)
    assert value == 3.0
    np.testing.assert_array_equal(gradient, np.full(3, 6.0))
    np.testing.assert_array_equal(left[1], np.ones(3))
    assert plus(left, right, in_place=True)[1] is left[1]


def test_a_gradient_that_is_read_only_is_not_written():
    left, right = (1.0, np.ones(3)), (2.0, np.ones(3))
    left[1].flags.writeable = False
    np.testing.assert_array_equal(plus(left, right, in_place=True)[1], np.full(3, 2.0))
