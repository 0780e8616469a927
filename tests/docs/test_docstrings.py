"""The docstrings of public names: their sections name every parameter, and their examples run."""

import doctest
import inspect
import re
from io import StringIO

import pytest

import pullback as pb

MODULES = {"pullback": pb, "pullback.schedules": pb.schedules, "pullback.testing": pb.testing}
NEVER_RAISE = {"pullback.stop_gradient", "pullback.value"}


def public(module):
    return [name for name in dir(module) if not name.startswith("_")]


def functions():
    for where, module in MODULES.items():
        for name in pb.__all__ if module is pb else public(module):
            found = getattr(module, name)
            if callable(found) and not inspect.isclass(found) and not isinstance(found, pb.Registry):
                yield f"{where}.{name}", found


def sections(text):
    """The sections of a docstring, by their titles."""
    parts = re.split(r"^([A-Z]\w+)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


FUNCTIONS = dict(functions())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_sections_of_a_function_say_what_it_takes_gives_and_raises(name):
    function = FUNCTIONS[name]
    found = sections(inspect.getdoc(function))
    wanted = {"Returns", *([] if name in NEVER_RAISE else ["Raises"])}
    assert wanted <= set(found), f"{name} lacks {wanted - set(found)}"
    assert {"Example", "Examples"} & set(found), f"{name} has no example"
    heads = re.findall(r"^(\S.*)$", found.get("Parameters", ""), flags=re.MULTILINE)
    told = {part.strip().lstrip("*") for head in heads for part in head.split(",")}
    taken = inspect.signature(function).parameters
    assert told == set(taken), f"{name}: {told ^ set(taken)}"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_examples_run(name):
    function = FUNCTIONS[name]
    text, report = inspect.getdoc(function), StringIO()
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    doctest.DocTestRunner(optionflags=flags).run(test, out=report.write)
    assert test.examples, f"{name} has no example"
    assert not report.getvalue(), report.getvalue()
