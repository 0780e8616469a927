"""Arrays that leave: used again when nobody has them."""

import sys
import warnings
from weakref import ref

import numpy as np
import pytest
from tests.staging.generated.both_ways import the_stage

import pullback as pb
from pullback.staging.generated.workspaces import MOST_FRESH, MOST_LENT, Arrays, Fresh, LentArrays


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


def test_functions_of_one_execution_share_buffers_but_one_has_different_ones():
    arrays, wide, narrow = Arrays(), ((3000,), np.dtype(float)), ((2000,), np.dtype(float))
    one, other = arrays.buffers_of([wide, None, wide]), arrays.buffers_of([narrow, wide])
    assert one[0] is not one[2] and one[1] is None
    assert other[1] is one[0]
    assert arrays.fresh_of([wide, narrow, wide])[0] is arrays.fresh_of([wide])[0]


def test_who_waits_in_between_has_buffers_of_his_own():
    arrays, wide = Arrays(), ((3,), np.dtype(float))
    (shared,) = arrays.buffers_of([wide])
    (own,) = arrays.buffers_of([wide], own=True)
    assert own is not shared
    assert arrays.buffers_of([wide])[0] is shared


def test_arrays_that_all_are_held_are_given_up_for_newer_ones():
    fresh = Fresh((3,), np.dtype(float))
    held = [fresh() for _ in range(2 * MOST_FRESH)]
    place = held[-1].__array_interface__["data"][0]
    del held[-1]
    assert fresh().__array_interface__["data"][0] == place


def test_what_a_staged_gradient_hands_out_is_its_own_and_is_not_copied():
    @pb.staged
    def f(x, y):
        return np.sum(np.sin(x) * (x @ y))

    x, copied = np.linspace(0.0, 1.0, 4096).reshape(64, 64), []
    gradient = pb.grad(f, (0, 1))
    found = [gradient(x, x + 1.0) for _ in range(5)]
    assert len({part.__array_interface__["data"][0] for parts in found for part in parts}) == 10
    assert "f0()" in the_stage().reverse.text

    def watch(frame, event, called):
        if event == "c_call" and called.__name__ == "copy" and isinstance(called.__self__, np.ndarray):
            copied.append(called.__self__.shape)

    sys.setprofile(watch)
    try:
        gradient(x, x + 1.0)
    finally:
        sys.setprofile(None)
    assert copied == []


def place_of(array):
    return array.__array_interface__["data"][0]


def reshaped(array):
    array.shape = (2, 300)


def locked(array):
    array.flags.writeable = False


def told_otherwise(array):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of NumPy 2.5: users may do it still
        array.dtype = np.int64


def put_elsewhere(array):
    content = bytes(array.nbytes)
    array.__setstate__((1, array.shape, array.dtype, False, content))


def nothing(array):
    pass


@pytest.mark.parametrize(
    ("have", "comes_again"),
    [
        (nothing, True),
        (lambda array: array[1:], False),
        (memoryview, False),
        (ref, False),
        (reshaped, False),
        (locked, False),
        (told_otherwise, False),
        (put_elsewhere, False),
    ],
    ids=["nothing", "a view", "a buffer", "a weak ref", "another shape", "no writing", "another dtype", "elsewhere"],
)
def test_what_users_get_is_used_again_when_they_have_let_go_of_it_as_it_was(have, comes_again):
    kept: dict = {}
    lent = LentArrays(((600,), np.dtype(float)), kept)
    array = lent()
    has, place = have(array), place_of(array)
    del array
    made = lent()
    assert (place_of(made) == place) == comes_again
    assert made.shape == (600,) and made.dtype == float and made.flags.writeable
    held = [made, *(lent() for _ in range(2 * MOST_LENT))]
    assert len({id(array) for array in held}) == len(held)
    assert len(kept) == MOST_LENT and all(id(array) == key for key, array in kept.items())
    del has


def test_gradients_that_are_dropped_leave_their_memory_to_the_next():
    gradient = pb.grad(pb.staged(lambda x, y: np.sum(np.sin(x) * y)), (0, 1))
    x, y = np.linspace(0.0, 1.0, 4096), np.linspace(1.0, 2.0, 4096)
    for _ in range(40):
        places = [place_of(part) for part in gradient(x, y)]
    again = gradient(x, y)
    assert [place_of(part) for part in again] == places
    other = gradient(2 * x, y)
    assert not {place_of(part) for part in other} & {*places}
    with pb.using(staging="off"):
        for found, at in ((again, x), (other, 2 * x)):
            assert [part.tobytes() for part in found] == [part.tobytes() for part in gradient(at, y)]
