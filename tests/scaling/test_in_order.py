"""Futures come in the order in which they were asked for, and few of them are under way."""

from concurrent.futures import Future

import pytest

from pullback.scaling import in_order


def finished(k):
    future = Future()
    future.set_result(k)
    return future


@pytest.mark.parametrize("window", [1, 3, 20])
def test_the_order_is_that_of_asking_whatever_is_done_first(window):
    asked, taken, most = [], 0, 0

    def futures():
        for k in range(9):
            asked.append(k)
            yield finished(k)

    def last_first(under_way):
        return {max(under_way, key=Future.result)}

    for k, future in enumerate(in_order(futures(), lambda: window, last_first)):
        taken += 1
        most = max(most, len(asked) - taken + 1)
        assert future.result() == k
    assert taken == 9
    assert most == min(window, 9)


def test_the_window_may_grow():
    windows, asked = iter([1, 1, 5, 5, 5, 5, 5, 5, 5, 5]), []
    futures = (asked.append(k) or finished(k) for k in range(9))
    first = in_order(futures, lambda: next(windows), set)
    assert (next(first).result(), len(asked)) == (0, 1)
    assert (next(first).result(), len(asked)) == (1, 5 + 1)


def test_what_is_left_is_cancelled():
    pending = [Future() for _ in range(3)]
    pending[0].set_result(0)
    found = in_order(iter(pending), lambda: 3, lambda under_way: {f for f in under_way if f.done()})
    next(found)
    found.close()
    assert [future.cancelled() for future in pending] == [False, True, True]
