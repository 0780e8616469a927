"""The pytest plugin that comes with pullback: the marker ``peak("200 MB")`` and the fixture ``profile``.

pytest imports it in every run, wherever pullback is installed. So it is a package of its own, and imports nothing but
pytest before one of the two is used.
"""

from collections.abc import Iterator
from typing import Any

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The marker is known."""
    config.addinivalue_line(
        "markers", "peak(budget): no reverse pass of the test may hold more bytes at its peak, such as '200 MB'"
    )


@pytest.fixture
def profile() -> Iterator[Any]:
    """What ``pullback.profile()`` tells of all gradients that the test computes: ``profile.assert_peak("200 MB")``."""
    import pullback  # noqa: PLC0415  see above

    with pullback.profile() as watch:
        yield watch


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    """A test that is marked fails where a pass has held more."""
    mark = item.get_closest_marker("peak")
    if mark is None:
        return (yield)
    if len(mark.args) != 1 or mark.kwargs:
        raise pytest.UsageError(
            f"the marker peak of {item.name} takes the bytes that a pass may hold, and nothing else; write "
            '@pytest.mark.peak("200 MB")'
        )
    import pullback  # noqa: PLC0415  see above

    with pullback.profile() as watch:
        result = yield
    watch.assert_peak(*mark.args)
    return result
