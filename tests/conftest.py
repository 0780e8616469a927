"""Settings for every test: how Hypothesis draws, seeded generators, and that no test leaves the process changed."""

import gc
import importlib
import os
import pkgutil
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

# No deadline: times are measured in benchmarks/, and one slow call on a shared machine is no fault of the code.
# Too slow a draw is likewise a matter of the machine.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
# In continuous integration every run draws the same programs, so that a change is judged by what it changes. The search
# for new failures is left to local runs, which draw afresh and remember failures in .hypothesis, and to
# `sh .ci/test -m slow`.
settings.register_profile("ci", settings.get_profile("local"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Whoever works on pullback sees all of its frames.
os.environ.setdefault("PULLBACK_TRACEBACK", "full")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator of its own for each test: never a global seed, so that the order of tests means nothing."""
    return np.random.default_rng(20000115)


@pytest.fixture
def nothing_is_known() -> Iterator[None]:
    """No stage, and nothing else that is learnt of functions, from before the test, nor left by it."""
    from pullback.staging.generated.shelf import forget  # noqa: PLC0415 - a test may look at a broken module

    forget()
    yield
    forget()


@pytest.fixture(scope="session")
def all_loaded() -> None:
    """Every module is there before the first test that measures memory: what a module takes that is imported at its
    first use would else be measured by whichever test runs first."""
    import pullback as pb  # noqa: PLC0415 - as above

    for module in pkgutil.walk_packages(pb.__path__, "pullback."):
        if module.name not in ("pullback.__main__", "pullback.cli"):  # the commands' own imports are slow
            importlib.import_module(module.name)


@pytest.fixture
def state_restored() -> Iterator[None]:
    """After every refusal no trace is under way and the next gradient is right."""
    import pullback as pb  # noqa: PLC0415
    from pullback.memory.in_force import depth  # noqa: PLC0415

    yield
    x = np.array([0.5, -1.25, 2.0])
    assert depth() == 0
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(x), 2 * x)
    looped = pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u * x, x, policy=pb.Binomial(1))))
    np.testing.assert_array_equal(looped(x), 4 * x**3)


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves NumPy's error handling, its print options, the collector or a thread changed."""
    before = process_state()
    yield
    after = process_state()
    assert after == before, (
        f"the test left the process changed: before {before}, after {after}; restore it in a finally or a fixture"
    )


def process_state() -> dict[str, object]:
    """What a test could leave behind, as a value to compare."""
    return {
        "errors": np.geterr(),
        "print options": {k: v for k, v in np.get_printoptions().items() if k != "formatter"},
        "collector enabled": gc.isenabled(),
        "threads": {t.name for t in threading.enumerate() if not t.daemon},
    }
