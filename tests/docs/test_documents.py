"""The documents run: every python block of README.md and docs/*.md, in order, in one namespace per document.

A block with ``>>>`` is a doctest, whose output must be what is printed there; any other is executed. Names of files in messages
are those of the documents, so that a text may quote them.
"""

import doctest
import io
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.test_architecture import floor

from pullback import errors

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


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
    for line, source in blocks(text, "python"):
        run = run_examples if ">>> " in source else run_block
        run(source, line, module, Path(document).name)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_links_lead_somewhere(document):
    text = FENCE.sub("", (ROOT / document).read_text("utf-8"))
    lost = [target for target in LINK.findall(text) if "://" not in target and not (ROOT / document).parent.joinpath(target).exists()]
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
    assert first.split("#")[0].split() == ["pip", "install", "pullback", "pullback-linalg"]


def test_every_error_has_its_section_and_every_section_its_error():
    text = (ROOT / "docs" / "errors.md").read_text("utf-8")
    sections = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL))
    classes = {name: cls for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, (Exception, Warning))}
    assert set(sections) == set(classes)
    for name, cls in classes.items():
        bases = ", ".join(f"`{base.__name__}`" for base in cls.__bases__)
        assert sections[name].startswith(f"Is a {bases}."), f"{name}: the bases are {bases}"
        assert words(cls.__doc__) in words(sections[name]), f"{name}: the section says something else than the class"


def words(text):
    """The text without markup, in single spaces."""
    return " ".join(text.replace("`", "").split())


def test_the_floors_of_the_design_are_those_that_are_checked():
    rows = re.findall(r"^\| (\d+) \| ([^|]*) \|", (ROOT / "docs" / "design.md").read_text("utf-8"), re.MULTILINE)
    written = {(int(number), name) for number, names in rows for name in re.findall(r"`(\w+)`", names)}
    package = ROOT / "src" / "pullback"
    modules = {path.stem for path in (*package.glob("[a-z]*.py"), *(p.parent for p in package.glob("*/__init__.py")))}
    assert modules == {name for _, name in written}
    assert not [(number, name) for number, name in written if floor(f"pullback.{name}") not in {None, number}]  # None fails elsewhere
