"""A plugin that nobody has heard of is treated as ours: call sites, coverage, structure, errors, backends, namespaces.

It is written into a folder with the metadata that an installation adds, and used from a process of its own.
"""

import os
import re
import subprocess
import sys
import textwrap
from importlib.metadata import entry_points

import pytest

RULES = """
import numpy as np
import pullback as pb
from scipy import special

sindg = pb.primitive(special.sindg, operands=("x",), elementwise=True, serves=(special.sindg,))

@sindg.vjp("x")
def slope(ct, x):
    return ct * np.pi / 180 * np.cos(np.pi / 180 * x)

@pb.primitive(linear=("x",))
def turned(x, *, weight):
    return weight * np.concatenate([x[1:], x[:1]])

@turned.vjp("x")
def back(ct, weight):
    return weight * np.concatenate([ct[-1:], ct[:-1]])

@pb.primitive(reach="reduced")
def highest(x, *, axis, keepdims):
    return np.max(x, axis, keepdims=keepdims)

@highest.vjp("x")
def shared(ct, x, axis):
    return np.expand_dims(ct, axis) * (x == np.max(x, axis, keepdims=True))

@pb.composite(special.cosdg, name="cosdg")
def cosdg(x):
    return np.cos(np.pi / 180 * x)

PRIMITIVES = (sindg, turned, highest, cosdg)
"""
ENTRIES = """\
[pullback.primitives]
strange = strange_rules:PRIMITIVES
[pullback.backends]
strange = strange_rules.running:BACKEND
[pullback.namespaces]
other = strange_rules.instead
other.inner = strange_rules.deep
"""
FILES = {
    "strange_rules/__init__.py": RULES,
    "strange_rules/helpers.py": "def logarithm(x):\n    import numpy as np\n    return np.log(x)\n",
    "strange_rules/running.py": "def BACKEND(plan):\n    print('for', plan.name)\n    return range(len(plan.calls))\n",
    "strange_rules/instead/__init__.py": "",
    "strange_rules/instead/part.py": "WHO = 'part'\n",
    "strange_rules/deep.py": "WHO = 'deep'\n",
    "strange_rules-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: strange-rules\nVersion: 1.0\n",
    "strange_rules-1.0.dist-info/entry_points.txt": ENTRIES,
}


@pytest.fixture
def folder(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return tmp_path


def ran(folder, program, *, module=False):
    """What a program prints, with the plugin on the path; as a script, or as a module that a script imports."""
    name = "user.py" if module else "script.py"
    (folder / name).write_text(textwrap.dedent(program), "utf-8")
    if module:
        (folder / "script.py").write_text("import user\n", "utf-8")
    path = os.pathsep.join((str(folder), *filter(None, sys.path)))
    done = subprocess.run(
        [sys.executable, str(folder / "script.py")],
        cwd=folder, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("module", [False, True], ids=["a script", "a module"])
def test_the_line_of_the_user_is_named_and_not_the_one_of_the_plugin(folder, module):
    said = ran(folder, """
        import numpy as np, pullback as pb
        from strange_rules import turned
        from strange_rules.helpers import logarithm
        from scipy import special
        def f(x):
            y = special.cosdg(x)
            return np.sum(y + logarithm(y) + turned(y, weight=3.0))
        for node in pb.record(f, np.ones(3)).nodes:
            if node.line:
                print(f"{node.file}:{node.line}")
    """, module=module)  # fmt: skip
    user = "user.py" if module else "script.py"
    assert {line.rpartition(os.sep)[2] for line in said.splitlines()} == {f"{user}:7", f"{user}:8"}


def test_an_import_and_a_script_without_plugins_look_at_no_metadata(folder):
    said = ran(folder, """
        import sys, numpy as np, pullback as pb
        pb.grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
        print("importlib.metadata" in sys.modules)
    """)  # fmt: skip
    assert said.strip() == "False"


def test_its_gradient_and_its_coverage(folder):
    said = ran(folder, """
        import numpy as np, pullback as pb
        from scipy import special
        print(pb.grad(lambda x: np.sum(special.sindg(x)))(np.zeros(2)))
        from pullback.instruments.inspect.coverage import coverage
        for name in ("scipy.special.sindg", "special.cosdg"):
            (row,) = coverage().of(name)
            print(row.module, row.name, row.status, row.by)
        print(coverage())
    """)  # fmt: skip
    lines = said.splitlines()
    assert lines[:3] == [
        "[0.01745329 0.01745329]",
        "scipy.special sindg differentiable `strange_rules`",
        "scipy.special cosdg differentiable `strange_rules`",
    ]
    assert re.search(r"and \d+ of other libraries by plugins", lines[3])


def test_the_command_line_names_it(folder):
    said = ran(folder, """
        import sys
        sys.argv = ["pullback", "coverage", "scipy.special.sindg"]
        from pullback.cli import main
        main()
    """)  # fmt: skip
    assert said.startswith("scipy.special.sindg: differentiable") and "strange_rules" in said


def test_its_structure_is_exact(folder):
    said = ran(folder, """
        import numpy as np, pullback as pb
        from strange_rules import sindg, highest, turned
        x = np.arange(4.0)
        rows = lambda x: highest(np.reshape(x, (2, 2)), axis=1, keepdims=False)
        for f in (sindg, lambda x: turned(x, weight=2.0), rows):
            found = pb.dependencies(f, x)
            print(found.matrix.toarray().astype(int).tolist(), found.coarse)
    """)  # fmt: skip
    identity, turned, highest = said.splitlines()
    assert identity == "[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]] ()"
    assert turned == "[[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]] ()"
    assert highest == "[[1, 1, 0, 0], [0, 0, 1, 1]] ()"


def test_it_does_not_import(folder):
    (folder / "strange_rules" / "__init__.py").write_text("import strange_solver\n", "utf-8")
    said = ran(folder, """
        import numpy as np, pullback as pb
        from scipy import special
        for _ in range(2):  # the second look-up says it again
            try:
                pb.grad(lambda x: np.sum(special.sindg(x)))(np.ones(2))
            except pb.PluginError as error:
                print(error)
    """)  # fmt: skip
    assert said.count(
        "plugin 'strange' (strange_rules:PRIMITIVES) failed to import: ModuleNotFoundError: No module named "
        "'strange_solver'; reinstall or remove it"
    ) == 2  # fmt: skip


def test_a_function_that_it_serves_is_taken(folder):
    (folder / "strange_rules" / "__init__.py").write_text(RULES.replace("(special.sindg,)", "(np.sin,)"), "utf-8")
    said = ran(folder, """
        import numpy as np, pullback as pb
        from scipy import special
        try:
            pb.grad(lambda x: np.sum(special.sindg(x)))(np.ones(2))
        except pb.RegistrationError as error:
            print(error)
    """)  # fmt: skip
    assert "numpy.sin is already served by 'sin'; 'sindg' cannot serve it too" in said


def test_its_backend_is_found_and_another_is_named_with_the_line_that_installs_it(folder):
    said = ran(folder, """
        import pullback as pb
        from pullback.words.plugins import backend
        print(backend("strange").__name__)
        import numpy as np
        f = lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: u * 0.5, x, staging="strange"))
        print(pb.grad(f, policy=pb.Binomial(2))(np.ones(2)))
        try:
            backend("absent")
        except pb.PluginError as error:
            print(error)
    """)  # fmt: skip
    lines = said.splitlines()
    assert lines[0] == "BACKEND"
    assert sorted(lines[1:5]) == [f"for {name}" for name in ("advance", "record", "reverse", "reverse_own")]
    assert lines[5] == "[0.00195312 0.00195312]"
    there = ", ".join(sorted({"strange", *(point.name for point in entry_points(group="pullback.backends"))}))
    assert f"no backend 'absent' is installed (there is: {there}); pip install pullback-absent" in said


def test_its_modules_stand_for_others(folder):
    said = ran(folder, """
        from pullback.words.plugins import stand_in
        for name in ("other", "other.part", "other.inner", "others", "numpy"):
            found = stand_in(name)
            print(name, found and found.__name__, getattr(found, "WHO", None))
        try:
            stand_in("other.lost")
        except ImportError as error:
            print(type(error).__name__, error)
    """)  # fmt: skip
    assert said.splitlines()[:5] == [
        "other strange_rules.instead None",
        "other.part strange_rules.instead.part part",
        "other.inner strange_rules.deep deep",
        "others None None",
        "numpy None None",
    ]
    assert "PluginError plugin 'other' (strange_rules.instead) failed to import" in said


def test_two_plugins_that_offer_one_name_are_told(folder):
    more = folder / "more_rules-1.0.dist-info"
    more.mkdir()
    (more / "METADATA").write_text("Metadata-Version: 2.1\nName: more-rules\nVersion: 1.0\n", "utf-8")
    (more / "entry_points.txt").write_text("[pullback.backends]\nstrange = more_rules:BACKEND\n", "utf-8")
    said = ran(folder, """
        import pullback as pb
        from pullback.words.plugins import backend
        try:
            backend("strange")
        except pb.RegistrationError as error:
            print(error)
    """)  # fmt: skip
    assert "'strange' of pullback.backends is offered by" in said and "uninstall all but one" in said
