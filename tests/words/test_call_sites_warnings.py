"""NumPy's warnings name the user's line, in NumPy's words, whatever runs the operation."""

import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.words import call_sites
from pullback.words.undocumented import error_state

X = np.array([0.5, 800.0, 800.0])


def told(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return {(str(w.message), w.filename, w.lineno) for w in caught}


def overflowing(x):
    u = np.exp(x)
    v = u[1:] * x[1:] / (x[1:] - x[1])  # inf / 0
    w = np.mean(np.where(x > 0, np.square(u), 0.0))
    return np.sum(np.sqrt(x - x)) + v[0] + w


def within_a_loop(x):
    return pb.fori_loop(0, 6, lambda k, s: (s[0], s[1] + overflowing(s[0])), (x, 0.0))[1]


def in_marked_steps(x):
    total = 0.0
    for _ in pb.steps(6):
        total = total + overflowing(x)
    return total


@pytest.mark.parametrize(
    "derived",
    [
        pb.grad,
        pb.hessian,
        lambda f: pb.grad(f, policy=pb.Recompute()),
        lambda f: pb.grad(pb.checkpoint(f)),
        lambda f: pb.grad(pb.staged(f)),
        lambda f: lambda x: pb.vjp(f, x)[1](1.0),
        lambda f: lambda x: pb.jvp(f, (x,), (x,)),
    ],
)
@pytest.mark.parametrize("program", [overflowing, within_a_loop, in_marked_steps])
def test_a_warning_names_the_users_line(derived, program):
    plain, lines = told(lambda: overflowing(X)), range(*np.add(inspect.getsourcelines(overflowing)[1], (1, 5)))
    derivative = derived(program)
    for _ in range(3):
        found = told(lambda: derivative(X))
        assert plain <= found
        assert {file for _, file, _ in found} == {__file__}
        # of marked steps and of a loop the sum is the program's own line
        assert {line for text, _, line in found if "add" not in text} <= set(lines)


def test_it_goes_by_the_module_and_is_shown_once():
    program = (
        "import numpy as np, pullback as pb, warnings\n"
        "def f(x):\n"
        "    return np.sum(np.exp(x))\n"
        "for _ in range(3):\n"
        "    pb.grad(f)(np.array([800.0]))\n"
        "warnings.filterwarnings('error', category=RuntimeWarning, module='__main__')\n"
        "try:\n"
        "    pb.grad(f)(np.array([800.0]))\n"
        "except RuntimeWarning as error:\n"
        "    print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "overflow encountered in exp\n"
    assert run.stderr.count("overflow") == run.stderr.count("<string>:3: RuntimeWarning") == 1


def test_the_users_own_error_state_holds():
    asked, heard = [], []

    def f(x):
        asked.append(call_sites.errors_in_force())
        with np.errstate(over="ignore"):
            u = np.exp(x)
        return np.sum(u)

    with np.errstate(divide="raise", under="warn"):
        before = np.geterr()
        assert not told(lambda: pb.grad(f)(X))
        assert asked == [before] == [np.geterr()]
        with pytest.raises(FloatingPointError, match="divide by zero"):
            pb.grad(lambda x: np.sum(np.log(x - x)))(X)
    with np.errstate(all="call", call=lambda kind, _: heard.append(kind)):  # they are told to the user's own
        assert not told(lambda: pb.grad(overflowing)(X))
    assert "overflow" in heard


def test_states_that_come_and_go_are_forgotten():
    for _ in range(500):
        with np.errstate(over="ignore"):
            pb.grad(np.sum)(X)
    assert len(call_sites.TELLING) < 300
    assert error_state() not in call_sites._MEANT


def test_code_that_belongs_to_no_module_warns():
    names = {"np": np}
    exec("def f(x):\n    return np.sum(np.log(x - 1.0))", names)  # noqa: S102 - as a user does
    with pytest.warns(RuntimeWarning, match="divide by zero") as told:
        pb.grad(names["f"])(np.ones(2))
    assert (told[0].filename, told[0].lineno) == ("<string>", 2)


@pytest.mark.parametrize("staging", ["off", "numpy"])
def test_a_step_that_ends_sooner_than_others_warns_at_its_own_line(staging):
    def body(k, u):
        v = u[1:] * 0.0
        if k % 2:
            v = v + 1.0
        return np.concatenate((u[:1], v))

    def gradient():
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 5, body, x, staging=staging)[:1]))(np.array([1.0, np.inf, 2.0]))

    lines, first = inspect.getsourcelines(body)
    for _ in range(3):
        found = told(gradient)
        assert {line for text, _, line in found if "multiply" in text} == {first + 1}
    assert "u[1:] * 0.0" in lines[1]
