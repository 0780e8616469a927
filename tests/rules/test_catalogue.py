"""Duplicates, plugins that fail, and functions whose plugin is not there: one clear error each."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import numpy as np
import pytest

import pullback as pb
from pullback.rules import catalogue
from pullback.words import plugins
from pullback.words.errors import PluginError, RegistrationError, UnknownFunctionError

pytestmark = pytest.mark.usefixtures("state_restored")


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


def test_two_threads_that_need_a_plugin_first_at_the_same_moment():
    program = """
import threading
import numpy as np
import pullback as pb
barrier, found = threading.Barrier(2), []
def run():
    barrier.wait()
    found.append(pb.grad(lambda x: np.sum(np.outer(x, x)))(np.ones(2)).tolist())  # of pullback-linalg
threads = [threading.Thread(target=run) for _ in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[[4.0, 4.0], [4.0, 4.0]]", done.stderr
