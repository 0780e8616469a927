"""Programs of other people's released packages, unmodified, through ``pb.adopt``, where they are installed."""

import importlib

import numpy as np
import pytest
from tests.external.released import AT, RELEASED

import pullback as pb

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # theirs
POLICIES = (pb.Recompute(), pb.Binomial(3), pb.Budget("1 GB"), pb.Keep())


def detected(fdtd, permittivity):
    """What a detector sees behind an object, in a field that starts at a line source between two absorbing layers."""
    fdtd.set_backend("numpy")
    grid = fdtd.Grid(shape=(30, 30, 1), grid_spacing=1e-7, permittivity=1.0)
    grid[0:5, :, :], grid[-5:, :, :] = fdtd.PML(name="left"), fdtd.PML(name="right")
    grid[:, 0, :] = fdtd.PeriodicBoundary(name="around")
    grid[8:9, 8:22, 0] = fdtd.LineSource(period=5e-15, name="source")
    grid[20:21, 8:22, 0] = fdtd.LineDetector(name="detector")
    grid[13:18, 10:20, 0:1] = fdtd.Object(permittivity=permittivity, name="object")
    grid.run(40, progress_bar=False)
    return sum(np.sum(field**2) for field in grid.detector.detector_values()["E"])


@pytest.mark.parametrize("permittivity", [2.25, np.full((5, 10, 1, 3), 2.25)], ids=["number", "array"])
def test_a_recorded_field_by_the_permittivity_of_an_object(permittivity):
    original = pytest.importorskip("fdtd", reason="fdtd is not installed: python -m pip install fdtd")
    copy = pb.adopt("fdtd")
    assert copy is not original
    f = lambda x: detected(copy, x)  # noqa: E731 - traced
    assert f(permittivity) == detected(original, permittivity)
    gradient = pb.grad(f)(permittivity)
    direction, h = np.cos(np.arange(np.size(permittivity))).reshape(np.shape(permittivity)), 1e-4
    ahead, behind = (detected(importlib.import_module("fdtd"), permittivity + s * h * direction) for s in (1, -1))
    np.testing.assert_allclose(np.sum(gradient * direction), (ahead - behind) / (2 * h), rtol=1e-6)
    for policy in POLICIES:
        np.testing.assert_array_equal(pb.grad(f, policy=policy)(permittivity), gradient)


@pytest.mark.parametrize("name", RELEASED)
def test_a_small_package_as_it_is_released(name):
    module, program = RELEASED[name]
    pytest.importorskip(module, reason=f"{name} is not installed: python -m pip install {name}")
    f = lambda x: program(pb.adopt, x)  # noqa: E731 - traced
    assert f(AT) == program(importlib.import_module, AT)
    value, gradient = pb.value_and_grad(f)(AT)
    assert value == f(AT)
    assert pb.testing.taylor_test(f, AT, step=1e-3).rate >= 1.95
    for policy in POLICIES:
        np.testing.assert_array_equal(pb.grad(f, policy=policy)(AT), gradient)
