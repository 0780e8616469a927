"""The shape of the source, read from its syntax trees: rooms, circles, sizes and the habits of docs/design.md.

Nothing here imports pullback, so a broken module is still measured. Each failure is one line: file:line, the rule, the
remedy.
"""

import ast
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

Kind = TypeVar("Kind", bound=ast.AST)

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "pullback"
PLUGINS = sorted(p.parent for p in ROOT.glob("plugins/*/pyproject.toml"))

FILE_LINES, TEST_FILE_LINES, FUNCTION_LINES, ROOM_FILES, LINE_CHARACTERS = 400, 600, 50, 14, 120
ASSEMBLY = ("pullback", "registry.extend(CORE, later=late_families)")
"""The one place that registers, and the one call at import."""
MAY_PRINT = ("cli", "demos", "__main__")
PUBLIC_MODULES = ("testing", "schedules", "scaling", "stores", "numpy", "backends")


# -------------------------------------------------------------------------------------------------------------- reading


def module_name(path: Path, base: Path) -> str:
    """The dotted name of ``path`` below ``base``: ``pullback.policies.base``; a package bears the name of its
    folder."""
    parts = path.relative_to(base).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def package_files() -> dict[str, Path]:
    """Module name to file, for src/pullback."""
    return {module_name(p, PACKAGE.parent): p for p in sorted(PACKAGE.rglob("*.py"))}


@cache
def source_files() -> tuple[Path, ...]:
    """Every file that is installed: the package and the plugins."""
    return (*package_files().values(), *sorted(p for plugin in PLUGINS for p in (plugin / "src").rglob("*.py")))


@cache
def files_of_tests() -> tuple[Path, ...]:
    """Every file that tests: ours and the plugins'."""
    return (
        *sorted((ROOT / "tests").rglob("*.py")),
        *sorted(p for plugin in PLUGINS for p in (plugin / "tests").rglob("*.py")),
    )


@cache
def text_of(path: Path) -> str:
    """What stands in ``path``."""
    return path.read_text("utf-8")


@cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of ``path``."""
    return ast.parse(text_of(path), str(path))


@cache
def by_kind(path: Path) -> dict[type[ast.AST], list[ast.AST]]:
    """The nodes of ``path`` by their class, all from one walk through its tree."""
    found: dict[type[ast.AST], list[ast.AST]] = {}
    for node in ast.walk(tree(path)):
        found.setdefault(type(node), []).append(node)
    return found


def nodes_in(path: Path, *kinds: type[Kind]) -> Iterator[Kind]:
    """Every node of ``path`` of these kinds."""
    for kind in kinds:
        yield from by_kind(path).get(kind, ())  # type: ignore[misc]


def at(path: Path, line: int) -> str:
    """``src/pullback/tape.py:12``, as editors and terminals link it."""
    return f"{path.relative_to(ROOT).as_posix()}:{line}"


def report(faults: list[str], remedy: str) -> None:
    """Fail with every fault and what to do, or pass."""
    if faults:
        pytest.fail("\n".join([*faults, f"-> {remedy}"]), pytrace=False)


def imports(path: Path, modules: dict[str, Path]) -> Iterator[tuple[str, str | None, int]]:
    """(module, imported name or None, line) of every import, also those inside functions: a late arrow is an arrow."""
    for node in nodes_in(path, ast.Import):
        yield from ((alias.name, None, node.lineno) for alias in node.names)
    for node in nodes_in(path, ast.ImportFrom):
        for alias in () if node.level else node.names:
            inner = f"{node.module}.{alias.name}"
            yield (inner, None, node.lineno) if inner in modules else (node.module or "", alias.name, node.lineno)


@cache
def arrows() -> tuple[tuple[str, str, int], ...]:
    """(importer, imported, line) within the package."""
    modules = package_files()
    return tuple(
        (name, target, line)
        for name, path in modules.items()
        for target, _, line in imports(path, modules)
        if target == "pullback" or target.startswith("pullback.")
    )


@cache
def rooms() -> dict[str, Path]:
    """Room to folder: every folder below src/pullback that is a package: ``recording``, ``primitives.shaping``."""
    folders = (p.parent for p in sorted(PACKAGE.rglob("__init__.py")) if p.parent != PACKAGE)
    return {".".join(folder.relative_to(PACKAGE).parts): folder for folder in folders}


@cache
def room_of(module: str) -> str | None:
    """The room in which ``module`` stands; None for a public face at the top of the package."""
    inner = module.removeprefix("pullback").removeprefix(".")
    while inner and inner not in rooms():
        inner = inner.rpartition(".")[0]
    return inner or None


@cache
def said(room: str, words: str) -> set[str]:
    """The rooms in the line of the room's docstring that begins with ``words``."""
    text = " ".join((ast.get_docstring(tree(rooms()[room] / "__init__.py")) or "").split())
    line = re.search(rf"{words}: ([^:]*?)\.(?: May|$)", text)
    return set() if line is None else {name for name in line[1].split(", ") if name in rooms()}


def assembles(room: str) -> bool:
    """True for a room that holds rooms: its own file puts together what they bring, and so imports them."""
    return any(other.startswith(f"{room}.") for other in rooms())


@cache
def public_names() -> frozenset[str]:
    """``pullback.__all__``, which must be written out."""
    front = PACKAGE / "__init__.py"
    if not front.exists():
        pytest.fail(
            f"{front.relative_to(ROOT)} is missing: it re-exports the public names and lists them in __all__",
            pytrace=False,
        )
    for node in tree(front).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
            assert isinstance(node, (ast.Assign, ast.AnnAssign))
            assert isinstance(node.value, (ast.List, ast.Tuple)), (
                f"{at(front, node.lineno)} __all__ is to be a written-out list of names"
            )
            return frozenset(ast.literal_eval(node.value))
    pytest.fail(f"{at(front, 1)} has no __all__: list the public names there", pytrace=False)


# ------------------------------------------------------------------------------------------------------------- rooms


def test_every_room_says_what_it_is() -> None:
    """Two lines: what the room holds, and what it may import."""
    faults = []
    for room, folder in rooms().items():
        lines = (ast.get_docstring(tree(folder / "__init__.py")) or "").splitlines()
        if not lines or not lines[0].endswith("."):
            faults.append(f"{at(folder / '__init__.py', 1)} does not say what {room} is")
        if not assembles(room) and "May import: " not in " ".join(lines):
            faults.append(f"{at(folder / '__init__.py', 1)} does not say what {room} may import")
    report(faults, "write two lines into the room's __init__.py: what it is, `May import: ...`")


def test_rooms_make_no_circle() -> None:
    """What rooms say that they may import makes no circle."""
    down = {room: said(room, "May import") for room in rooms() if not assembles(room)}
    while ready := {room for room, others in down.items() if not others}:
        down = {room: others - ready for room, others in down.items() if room not in ready}
    report(
        sorted(f"{room} may import {sorted(others)}" for room, others in down.items()),
        "rooms that may import each other are one",
    )


def test_imports_are_what_rooms_say() -> None:
    """No import goes to a room that is not said, and to each room that is said goes one."""
    files, faults, met = package_files(), [], set()
    for importer, imported, line in arrows():
        here, there = room_of(importer), room_of(imported)
        met.add((here, there))
        if imported not in files:
            faults.append(f"{at(files[importer], line)} imports {imported}, which is no module of the package")
        elif here is None or here == there or (assembles(here) and str(there).startswith((f"{here}.", "rules"))):
            continue
        elif there is None:
            faults.append(f"{at(files[importer], line)} {importer} imports the public face {imported}")
        elif there not in said(here, "May import"):
            faults.append(f"{at(files[importer], line)} {importer} imports {imported}: {here} may not import {there}")
    report(faults, "imports point down: move the shared part to a lower room, or hand it in as an argument")
    pairs = {(room, other) for room in rooms() for other in said(room, "May import")}
    report(sorted(f"{room} may import {other}, and does not" for room, other in pairs - met), "take it off the list")


def defined(module: str) -> set[str]:
    """The names that a module makes itself, by def, class or assignment; not those that it imports."""
    made: set[str] = set()
    todo: list[ast.stmt] = list(tree(package_files()[module]).body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            made.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made |= {n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name)}
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return made


def test_nobody_comes_in_by_the_back_door() -> None:
    """A name is imported from the file that makes it, and it has no underscore; rooms and files do not hand on what
    others made."""
    files, faults = package_files(), []
    for path in files.values():
        for target, name, line in imports(path, files):
            if name is None or target not in files or target == "pullback":
                continue
            if name not in defined(target) and not any(alias == name for alias in public_of_room(target)):
                faults.append(f"{at(path, line)} takes {name} from {target}, which only imports it")
            elif name.startswith("_"):
                faults.append(f"{at(path, line)} takes {name} from {target}, which keeps it for itself")
    report(faults, "import it from the file that defines it, by a name without an underscore")


def public_of_room(module: str) -> set[str]:
    """What a public room re-exports in its ``__init__``, written ``import X as X``."""
    if module.removeprefix("pullback.") not in PUBLIC_MODULES:
        return set()
    found = (n for n in tree(package_files()[module]).body if isinstance(n, ast.ImportFrom))
    return {alias.name for node in found for alias in node.names if alias.asname == alias.name}


def test_rooms_are_small() -> None:
    counts = {folder: len(list(folder.glob("*.py"))) for folder in rooms().values()}
    faults = [
        f"{folder.relative_to(ROOT).as_posix()}/ holds {n} files" for folder, n in counts.items() if n > ROOM_FILES
    ]
    report(faults, f"a room is one idea in about a dozen files, {ROOM_FILES} at most with its __init__.py: part it")


def test_only_public_faces_stand_at_the_top() -> None:
    faces = {"__init__", "__main__", "cli", *PUBLIC_MODULES}
    faults = [
        f"{at(path, 1)} stands at the top of the package" for path in PACKAGE.glob("*.py") if path.stem not in faces
    ]
    report(faults, "move it into a room: the top holds what users import by name, and the command line")


def test_every_folder_is_a_package() -> None:
    loose = {path.parent for path in source_files() if not (path.parent / "__init__.py").exists()}
    faults = [f"{folder.relative_to(ROOT).as_posix()}/ has no __init__.py" for folder in sorted(loose)]
    report(faults, "add an __init__.py whose docstring says what the folder holds")


def test_no_import_cycle() -> None:
    """Kahn's algorithm, from both ends: take away modules that import no module left, then those that none left
    imports; circles stay."""
    files = package_files()
    needs = {name: {there for here, there, _ in arrows() if here == name != there and there in files} for name in files}
    while ready := {name for name, wanted in needs.items() if not wanted}:
        needs = {name: wanted - ready for name, wanted in needs.items() if name not in ready}
    while unused := needs.keys() - set().union(*needs.values()):
        needs = {name: wanted for name, wanted in needs.items() if name not in unused}
    lines = {(importer, imported): line for importer, imported, line in reversed(arrows())}
    circle = [(name, other) for name, wanted in needs.items() for other in sorted(wanted)]
    faults = [f"{at(files[name], lines[name, other])} {name} -> {other}" for name, other in circle]
    report(faults, "these imports form a circle: move what both need to a module of its own, below them")


def test_a_module_never_imports_itself() -> None:
    files = package_files()
    report(
        [f"{at(files[a], line)} {a} imports itself" for a, b, line in arrows() if a == b],
        "name the module that is meant",
    )


def test_no_module_is_named_like_a_public_object() -> None:
    public = public_names() - set(PUBLIC_MODULES)
    named = {name.rpartition(".")[2]: path for name, path in package_files().items()}
    faults = [f"{at(path, 1)} is named like pullback.{name}" for name, path in named.items() if name in public]
    report(faults, "rename the module: `pullback.NAME` must mean one thing, whatever was imported before")


def test_plugins_import_only_public_names() -> None:
    public, faults = public_names() | set(PUBLIC_MODULES), []
    for path in (p for plugin in PLUGINS for p in sorted((plugin / "src").rglob("*.py"))):
        used = [*imports(path, {}), *(("pullback", name, line) for name, line in attributes_of_pullback(path))]
        for module, name, line in used:
            package, _, inner = module.partition(".")
            allowed = inner in PUBLIC_MODULES or (not inner and (name is None or name in public))
            if package == "pullback" and not allowed:
                faults.append(f"{at(path, line)} uses {module}{f'.{name}' if name else ''}")
    report(
        faults,
        "a plugin uses pullback.__all__ and the public modules only: use one of them, or make the name public",
    )


def test_the_core_knows_no_plugin_by_name() -> None:
    """Prose may name one, and the table that says what to install does; no other text of a program, and no import."""
    table = PACKAGE / "rules" / "catalogue.py"
    names = {name for plugin in PLUGINS for name in (plugin.name, plugin.name.replace("-", "_"))}
    faults = []
    for path in (p for p in package_files().values() if p != table):
        prose = {id(node.value) for node in nodes_in(path, ast.Expr)}
        texts = [(n.value, n.lineno) for n in nodes_in(path, ast.Constant) if id(n) not in prose]
        texts += [(module, line) for module, _, line in imports(path, {})]
        faults += [f"{at(path, line)} names {name}" for text, line in texts for name in names if name in str(text)]
    report(faults, "take it from the entry points (words/plugins.py), or declare it on the primitive")


def attributes_of_pullback(path: Path) -> Iterator[tuple[str, int]]:
    """(name, line) of every ``pb.name`` where ``import pullback as pb`` stands in the file."""
    names = [alias for node in nodes_in(path, ast.Import) for alias in node.names]
    aliases = {alias.asname or alias.name for alias in names if alias.name == "pullback"}
    for node in nodes_in(path, ast.Attribute):
        if isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield node.attr, node.lineno


# ---------------------------------------------------------------------------------------------------------------- sizes


def test_files_are_short() -> None:
    faults = []
    for paths, limit in ((source_files(), FILE_LINES), (files_of_tests(), TEST_FILE_LINES)):
        lengths = {path: len(text_of(path).splitlines()) for path in paths}
        faults += [
            f"{at(path, n)} has {n} lines, the limit is {limit - 1}" for path, n in lengths.items() if n >= limit
        ]
    report(faults, "split the file where its subject changes")


def test_lines_are_narrow() -> None:
    """Also those that end in an ignore, which the linter lets pass."""
    faults = [
        f"{at(path, number)} has {len(line)} characters, the limit is {LINE_CHARACTERS}"
        for path in (*source_files(), *files_of_tests(), *sorted((ROOT / "benchmarks").rglob("*.py")))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if len(line) > LINE_CHARACTERS
    ]
    report(faults, "put the reason of an ignore on the line before it")


def own_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The lines of a function without its docstring, which may be as long as it takes."""
    first = node.body[0]
    told = ast.get_docstring(node, clean=False) is not None
    return (node.end_lineno or 0) - node.lineno + 1 - ((first.end_lineno or 0) - first.lineno + 1 if told else 0)


def test_functions_are_short() -> None:
    faults = [
        f"{at(path, node.lineno)} {node.name} has {length} lines, the limit is {FUNCTION_LINES - 1}"
        for path in source_files()
        for node in nodes_in(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if (length := own_lines(node)) >= FUNCTION_LINES
    ]
    report(faults, "give a part of it a name of its own")


# --------------------------------------------------------------------------------------------------------------- habits


def is_call_of(node: ast.AST, name: str) -> bool:
    """True for ``name(...)``."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def faults_in_source(rule: str, found: Iterator[tuple[Path, ast.AST]]) -> list[str]:
    """One line for each node found."""
    return [f"{at(path, getattr(node, 'lineno', 1))} {rule}" for path, node in found]


def nodes(*kinds: type[Kind], paths: tuple[Path, ...] | None = None) -> Iterator[tuple[Path, Kind]]:
    """Every node of these kinds in the installed source, or in ``paths``."""
    for path in source_files() if paths is None else paths:
        yield from ((path, node) for node in nodes_in(path, *kinds))


def imports_that_read_like(pattern: str) -> Iterator[tuple[Path, ast.ImportFrom]]:
    """Every ``from x import y`` of the files in which a line has the pattern, the tests' too; no other is parsed."""
    line = re.compile(pattern, re.MULTILINE)
    everywhere = (*source_files(), *files_of_tests())
    return nodes(ast.ImportFrom, paths=tuple(path for path in everywhere if line.search(text_of(path))))


def test_no_relative_import() -> None:
    written_as_others_write = ROOT / "tests" / "adopting" / "modules" / "simulations"
    found = (
        (p, n)
        for p, n in imports_that_read_like(r"^[^#\n]*\bfrom[ \\]*\.")
        if n.level and written_as_others_write not in p.parents
    )
    report(
        faults_in_source("relative import", found),
        "write the whole name: from pullback.x import y, in tests from tests.x import y",
    )


def test_no_star_import() -> None:
    found = ((p, n) for p, n in imports_that_read_like(r"\bimport[ \\(]*\*") if n.names[0].name == "*")
    report(faults_in_source("star import", found), "name what is imported")


def test_no_metaclass() -> None:
    found = (
        (p, n)
        for p, n in nodes(ast.ClassDef)
        if any(k.arg == "metaclass" for k in n.keywords)
        or any(isinstance(b, ast.Name) and b.id == "type" for b in n.bases)
    )
    report(faults_in_source("metaclass", found), "use a plain function or a frozen attrs class")


def test_no_setattr_in_a_loop() -> None:
    loops = nodes(ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found = (
        (path, node)
        for path, loop in loops
        if "setattr" in text_of(path)
        for node in ast.walk(loop)
        if is_call_of(node, "setattr")
    )
    report(
        faults_in_source("setattr in a loop", found), "write the methods out: readers and type checkers must see them"
    )


def test_print_only_where_people_look() -> None:
    speakers = {
        path for name, path in package_files().items() if name.removeprefix("pullback.").split(".")[0] in MAY_PRINT
    }
    quiet = tuple(path for path in source_files() if path not in speakers)
    found = ((path, node) for path, node in nodes(ast.Call, paths=quiet) if is_call_of(node, "print"))
    report(
        faults_in_source("print", found), f"return a value that prints; only {', '.join(MAY_PRINT)} speak to a person"
    )


def runs_as_script(node: ast.stmt) -> bool:
    """True for ``if __name__ == "__main__":``."""
    return isinstance(node, ast.If) and "__name__" in ast.unparse(node.test)


def top_level_calls(path: Path) -> Iterator[ast.AST]:
    """Statements that run at import and are a bare call; a call on an object that the module itself made is its own
    business."""
    own = {t.id for n in tree(path).body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}
    todo: list[ast.stmt] = list(tree(path).body)
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            receiver = node.value.func
            while isinstance(receiver, (ast.Attribute, ast.Call)):
                receiver = receiver.value if isinstance(receiver, ast.Attribute) else receiver.func
            if not (isinstance(receiver, ast.Name) and receiver.id in own):
                yield node
        elif isinstance(node, (ast.For, ast.While, ast.With, ast.Try, ast.If)) and not runs_as_script(node):
            todo += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def test_importing_does_nothing() -> None:
    front, call = package_files()[ASSEMBLY[0]], ASSEMBLY[1]
    paths = [path for path in source_files() if path.name != "__main__.py"]
    found = (
        (path, node) for path in paths for node in top_level_calls(path) if (path, ast.unparse(node)) != (front, call)
    )
    report(
        faults_in_source("call at import", found),
        "importing registers nothing: end the module in a tuple that one place assembles",
    )


# ----------------------------------------------------------------------------------------------------------------- text

# Written so that these patterns do not match themselves.
TEXT_RULES = {
    "unfinished work": (re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b"), "do it, or say in docs/design.md why not"),
    "a path of one machine": (
        re.compile(r"(?<![\w.<])/(?:work|farm|tmp|root|home|Users)/"),
        "use tmp_path, a path relative to the repository, or an argument",
    ),
    "a registry host": (
        re.compile(r"\b(?:pypi|pythonhosted|npmjs)\.(?:org|com)\b"),
        "name the package only; where it comes from is the reader's choice",
    ),
}
TEXT_FOLDERS = ("src", "plugins", "tests", "benchmarks", "docs", ".ci")
TEXT_SUFFIXES = {".py", ".md", ".toml", ".cff", ".sh", ".json", ".cfg", ".yaml", ".yml", ".txt", ""}


MADE = re.compile(r"\.venv.*|\.git|__pycache__|build|dist|.*\.egg-info")


@cache
def texts() -> tuple[Path, ...]:
    """Every text file of the repository that a person wrote."""
    found = [path for path in ROOT.glob("*") if path.is_file() and not MADE.fullmatch(path.name)]
    for folder in TEXT_FOLDERS:
        for here, folders, files in os.walk(ROOT / folder):
            folders[:] = [name for name in folders if not MADE.fullmatch(name)]
            found += [Path(here, name) for name in files]
    return tuple(sorted(path for path in found if path.suffix in TEXT_SUFFIXES))


@pytest.mark.parametrize("rule", TEXT_RULES)
def test_text(rule: str) -> None:
    pattern, remedy = TEXT_RULES[rule]
    faults = [
        f"{at(path, number)} {rule}: {line.strip()[:100]}"
        for path in texts()
        if pattern.search(text_of(path))
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if pattern.search(line)
    ]
    report(faults, remedy)


# -------------------------------------------------------------------------------------------------------- configuration


def test_configured_paths_exist() -> None:
    """A checker that is pointed at a folder which is not there passes silently."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, tool = config["project"], config["tool"]
    named = {
        "project.readme": [project["readme"]],
        "project.license-files": project["license-files"],
        "hatch packages": tool["hatch"]["build"]["targets"]["wheel"]["packages"],
        "hatch sdist": [p.lstrip("/") for p in tool["hatch"]["build"]["targets"]["sdist"]["include"]],
        "pytest testpaths": tool["pytest"]["ini_options"]["testpaths"],
        "pytest pythonpath": tool["pytest"]["ini_options"].get("pythonpath", []),
        "mypy files": tool["mypy"]["files"],
        "mypy_path": tool["mypy"]["mypy_path"],
        "ruff src": tool["ruff"]["src"],
        "ruff per-file-ignores": list(tool["ruff"]["lint"]["per-file-ignores"]),
    }
    listed = [(key, path) for key, paths in named.items() for path in paths]
    absent = [(key, path) for key, path in listed if not (ROOT / path).exists() and not any(ROOT.glob(path))]
    faults = [f"pyproject.toml: {key} names {path}, which is not there" for key, path in absent]
    report(faults, "mend the path, or take the entry out")


def test_every_plugin_is_type_checked() -> None:
    mypy = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]
    checked = {path for pattern in mypy["files"] for path in ROOT.glob(pattern)}
    sources = [plugin / "src" for plugin in PLUGINS]
    faults = [
        f"{source.parent.name} is not type checked"
        for source in sources
        if source not in checked or source.relative_to(ROOT).as_posix() not in mypy["mypy_path"]
    ]
    report(faults, "add plugins/NAME/src to mypy_path in [tool.mypy] of pyproject.toml")


# ---------------------------------------------------------------------------------------------------------------- tests

# Folders of tests that belong to no room.
ACROSS = ("adbench", "benchmarks", "docs", "external", "programs", "promises")


def test_a_test_is_found_by_the_name_of_what_it_tests() -> None:
    """``tests/loops/functions/test_body_of_scan.py`` tests ``loops/body.py``; every room has a folder of tests."""
    folders = [ROOT / "tests" / Path(*room.split(".")) for room in rooms()]
    faults = [f"{at(f, 1)} holds no test" for f in folders if not any(f.rglob("test_*.py"))]
    for path in sorted((ROOT / "tests").glob("*/**/test_*.py")):
        folder = path.parent.relative_to(ROOT / "tests").parts
        sources = {p.stem for p in (PACKAGE / Path(*folder)).glob("*.py")} - {"__init__"}
        name = path.stem.removeprefix("test_")
        if folder[0] not in ACROSS and not any(name == stem or name.startswith(f"{stem}_") for stem in sources):
            faults.append(f"{at(path, 1)} names no file of src/pullback/{'/'.join(folder)}")
    report(faults, f"name it after the file it tests, or move it to one of tests/{{{','.join(ACROSS)}}}")
