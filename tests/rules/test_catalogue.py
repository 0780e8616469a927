"""Duplicates, plugins that fail, and functions whose plugin is not there: one clear error each."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

import pullback as pb
from pullback.memory.in_force import depth
from pullback.rules import catalogue
from pullback.words import plugins
from pullback.words.errors import PluginError, RegistrationError, UnknownFunctionError

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(autouse=True)
def state_restored():
    """After every refusal no trace is under way and the next gradient is right."""
    yield
    assert depth() == 0
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(X), 2 * X)
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u * x, x, policy=pb.Binomial(1))))(X), 4 * X**3
    )


def test_a_duplicate_registration():
    scope = pb.registry.scoped()
    with pytest.raises(
        RegistrationError,
        match=r"a primitive named 'sin' is already registered; choose another name, or work in a scoped copy",
    ):
        scope.add(pb.primitive(lambda x: x, name="sin"))
    with pytest.raises(
        RegistrationError, match=r"numpy\.sin is already served by 'sin'; 'mine' cannot serve it too.*scoped"
    ):
        scope.add(pb.primitive(lambda x: x, name="mine"), np.sin)


def test_a_plugin_that_does_not_import(monkeypatch):
    broken = EntryPoint(name="broken", value="pullback_of_nobody:PRIMITIVES", group=plugins.PRIMITIVES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: (broken,))
    scope = catalogue.Registry(plugins=True)
    with pytest.raises(
        PluginError,
        match=r"plugin 'broken' \(pullback_of_nobody:PRIMITIVES\) failed to import: ModuleNotFoundError.*reinstall or "
        r"remove",
    ):
        scope.find(np.matmul)


def test_a_plugin_that_hands_over_something_else(monkeypatch):
    odd = EntryPoint(name="odd", value="math:pi", group=plugins.PRIMITIVES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: (odd,))
    scope = catalogue.Registry(plugins=True)
    with pytest.raises(PluginError, match=r"plugin 'odd' \(math:pi\).*reinstall or remove"):
        scope.find(np.matmul)


def test_without_the_plugin_matmul_names_it():
    scope = catalogue.Registry()
    with pytest.raises(UnknownFunctionError, match=r"no primitive for numpy\.matmul: install pullback-linalg"):
        scope.find(np.matmul)
