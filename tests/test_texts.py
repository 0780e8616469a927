"""The docstrings of the source: values are named by theirs, and the rooms that they speak of exist."""

import ast
import re
from itertools import pairwise

from tests.test_architecture import at, package_files, report, source_files, tree

MIDWAY = frozenset("Of For Are Is By Beyond With From In As To And At On Under Up Has May".split())


def test_a_value_is_named_by_its_docstring() -> None:
    """The docstring of a constant or a field begins with what the value is, not in the middle of a sentence."""
    report(
        [
            f"{at(path, doc.lineno)}: the docstring of a value begins with {doc.value.value.split()[0]!r}"
            for path in source_files()
            for node in ast.walk(tree(path))
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            for value, doc in pairwise(node.body)
            if isinstance(value, ast.Assign | ast.AnnAssign) and isinstance(doc, ast.Expr)
            if isinstance(doc.value, ast.Constant) and str(doc.value.value).split()[0].rstrip(",:") in MIDWAY
        ],
        'begin with what it is: "The most steps that ...", "Bytes of ...", "Whether ..."',
    )


def test_rooms_in_texts_exist() -> None:
    """``room.file`` in a docstring or comment is one: whoever renames a room finds the texts that name it."""
    homes: dict[str, set[str]] = {}
    for name in package_files():
        room, _, file = name.rpartition(".")
        homes.setdefault(file, set()).add(room.rpartition(".")[2])
    report(
        [
            f"{at(path, line)}: {room}.{file} is not there, but {' or '.join(sorted(homes[file]))}"
            for path in source_files()
            for line, text in enumerate(path.read_text("utf-8").splitlines(), 1)
            for room, file in re.findall(r"``(?:pullback\.)?(\w+)\.(\w+_\w+)[.`(]", text)
            if room not in homes.get(file, {room})
        ],
        "name the room in which the file is",
    )
