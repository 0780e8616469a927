"""Windows that slide: every element counted in each, and views of memory that is written."""

import numpy as np
import pytest

import pullback as pb

windows = np.lib.stride_tricks.sliding_window_view
LINE = np.cos(np.arange(6.0))


# -------------------------------------------------------------------------------------------------------------- windows
def test_every_element_is_counted_in_the_windows_that_hold_it():
    assert pb.grad(lambda x: np.sum(windows(x, 3)))(LINE).tolist() == [1, 2, 3, 3, 2, 1]
    assert pb.grad(lambda x: np.sum(windows(x, (2, 2))))(np.ones((3, 3))).tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]


def test_windows_show_what_is_written_later():
    def f(x):
        y = x * 1.0
        seen = windows(y, 2)
        y[1] = 3.0 * y[0]
        return np.sum(seen * seen)

    x = LINE.copy()
    # y = x0, 3 x0, x2, ...: all but the ends are in two windows.
    expected = 2 * np.array([x[0] * (1 + 2 * 9), 0, *(2 * x[2:-1]), x[-1]])
    np.testing.assert_allclose(pb.grad(f)(x), expected, rtol=1e-14)


@pytest.mark.parametrize("writeable", [False, True])
def test_windows_are_not_written(writeable):
    def f(x):
        y = x * 1.0
        windows(y, 2, writeable=writeable)[0] = 0.0
        return np.sum(y)

    with pytest.raises(pb.WriteError, match="read-only"):
        pb.grad(f)(LINE)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: windows(x, 7), "window shape cannot be larger than input array shape"),
        (lambda x: windows(x, -1), "cannot contain negative values"),
        (lambda x: windows(x, (2, 2)), "must provide window_shape for all dimensions"),
        (lambda x: windows(x, (2, 2), 0), "Must provide matching length window_shape and axis"),
        (lambda x: windows(x, 2, 1), "axis 1 is out of bounds"),
    ],
)
def test_window_errors_are_numpys(f, words):
    with pytest.raises(ValueError, match=words):
        pb.vjp(f, LINE)
