"""Programs of other people's repositories, unmodified, through ``pb.adopt``, where ``PULLBACK_REPOSITORIES`` names a
folder of checkouts (``python-sgp4`` for ``brandon-rhodes/python-sgp4``, ``openpiv-python`` for that of OpenPIV): the
copy has the bits of the original, its gradient the rate of a Taylor test, and every policy the same bits. Tangents and
second derivatives agree for those of two files. Where the original cannot be imported, for want of another library,
it is skipped.
"""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.external.further_kinds import FURTHER_KINDS
from tests.external.latest_kinds import LATEST_KINDS
from tests.external.other_kinds import OTHER_KINDS
from tests.external.repositories import REPOSITORIES

import pullback as pb

FOLDER = Path(os.environ.get("PULLBACK_REPOSITORIES", "no-folder"))
POLICIES = (pb.Recompute(), pb.Binomial(3), pb.Budget("1 GB"), pb.Keep())

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="PULLBACK_REPOSITORIES names no folder of checkouts"),
    pytest.mark.filterwarnings("ignore"),  # theirs
]


TWICE = (*FURTHER_KINDS, *LATEST_KINDS)
ALL = (*REPOSITORIES, *OTHER_KINDS, *TWICE)


@pytest.mark.parametrize("repository", ALL, ids=lambda one: f"{one.name} {one.what}")
def test_an_unmodified_program(repository, monkeypatch):
    place = FOLDER / repository.name.partition("/")[2] / repository.folder
    if not place.is_dir():
        pytest.skip(f"{place} is not there")
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("MPLBACKEND", "Agg")
    known = set(sys.modules)
    try:
        original = repository.program(importlib.import_module)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error}")
    try:
        copy, x = repository.program(pb.adopt), repository.at
        expected = [np.asarray(original(x)).tobytes() for _ in range(2)]  # one that keeps state differs from the first
        assert [np.asarray(copy(x)).tobytes() for _ in range(2)] == expected
        np.testing.assert_allclose(pb.value_and_grad(copy)(x)[0], copy(x), rtol=1e-13)
        assert pb.testing.taylor_test(copy, x, step=repository.step).rate >= 1.95
        gradient = pb.grad(copy)(x)
        assert all(np.array_equal(pb.grad(copy, policy=policy)(x), gradient) for policy in POLICIES)
        if repository in TWICE:
            assert_second_order(copy, x, gradient, repository.step * 1e-2)
    finally:
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "pullback_adopted":
                del sys.modules[name]


def assert_second_order(f, x, gradient, step):
    along = np.cos(np.arange(np.size(x)) * 1.7).reshape(np.shape(x))[()]
    np.testing.assert_allclose(pb.jvp(f, (x,), (along,))[1], np.sum(gradient * along), rtol=1e-10)
    there, back = (pb.grad(f)(x + sign * step * along) for sign in (1, -1))
    product = (there - back) / (2 * step)
    np.testing.assert_allclose(pb.hvp(f, (x,), (along,)), product, rtol=1e-4, atol=1e-4 * np.max(np.abs(product)))
