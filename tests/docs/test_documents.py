"""The documents run: every python block of README.md and docs/*.md, in order, in one namespace per document.

A block with ``>>>`` is a doctest, whose output must be what is printed there; any other is executed. Names of files in
messages are those of the documents, so that a text may quote them.
"""

import doctest
import io
import re
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest
from tests.test_architecture import rooms, said

from pullback.backends import threads
from pullback.words import errors

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")))
ERROR_PAGES = ROOT / "docs" / "errors"
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def blocks(text, language):
    """``(first line, source)`` of every fenced block of a language; the line is counted from 0."""
    return [(text.count("\n", 0, found.start(2)), found[2]) for found in FENCE.finditer(text) if found[1] == language]


def run_examples(source, line, module, filename):
    """Run a doctest block; what differs is the failure."""
    test = doctest.DocTestParser().get_doctest(source, {}, filename, filename, line)
    test.globs = module.__dict__
    for example in test.examples:
        if example.exc_msg is not None:
            example.options[doctest.NORMALIZE_WHITESPACE] = True  # a message is one line; a document breaks it
    report = io.StringIO()
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.write, clear_globs=False)
    if report.getvalue():
        pytest.fail(report.getvalue(), pytrace=False)


def run_block(source, line, module, filename):
    """Execute a plain block; an error shows the document's own line."""
    exec(compile("\n" * line + source, filename, "exec"), module.__dict__)  # noqa: S102 - the text of our own documents


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_blocks_run(document, tmp_path, monkeypatch):
    text = (ROOT / document).read_text("utf-8")
    module = ModuleType("document")
    monkeypatch.setitem(sys.modules, "document", module)  # a class asks for the module it is defined in
    monkeypatch.chdir(tmp_path)
    with travelling_by_value(module):
        for line, source in blocks(text, "python"):
            run = run_examples if ">>> " in source else run_block
            run(source, line, module, Path(document).name)
    threads.end()


@contextmanager
def travelling_by_value(module):
    """Workers cannot import a document: they get its functions by value, as those of a script."""
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def anchors(page):
    """How the headings of a page are named in links."""
    headings = HEADING.findall(FENCE.sub("", page.read_text("utf-8")))
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_links_lead_somewhere(document):
    page = ROOT / document
    lost = []
    for target, anchor in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        there = page.parent / target if target else page
        if "://" not in target and not (there.exists() and (not anchor or anchor in anchors(there))):
            lost.append((target, anchor))
    assert not lost


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_fence_is_closed_and_named(document):
    text = (ROOT / document).read_text("utf-8")
    fences = re.findall(r"^```.*$", text, re.MULTILINE)
    assert len(fences) % 2 == 0
    assert all(fence in {"```python", "```sh", "```text", "```toml"} for fence in fences[::2])
    assert all(fence == "```" for fence in fences[1::2])


def test_the_two_commands_of_the_readme_exist():
    commands = " ".join(source for _, source in blocks((ROOT / "README.md").read_text("utf-8"), "sh")).split("\n")
    scripts = {word for line in commands for word in line.split() if word.startswith(".ci/")}
    assert scripts == {".ci/demo", ".ci/test"}
    assert all((ROOT / script).is_file() for script in scripts)


def test_the_first_installation_includes_the_plugin():
    lines = "\n".join(source for _, source in blocks((ROOT / "README.md").read_text("utf-8"), "sh")).splitlines()
    first = next(line for line in lines if "install" in line)
    assert first.startswith("python -m pip install") and "-e plugins/pullback-linalg" in first


CLASSES = {
    name: cls for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, (Exception, Warning))
}


def test_every_error_has_its_page_and_every_page_its_error():
    codes = {cls.code: name for name, cls in CLASSES.items()}
    assert len(codes) == len(CLASSES), "a code is used twice"
    assert all(re.fullmatch(r"PB\d{3}", code) for code in codes)
    assert {path.stem for path in ERROR_PAGES.glob("PB*.md")} == set(codes)
    listed = re.findall(
        r"^\| \[(PB\d+)\]\((PB\d+)\.md\) \| `(\w+)` \| (.*) \|$",
        (ERROR_PAGES / "index.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert {(code, name) for code, _, name, _ in listed} == set(codes.items())
    assert len(listed) == len(codes)
    for code, target, name, line in listed:
        assert code == target
        assert words(line) == words(sentence(CLASSES[name])), f"{name}: the list says something else than the class"


@pytest.mark.parametrize("name", CLASSES)
def test_an_error_page_says_what_the_class_says(name):
    cls = CLASSES[name]
    text = (ERROR_PAGES / f"{cls.code}.md").read_text("utf-8")
    bases = ", ".join(f"`{base.__name__}`" for base in cls.__bases__ if issubclass(base, BaseException))
    assert text.startswith(f"# {cls.code}: {name}\n\nIs a {bases}. "), f"{name}: the bases are {bases}"
    assert words(sentence(cls)) in words(text), f"{name}: the page says something else than the class"
    sections = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert sections == [
        "What happened",
        "A program that raises it",
        "Why it is an error",
        "What to write instead",
        "Related",
    ]
    program = text[text.index("## A program") : text.index("## Why")]
    assert f"pullback.{name}: " in program or name == "PullbackError", "the program does not raise the error"
    rewrites = text[text.index("## What to write instead") : text.index("## Related")]
    assert ">>> " in rewrites, "no rewrite runs"
    assert LINK.findall(text[text.index("## Related") :])


CODES_GIVEN = """
PB001 PullbackError, PB101 NotDifferentiableError, PB102 UnknownFunctionError, PB103 StructureError,
PB201 ConversionError, PB202 TracerError, PB203 WriteError, PB204 ConstantChangedError, PB205 AdoptionError,
PB301 DeclarationError, PB302 MissingRuleError, PB303 RuleError, PB304 RegistrationError,
PB305 PluginError, PB401 PolicyError, PB402 ScheduleError, PB403 BudgetError,
PB404 ReplayError, PB405 PolicyWarning, PB501 NonFiniteError, PB601 CheckError,
PB602 InputFileError, PB502 ConvergenceError, PB406 StoreError, PB407 ResumeError,
PB408 ShapesOnlyError, PB701 WorkerError, PB104 TravelError, PB206 RefusalWarning
"""


def test_a_code_stays_with_its_class():
    """A new class adds a line here; a line never changes, not even when its class goes."""
    given = dict(reversed(pair.split()) for pair in CODES_GIVEN.split(","))
    assert {name: cls.code for name, cls in CLASSES.items()}.items() <= given.items()


def words(text):
    """The text without markup, in single spaces."""
    return " ".join(text.replace("`", "").split())


def sentence(cls):
    """What the docstring of an error says, without the line that names its page."""
    return cls.__doc__.split("\n\n", maxsplit=1)[0]


def test_the_rooms_of_the_design_are_those_that_there_are():
    """The design page has a row for every room, in an order in which imports point up the page."""
    rows = re.findall(r"^\| `([\w.]+)/` \|", (ROOT / "docs" / "design.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(rows) == sorted(rooms())
    above = [
        (room, other) for room in rows for other in said(room, "May import") if rows.index(other) >= rows.index(room)
    ]
    assert not above
