"""Stages are shared by all loops over one body: each test begins without any."""

import pytest

from pullback.staging import shelf


@pytest.fixture(autouse=True)
def nothing_is_known():
    shelf.forget()
    yield
    shelf.forget()
