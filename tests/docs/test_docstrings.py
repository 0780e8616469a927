"""The docstrings of public names: their sections name every parameter, and their examples run."""

import doctest
import inspect
import re
from importlib import import_module
from io import StringIO
from types import GenericAlias as Alias

import pytest

import pullback as pb

MODULES = {
    "pullback": pb,
    "pullback.schedules": pb.schedules,
    "pullback.stores": pb.stores,
    "pullback.testing": pb.testing,
    "pullback.backends": pb.backends,
}
PLUGINS = {
    "pullback_autograd": ["install", "installed", "uninstall"],  # the other names are autograd's
    "pullback_dask": ["SumOverItems", "worker_environment"],
    "pullback_jax": ["to_jax"],
    "pullback_mpi": ["Communicator", "RankError"],
    "pullback_numba": ["arrange", "compiled_loop"],
    "pullback_torch": ["to_torch"],
}
NEVER_RAISE = {"pullback.stop_gradient", "pullback.value"}


def public(module):
    return [name for name in dir(module) if not name.startswith("_")]


def everything():
    for where, module in MODULES.items():
        for name in pb.__all__ if module is pb else public(module):
            yield f"{where}.{name}", getattr(module, name)


def functions():
    for name, found in everything():
        if callable(found) and not inspect.isclass(found) and not isinstance(found, pb.Registry | Alias):
            yield name, found


def classes():
    for name, found in everything():
        # Errors have pages, docs/errors. A tracer is what the guide is about.
        if inspect.isclass(found) and not issubclass(found, Exception | pb.Tracer):
            yield name, found


def sections(text):
    """The sections of a docstring, by their titles."""
    parts = re.split(r"^([A-Z]\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def told(section):
    """The names at the heads of a section."""
    heads = re.findall(r"^(\S.*)$", section, flags=re.MULTILINE)
    return {part.strip().lstrip("*") for head in heads for part in head.split(",")}


FUNCTIONS = dict(functions())
CLASSES = dict(classes())
MADE_OTHERWISE = {"pullback.Primitive", "pullback.Composite", "pullback.Agreement"}
"""What users make with a function, which has the parameters, or write as a class of their own."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_sections_of_a_function_say_what_it_takes_gives_and_raises(name):
    function = FUNCTIONS[name]
    found = sections(inspect.getdoc(function))
    wanted = {"Returns", *([] if name in NEVER_RAISE else ["Raises"])}
    assert wanted <= set(found), f"{name} lacks {wanted - set(found)}"
    assert {"Example", "Examples"} & set(found), f"{name} has no example"
    taken = set(inspect.signature(function).parameters)
    assert told(found.get("Parameters", "")) == taken, f"{name}: {told(found.get('Parameters', '')) ^ taken}"


def of_plugins():
    for module, names in PLUGINS.items():
        try:
            imported = import_module(module)
        except ImportError:  # the package that it is for is not installed
            continue
        for name in names:
            yield f"{module}.{name}", getattr(imported, name)


OF_PLUGINS = dict(of_plugins())


def test_every_public_name_of_a_plugin_is_looked_at():
    for module, names in PLUGINS.items():
        if f"{module}.{names[0]}" in OF_PLUGINS and module not in ("pullback_autograd", "pullback_numba"):
            bare = {"PRIMITIVES", "WorkerSettingsWarning", "MismatchError", "PartError"}  # which take nothing
            assert set(import_module(module).__all__) - bare == set(names)


@pytest.mark.parametrize("name", OF_PLUGINS)
def test_the_sections_of_a_name_of_a_plugin_say_what_it_takes(name):
    named = OF_PLUGINS[name]
    parts = {name: named}
    if inspect.isclass(named) and not issubclass(named, Exception):
        methods = {name: method for name, method in inspect.getmembers(named, inspect.isfunction) if name[0] != "_"}
        parts |= {name: method for name, method in methods.items() if sections(inspect.getdoc(method) or "")}
    for part, found in parts.items():
        said = sections(inspect.getdoc(found) or "")
        taken = set(inspect.signature(found).parameters) - {"self"}
        assert told(said.get("Parameters", "")) | told(said.get("Attributes", "")) == taken, part
        assert inspect.isclass(found) or found is not named or {"Returns", "Raises", "Example"} <= set(said), part


@pytest.mark.parametrize("name", sorted(CLASSES.keys() - MADE_OTHERWISE))
def test_the_sections_of_a_class_say_what_it_is_made_of(name):
    found = sections(inspect.getdoc(CLASSES[name]))
    taken = set(inspect.signature(CLASSES[name]).parameters)
    said = told(found.get("Parameters", "")) | told(found.get("Attributes", ""))
    assert said == taken, f"{name}: {said ^ taken}"


RUN = FUNCTIONS | CLASSES | {name: found for name, found in OF_PLUGINS.items() if not name.endswith("Error")}


@pytest.mark.parametrize("name", RUN)
def test_its_examples_run(name):
    named = RUN[name]
    text, report = inspect.getdoc(named), StringIO()
    names = vars(inspect.getmodule(named)).copy() if name in CLASSES else {}
    test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.write)
    assert test.examples, f"{name} has no example"
    assert not report.getvalue(), report.getvalue()
