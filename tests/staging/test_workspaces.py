"""Arrays that leave: used again when nobody has them."""

import numpy as np

from pullback.staging.workspaces import MOST_FRESH, Fresh


def test_an_array_that_leaves_is_used_again_when_nobody_has_it():
    fresh = Fresh((3,), np.dtype(float))
    first = fresh()
    place = first.__array_interface__["data"][0]
    second = fresh()
    assert second is not first
    del first
    assert fresh().__array_interface__["data"][0] == place
    held = [fresh() for _ in range(2 * MOST_FRESH)]
    assert len({id(array) for array in held}) == len(held)


def test_a_view_of_what_left_keeps_it():
    fresh = Fresh((3,), np.dtype(float))
    view = fresh()[1:]
    assert not np.shares_memory(view, fresh())
