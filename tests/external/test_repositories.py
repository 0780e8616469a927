"""Programs of other people's repositories, unmodified, through ``pb.adopt``, where ``PULLBACK_REPOSITORIES`` names a
folder of checkouts (``python-sgp4`` for ``brandon-rhodes/python-sgp4``): the copy has the bits of the original, its
gradient the rate of a Taylor test, and every policy the same bits. Where the original cannot be imported, for want
of another library, it is skipped.
"""

import importlib
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.external.other_kinds import OTHER_KINDS
from tests.external.repositories import REPOSITORIES

import pullback as pb

FOLDER = Path(os.environ.get("PULLBACK_REPOSITORIES", "no-folder"))
POLICIES = (pb.Recompute(), pb.Binomial(3), pb.Budget("1 GB"))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not FOLDER.is_dir(), reason="PULLBACK_REPOSITORIES names no folder of checkouts"),
    pytest.mark.filterwarnings("ignore"),  # theirs
]


@pytest.mark.parametrize("repository", [*REPOSITORIES, *OTHER_KINDS], ids=lambda one: f"{one.name} {one.what}")
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
    finally:
        for name in set(sys.modules) - known:
            if name.partition(".")[0] == "pullback_adopted":
                del sys.modules[name]
