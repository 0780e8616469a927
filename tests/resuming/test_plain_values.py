"""Values as JSON and back: every bit, and errors for what cannot be written."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pullback as pb
from pullback.memory.entry_parts import Part
from pullback.resuming.plain_values import decoded, encoded

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text() | st.binary()
ARRAYS = hnp.arrays(
    hnp.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufc"), hnp.array_shapes(min_dims=0, min_side=0)
)
VALUES = st.recursive(
    SCALARS | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.tuples(st.integers(), st.integers()), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float | complex):
        return np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return a == b


@settings(max_examples=40)
@given(VALUES)
def test_every_bit_comes_back(value):
    assert same(decoded(json.loads(json.dumps(encoded(value)))), value)


def test_random_states_come_back():
    rng = np.random.default_rng(3)
    assert decoded(json.loads(json.dumps(encoded(rng.bit_generator.state)))) == rng.bit_generator.state
    legacy = np.random.RandomState(3).get_state(legacy=False)
    assert same(decoded(json.loads(json.dumps(encoded(legacy)))), legacy)


def test_parts_and_nans():
    assert decoded(encoded(Part(3, 80))) == Part(3, 80)
    assert math.copysign(1, decoded(encoded(-math.nan))) == -1


@pytest.mark.parametrize("value", [object(), np.array([None]), np.zeros(2, [("a", "f8")]), {1: {2, 3}}])
def test_other_values_are_refused(value):
    with pytest.raises(pb.ResumeError, match="no journal can hold it"):
        encoded(value)
