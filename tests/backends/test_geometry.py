"""Where a view begins in its array; None for what is no slice with steps of one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pullback.backends.geometry import starts_in


@given(st.data())
def test_slices_of_arrays_in_any_order_are_found(data):
    whole = np.zeros(data.draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    whole = whole.transpose(data.draw(st.permutations(range(whole.ndim))))
    for _ in range(data.draw(st.integers(0, 2))):  # a slice of a slice is one of the first
        whole = whole[tuple(slice(data.draw(st.integers(0, n - 1)), None) for n in whole.shape)]
    starts = tuple(data.draw(st.integers(0, n - 1)) for n in whole.shape)
    ends = tuple(data.draw(st.integers(a + 1, n)) for a, n in zip(starts, whole.shape, strict=True))
    part = whole[tuple(map(slice, starts, ends))]
    assert starts_in(part, whole) == starts


@pytest.mark.parametrize(
    "part",
    [
        lambda x: x[::2], lambda x: x[:, ::-1], lambda x: x.T, lambda x: x[1], lambda x: x[None], lambda x: x[:0],
        lambda x: x.reshape(3, 8), lambda x: x.view("i8"), lambda x: x[1:, 1:].T,
        lambda x: np.broadcast_to(x[:1], (4, 6)), lambda x: x[0, 0],
    ],
)  # fmt: skip
def test_other_views_are_not(part):
    x = np.arange(24.0).reshape(4, 6)
    assert starts_in(part(x), x) is None


def test_an_array_that_is_no_dense_one_has_no_places():
    x = np.broadcast_to(np.arange(6.0), (4, 6))
    assert starts_in(x[1:], x) is None
    assert starts_in(x[1:], np.zeros((4, 6))[::-1]) is None
