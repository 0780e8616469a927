"""What the tests of this room share."""

import os

import pytest


@pytest.fixture(autouse=True, scope="module")
def synced():
    """The files that were synchronised, which is slow, for when the power fails, and left out here."""
    with pytest.MonkeyPatch.context() as patched:
        numbers: list[int] = []
        patched.setattr(os, "fsync", numbers.append)
        yield numbers
