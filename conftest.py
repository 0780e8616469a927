"""How every run of the tests is carried out, the plugins' too: the share of a long table that is run by default, and
no collection of garbage looks at the tests themselves."""

import gc
from collections import Counter
from collections.abc import Hashable, Iterator

import pytest
from tests.shares import in_share


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The tests are made with the collector off, and are put where it never looks: of tens of thousands of them one
    collection takes half a second, and many tests collect."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def collections_start_here() -> None:
    """What earlier modules left for good, such as caches and reports, is not looked at again either."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of every test that bears ``share(n, of)`` the cases outside its share become slow.

    ``of`` tells from a case's parameters which group it is one of; without it, the first word of the case's name does.
    Of each group the first case and an even one in n of the others are run by default. ``turn`` gives tests that share
    a table other cases of it. Cases that the command line names are run in any case.
    """
    if any(arg.endswith("]") for arg in config.args):
        return
    seen: Counter[Hashable] = Counter()
    for item in items:
        mark = item.get_closest_marker("share")
        if mark is None:
            continue
        assert isinstance(item, pytest.Function)
        of = mark.kwargs.get("of")
        which = of(**item.callspec.params) if of else item.callspec.id.split()[0]
        group = (item.path, item.originalname, which)
        if not in_share(seen[group], mark.args[0], mark.kwargs.get("turn", 0)):
            item.add_marker(pytest.mark.slow)
        seen[group] += 1
