"""``clip``, ``select`` and ``choose`` at bounds, by masks, and where they are called wrongly."""

import numpy as np
import pytest
from tests.primitives.gradients import same, slopes

import pullback as pb


def test_clip_at_its_bounds_and_with_crossed_bounds():
    x, low, high = [-1.0, 0.0, 0.5, 1.0, 2.0, 0.5], [0.0] * 5 + [3.0], [1.0] * 6
    np.testing.assert_array_equal(slopes(np.clip, x, low, high), [0, 1, 1, 1, 0, 0])
    np.testing.assert_array_equal(slopes(np.clip, x, low, high, by=1), [1, 0, 0, 0, 0, 0])
    np.testing.assert_array_equal(slopes(np.clip, x, low, high, by=2), [0, 0, 0, 0, 1, 1])


def test_select_and_choose_say_what_is_wrong():
    x = np.ones(3)
    with pytest.raises(ValueError, match="1 choices for 2 conditions"):
        slopes(lambda x: np.select([x > 0, x > 1], [x]), x)
    with pytest.raises(TypeError, match="condition 0 has dtype int64"):
        slopes(lambda x: np.select([np.arange(3)], [x]), x)
    with pytest.raises(ValueError, match="indices from 0 to 5, but 2 choices"):
        slopes(lambda x: np.choose(np.array([0, 5, 1]), [x, x]), x)
    with pytest.raises(TypeError, match="a tracer takes no where="):
        slopes(lambda x: np.clip(x, 0, 1, where=x > 0), x)
    with pytest.raises(ValueError, match="bounds twice"):
        slopes(lambda x: np.clip(x, 0, 1, min=0), x)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a_max'"):
        slopes(lambda x: np.clip(x, 0), x)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 1.0), (-1.0, None)])
def test_an_infinite_cotangent_does_not_reach_what_clip_cuts_off(bounds):
    cut = [k for k, (x, bound) in enumerate(zip((-2.0, 2.0), bounds, strict=True)) if bound is not None]
    gradient = pb.vjp(lambda x: np.clip(x, *bounds), np.array([-2.0, 2.0, 0.0]))[1](np.array([np.inf, np.nan, np.inf]))[
        0
    ]
    same(gradient[cut], np.zeros(len(cut)))
    assert gradient[2] == np.inf
