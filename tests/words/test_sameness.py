"""Whether two values say the same: in type, and to the last bit."""

import numpy as np
import pytest

from pullback.words.sameness import same_content

A = np.arange(6.0)


class Anything:
    """Its ``==`` says more than its content."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return True

    __hash__ = None


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (None, None),
        ((slice(1, None), 2), (slice(1, None), 2)),
        ({"axis": (0, 1)}, {"axis": (0, 1)}),
        (A, A.copy()),
        (np.dtype("f8"), np.dtype("f8")),
        (float("nan"), float("nan")),
        ([1, "a"], [1, "a"]),
    ],
)
def test_the_same_content(a, b):
    assert same_content(a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, True),
        (1, 1.0),
        (slice(1, 3), slice(1.0, 3)),
        (slice(0.0, 1), slice(-0.0, 1)),
        (np.dtype("f8"), np.dtype(">f8")),
        (Anything(1), Anything(1)),
        (complex(0.0, 0.0), complex(0.0, -0.0)),
        (0.0, -0.0),
        (np.float64(0.0), np.float64(-0.0)),
        (slice(1, None), slice(2, None)),
        ({"axis": 0}, {"axis": 0, "keepdims": True}),
        ((1,), [1]),
        (A, A * 1.0000001),
        (np.zeros(2), -np.zeros(2)),
        (np.arange(3), np.arange(6)[::2]),
        (A, A.astype("f4")),
    ],
)
def test_other_content(a, b):
    if isinstance(a, np.ndarray) and a.dtype.kind == "i":
        b = np.arange(0, 6)[::2] // 2  # the same numbers
        b = np.repeat(b, 2)[::2]
    assert not same_content(a, b)
