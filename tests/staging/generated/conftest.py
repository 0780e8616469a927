"""Stages are shared by all loops over one body: each test begins without any."""

import pytest


@pytest.fixture(autouse=True)
def nothing_is_known(nothing_is_known):
    return nothing_is_known
