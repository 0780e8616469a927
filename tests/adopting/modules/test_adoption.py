"""Unmodified files, differentiated by adoption: simulations in the styles of other people's codes."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

FOLDER = Path(__file__).parent / "simulations"
POINTS = {
    "finite_volumes": 5 / 3,
    "lattice_boltzmann": 0.6,
    "nbody": 0.3,
    "fields": 1.7,
    "particles": 0.4,
    "cavity": 0.1,
    "loops": 0.63,
    "asked": 0.8,
    "drawn": 0.7,
}
POLICIES = (pb.Binomial(2), pb.Recompute(), pb.Periodic(2))


@pytest.fixture
def simulations(monkeypatch):
    """The folder on the module path: the originals as a package."""
    monkeypatch.syspath_prepend(str(FOLDER.parent))
    yield "simulations"
    for name in [name for name in sys.modules if name.partition(".")[0] == "simulations"]:
        del sys.modules[name]


def original(name):
    return __import__(f"simulations.{name}", fromlist=["run"])


@pytest.mark.parametrize("name", POINTS)
def test_a_copy_computes_what_the_original_does(simulations, name):
    copy = pb.adopt(f"simulations.{name}")
    x = POINTS[name]
    assert np.asarray(copy.run(x)).tobytes() == np.asarray(original(name).run(x)).tobytes()


@pytest.mark.parametrize("name", POINTS)
def test_its_gradient_is_right_under_every_policy(simulations, name):
    run, x = pb.adopt(f"simulations.{name}").run, POINTS[name]
    plain, h = original(name).run, 1e-6
    gradient = pb.grad(run)(x)
    np.testing.assert_allclose(gradient, (plain(x + h) - plain(x - h)) / (2 * h), rtol=2e-6)
    for policy in POLICIES:
        assert pb.grad(run, policy=policy)(x) == gradient, policy
    assert pb.value_and_grad(run)(x) == (plain(x), gradient)


@pytest.mark.parametrize("name", ["fields", "loops", "nbody"])
def test_its_second_derivative_and_its_forward_mode_agree(simulations, name):
    run, x, h = pb.adopt(f"simulations.{name}").run, POINTS[name], 1e-5
    gradient = pb.grad(run)
    np.testing.assert_allclose(pb.jvp(run, (x,), (1.0,))[1], gradient(x), rtol=1e-12)
    np.testing.assert_allclose(
        pb.hvp(run, (x,), (1.0,)), (gradient(x + h) - gradient(x - h)) / (2 * h), rtol=1e-5, atol=1e-6
    )


def test_modules_files_functions_and_classes_are_adopted_alike(simulations):
    module = pb.adopt("simulations.fields")
    assert module.__name__ == "pullback_adopted.simulations.fields"
    assert sys.modules[module.__name__] is module
    assert pb.adopt(original("fields")) is module
    assert pb.adopt(original("fields").run) is module.run
    assert pb.adopt(original("fields").Grid) is module.Grid
    assert pb.adopt(original("fields").Grid.step) is module.Grid.step
    assert pb.adopt(module.run) is module.run
    alone = pb.adopt(FOLDER / "cavity.py")
    assert alone is pb.adopt(str(FOLDER / "cavity.py"))
    assert alone.__name__ == "pullback_adopted.cavity"
    assert alone.run(0.1) == module.np.float64(original("cavity").run(0.1))


def test_the_original_is_neither_run_nor_changed(simulations):
    pb.adopt("simulations.loops")
    assert "simulations.loops" not in sys.modules
    loops = original("loops")
    before = loops.TABLE.copy()
    pb.grad(pb.adopt("simulations.loops").run)(0.63)
    assert (before == loops.TABLE).all()
    assert loops.np is np


def test_arrays_of_the_module_are_copied_for_each_trace(simulations):
    loops = pb.adopt("simulations.loops")
    loops.TABLE[:] = [1, 2, 3, 4]
    pb.grad(loops.run)(0.63)
    assert loops.TABLE.tolist() == [1, 2, 3, 4]
    seen = pb.grad(lambda c: (loops.run(c), loops.TABLE[1])[1])(0.63)
    assert seen == pytest.approx(2 * 0.63)


def test_imports_of_the_package_are_copies_too(simulations):
    copy = pb.adopt("simulations.nbody")
    assert copy.energies.__name__ == "pullback_adopted.simulations.parts.energies"
    copy.run(0.3)
    constants = sys.modules["pullback_adopted.simulations.parts.constants"]
    assert constants.energies is copy.energies
    assert copy.dataclass.__module__ == "dataclasses"


def test_instances_of_the_copy_are_pickled(simulations):
    bodies = pb.adopt("simulations.nbody").Bodies(np.ones(1), np.ones(2), np.ones(3))
    again = pickle.loads(pickle.dumps(bodies))  # noqa: S301 - written in the line above
    assert type(again) is type(bodies)
    assert again.vel.tolist() == bodies.vel.tolist()


def test_an_instance_of_the_original_is_refused_by_name(simulations, tmp_path):
    (tmp_path / "shapes.py").write_text("class Box:\n    side = 2.0\ndef area(box, k):\n    return k * box.side**2\n")
    sys.path.insert(0, str(tmp_path))
    try:
        import shapes  # noqa: PLC0415 - made just now

        copy = pb.adopt("shapes")
        with pytest.raises(
            pb.AdoptionError, match=r"area of adopted code is given an instance of shapes\.Box, a class"
        ):
            pb.grad(lambda k: copy.area(shapes.Box(), k))(1.5)
        assert pb.grad(lambda k: copy.area(copy.Box(), k))(1.5) == 4.0
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("shapes", None)


REFUSED = {
    "a compiled module": ("_bisect", "built into Python|is compiled"),
    "a builtin module": ("sys", "not adopted"),
    "no module": ("no_such_module_at_all", "there is no module no_such_module_at_all"),
    "no file": ("nowhere/there.py", "there is no file there.py"),
    "a builtin function": (len, "has no Python source"),
    "a lambda": (lambda x: x, "is defined within a function or is a lambda"),
    "an instance": (3.0, "float '' has no Python source"),
    "what is ours": ("numpy.linalg", "numpy.linalg is not adopted"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_adopted_is_named(what):
    target, message = REFUSED[what]
    with pytest.raises(pb.AdoptionError, match=message):
        pb.adopt(target)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import inspect\nSOURCE = inspect.getsource(len)\n", r"reads.py:2 reads source code \(inspect.getsource\)"),
        ("TEXT = open(__file__).read()\n", r"reads.py:1 reads source code \(open\)"),
        ("from nobody_knows_this import *\n", r"from nobody_knows_this import \*: there is no module"),
    ],
)
def test_a_file_that_cannot_be_copied_is_named(tmp_path, text, message):
    (tmp_path / "reads.py").write_text(text)
    with pytest.raises(pb.AdoptionError, match=message):
        pb.adopt(tmp_path / "reads.py")
    assert "pullback_adopted.reads" not in sys.modules


def test_a_function_that_reads_the_source_raises_when_it_is_called(tmp_path):
    (tmp_path / "shows.py").write_text(
        "from inspect import getsource\n\ndef f(t):\n    return t * t\n\ndef show():\n    print(getsource(f))\n"
    )
    copy = pb.adopt(tmp_path / "shows.py")
    assert pb.grad(copy.f)(3.0) == 6.0
    with pytest.raises(pb.AdoptionError, match=r"shows.py:7 reads source code \(getsource\)"):
        copy.show()


def test_a_file_of_ones_own_is_adopted_by_name_with_those_beside_it(tmp_path, monkeypatch):
    (tmp_path / "marching_main.py").write_text(
        "import marching_flux\n\ndef run(t):\n    return marching_flux.flux(t)[1]\n"
    )
    (tmp_path / "marching_flux.py").write_text(
        "import numpy as np\n\ndef flux(t):\n    f = np.zeros(2)\n    f[1] = 3 * t\n    return f\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert pb.grad(pb.adopt("marching_main").run)(2.0) == 3.0
    assert pb.adopt("marching_main") is pb.adopt(tmp_path / "marching_main.py")
