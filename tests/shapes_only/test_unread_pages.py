"""Addresses without memory: whoever reads there is found out."""

import numpy as np
import pytest

import pullback as pb
from pullback.shapes_only.unread_pages import CHUNK, region_of

MORE = 1 << 21


def by_the_first_element(x):
    y = np.exp(x)
    return np.sum(y * y if np.asarray(pb.value(y))[0] > 0.5 else y)


def by_a_copy_far_off(x):
    return np.sum(np.exp(x) if np.array(pb.value(x)[MORE - 5 :]).any() else x)


def at_the_end(x):
    y = np.sum(x * x)
    return (y, None) if np.asarray(pb.value(x)).view(np.int64)[-1] else y


@pytest.mark.parametrize(
    ("f", "where"),
    [(by_the_first_element, "at, or just before,"), (by_a_copy_far_off, "before"), (at_the_end, "before")],
)
@pytest.mark.parametrize("look", [pb.plan, pb.saved, pb.record])
def test_a_plain_array_that_is_read_is_told(f, where, look):
    with pytest.raises(pb.ShapesOnlyError, match=rf"a value, which was read .* is needed \({where} .*\.py:\d+\)"):
        look(f, pb.spec((MORE,)))
    assert look(lambda x: np.sum(np.exp(x)), pb.spec((MORE,)))  # nothing of that is left


def test_an_argument_that_is_no_number_of_the_trace_is_watched_too():
    with pytest.raises(pb.ShapesOnlyError, match="a value, which was read"):
        pb.plan(lambda x, k: np.sum(x[int(np.asarray(k).sum()) :]), np.ones(4), pb.spec((3,), int))


def test_a_region_tells_of_every_page():
    region = region_of(3 * CHUNK // 2 * 4096)
    assert not region.was_read()
    last = np.frombuffer(region.memory, np.uint8)[-1]
    assert (last, region.begins_read(), region.was_read()) == (0, False, True)
    region.forget()
    assert not region.was_read()
    with pytest.raises(pb.ShapesOnlyError, match=r"no addresses for an array of .* bytes"):
        region_of(1 << 62)
