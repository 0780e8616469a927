"""Loops of adopted code as one record: the bits of their operations one by one, and what they leave to the ordinary
way."""

import warnings
from contextlib import suppress

import numpy as np
import pytest
from tests.adopting.loops.drawn_loops import Drawn, whole_arrays, with_what_depends
from tests.adopting.loops.loop_gradients import require_same

import pullback as pb
from pullback.adopting.loops import loop_runs

pytestmark = pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
A = np.random.default_rng(3).uniform(0.2, 1, 6)
M = np.random.default_rng(4).uniform(0.2, 1, (6, 5))


def require_drawn(adopted, text, n=6):
    program = adopted(text).program
    plain = {}
    exec(text, plain)  # noqa: S102 - drawn by the test
    args = 0.8, A[:n].copy(), M[:n, : min(5, n)].copy()
    try:
        expected = plain["program"](*args)
    except OverflowError:  # of Python's numbers
        return
    np.testing.assert_array_equal(require_same(program, *args)[0], expected)


@pytest.mark.parametrize("seed", range(40))
def test_drawn_loops(adopted, seed):
    require_drawn(adopted, Drawn(seed).text())


@pytest.mark.parametrize("seed", range(40))
def test_drawn_loops_over_whole_arrays(adopted, seed):
    require_drawn(adopted, whole_arrays(seed), 4)


@pytest.mark.parametrize("seed", range(20))
def test_what_depends_on_the_inputs_after_drawn_loops(adopted, seed):
    """A branch that is not taken leaves a value as it was, for whoever reads it."""
    require_same(adopted(with_what_depends(seed)).program, 0.8, A.copy(), M.copy())


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 4000, 100))
def test_many_drawn_loops(adopted, start):
    for seed in range(start, start + 100):
        require_drawn(adopted, Drawn(seed).text())
        require_drawn(adopted, whole_arrays(seed), 4)
        with suppress(OverflowError):  # of Python's numbers
            require_same(adopted(with_what_depends(seed)).program, 0.8, A.copy(), M.copy())


def test_most_drawn_loops_run_as_a_whole(adopted, ran):
    for seed in range(20):
        pb.grad(adopted(Drawn(seed).text()).program)(0.8, A.copy(), M.copy())
    assert sum(whole for _, whole in ran) > 15


SWEEPS = """
import numpy as np

def sweeps(c, n=8):
    u = np.zeros((n, n))
    u[n // 2, n // 2] = c
    for i in range(1, n - 1):
        for j in range(1, n - 1):
            u[i, j] = (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]) / 4.0 + 0.1 * c
    return np.sum(u ** 2)
"""


def test_a_loop_is_asked_once_from_outside(adopted, ran):
    f = adopted(SWEEPS).sweeps
    require_same(f, 0.7)
    assert ran[0] == (7, True)
    assert (10, True) not in ran
    pb.testing.check_grads(f, (0.7,), order=1, modes=("rev",))


@pytest.mark.parametrize(
    "options", [{"policy": pb.SaveAll()}, {"allow_int": True}, {"conj": True}, {"has_aux": True}], ids=str
)
def test_every_gradient_under_save_all_takes_a_loop_as_a_whole(adopted, ran, options):
    f = adopted(SWEEPS).sweeps
    with_aux = (lambda c: (f(c), c)) if "has_aux" in options else f
    found = pb.grad(with_aux, **options)(0.7)
    assert ran == [(7, True)]
    assert (found[0] if "has_aux" in options else found) == pb.grad(f)(0.7)


def test_nobody_who_looks_at_records_sees_one(adopted, ran):
    f = adopted(SWEEPS).sweeps
    pb.record(f, 0.7)
    pb.saved(f, 0.7)
    pb.jvp(f, (0.7,), (1.0,))
    pb.hvp(f, (0.7,), (1.0,))
    with pb.using(staging="off"):
        pb.grad(f)(0.7)
    assert not any(whole for _, whole in ran)


def test_second_order_goes_one_by_one(adopted):
    f = adopted(SWEEPS).sweeps
    h = 1e-5
    second = pb.grad(lambda c: pb.grad(f)(c) * c)(0.7)
    difference = ((0.7 + h) * pb.grad(f)(0.7 + h) - (0.7 - h) * pb.grad(f)(0.7 - h)) / (2 * h)
    np.testing.assert_allclose(second, difference, rtol=1e-7)


def test_cotangents_of_a_trace_around(adopted, ran):
    """The loop has run before the trace around shows itself: its reverse is recorded."""
    f = adopted(SWEEPS).sweeps

    def outer(y):
        return pb.grad(lambda c: f(c) * np.sin(y))(0.7) ** 2

    gradient = pb.grad(outer)(0.4)
    assert (7, True) in ran
    with pb.using(staging="off"):
        assert gradient == pb.grad(outer)(0.4)
    slope = pb.grad(f)(0.7)
    np.testing.assert_allclose(gradient, 2 * slope**2 * np.sin(0.4) * np.cos(0.4), rtol=1e-12)


def test_a_mask_elsewhere_in_the_trace(adopted, ran):
    """0 * inf in the loop, of what a mask leaves out, is 0 as one by one."""
    text = """
import numpy as np

def f(x):
    u = np.zeros(3)
    for i in range(3):
        u[i] = x[i] * np.log(x[i])
    return np.sum(np.where(x > 0, u, 0.0))
"""
    whole = require_same(adopted(text).f, np.array([0.0, 1.0, 2.0]))
    assert whole[1][0] == 0
    assert np.isfinite(whole[1]).all()
    assert ran[0][1]


def test_another_name_of_a_number(adopted, ran):
    """x0 is read after the loop, too: cotangents of the value would come from both sides of it."""
    text = """
def f(c):
    x = c * 1.0
    x0 = x
    for i in range(5):
        x = x * x0 - 0.1 * x
    return x * x0 + x0
"""
    require_same(adopted(text).f, 0.9)
    assert not ran[0][1]


@pytest.mark.parametrize("lines", ["s = s + a[i] * b[i] * b[0]", "s = s + c * d * a[i] + d", "u[i] = a[i] * b[0] * d"])
def test_two_names_of_one_value(adopted, ran, lines):
    """Both begin with what later readers have sent, which must not be counted twice."""
    text = f"""
import numpy as np

def f(a, c):
    b, d, s = a, c, 0.0
    u = np.zeros(3)
    for i in range(3):
        {lines}
    return s + np.sum(u * a[:3]) * c + b[1]
"""
    f = adopted(text).f
    x = np.arange(1.0, 5.0)
    _, of_a, _ = require_same(f, x, 0.7)
    h = np.array([1e-6, 0, 0, 0])
    np.testing.assert_allclose(of_a[0], (f(x + h, 0.7) - f(x - h, 0.7)) / 2e-6, rtol=1e-7)
    assert not ran[0][1]


@pytest.mark.parametrize("ends", ["5, 1", "1, 3"])
def test_a_loop_that_writes_nothing_changes_no_order(adopted, ran, ends):
    """A view that was there before sends its cotangents where it was made, unless the array has been written."""
    text = f"""
import numpy as np

def f(c, a):
    u = np.zeros(6)
    u[2] = a[1] + 0.1
    view = u[::1]
    for i in range({ends}):
        if c > i:
            u[i] = c
    return np.sum(u * u) + np.sum(view) * 0.1
"""
    require_same(adopted(text).f, 0.7, A.copy())
    assert ran[0][1]


@pytest.mark.parametrize("given", [0.0, 1.0])
def test_what_a_branch_has_left_plain_can_be_read_by_anybody(adopted, ran, given):
    text = """
import numpy as np

def f(c, a, given):
    u, s, t = np.zeros(3), 1.0, c * 2.0
    for i in range(3):
        if given > 0.5:
            u[i] = c
            s = s * c
        t = 0.5
    told = 0.0 if given > 0.5 else u.tolist()[0] + np.asarray(s).tolist()
    return np.sum(u) * s * c + told + t + c * np.asarray(t).tolist()
"""
    require_same(lambda c: adopted(text).f(c, A.copy(), given), 0.7)
    assert ran[0][1]


@pytest.mark.parametrize("line", ["s = s + c * (t > 0.1)", "q = t", "if t: s = s + c", "s = s + t * c"])
def test_a_name_without_a_value(adopted, line):
    text = f"""
def f(c):
    s, q = 0.0, 1.0
    for i in range(3):
        if i > 5:
            t = 0.5
        {line}
    return s * q + c
"""
    with pytest.raises(UnboundLocalError, match="'t'"):
        pb.grad(adopted(text).f)(0.7)


@pytest.mark.parametrize("line", ["s = s + c * t", "q = t"])
def test_a_local_without_a_value_is_not_that_of_the_module(adopted, line):
    text = f"""
t = 5.0

def f(c):
    s, q = 0.0, 1.0
    for i in range(3):
        if i > 0:
            {line}
        if i > 1:
            t = 0.5
    return s * q + c * t
"""
    with pytest.raises(UnboundLocalError, match="'t'"):
        pb.grad(adopted(text).f)(0.7)


@pytest.mark.parametrize("name", ["bool", "reversed", "len", "loop", "locals"])
def test_names_that_generated_code_calls(adopted, name):
    text = f"""
def f(c):
    s, {name} = 0.0, 2.0
    for i in range(3):
        if i > 0:
            s = s + c * {name}
    return s
"""
    require_same(adopted(text).f, 0.7)


def test_a_warning_is_filtered_by_the_module(adopted, ran):
    text = """
import numpy as np

def f(c):
    s = 0.0
    for i in range(3):
        s = s + np.log(c)
    return s
"""
    module = adopted(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", module=module.__name__)
        pb.grad(module.f)(-0.7)
    assert ran == [(6, True)]
    assert not told


def test_numbers_go_in_again_and_again(adopted, ran):
    text = """
def f(c, n=4):
    x, k = c * 1.0, 0
    while k < 3:
        for i in range(n):
            x = x * c - 0.1 * x
        k = k + 1
    return x
"""
    require_same(adopted(text).f, 0.9)
    assert [whole for _, whole in ran][:3] == [True] * 3


def test_what_comes_out_may_be_written(adopted):
    """Arrays that the loop has made are on its stack: a write afterwards copies."""
    text = """
import numpy as np

def f(c, a):
    u = a * c
    for i in range(3):
        u = u * a + c
        t = np.sin(u)
        w = a * 2.0
    u[0] = 2.0 * c
    t[1] = c
    u = u * t
    return np.sum(u)
"""
    f = adopted(text).f
    require_same(f, 0.7, A.copy())
    require_same(lambda c: f(c, A.copy()), 0.7)


def test_constants_that_come_out_can_hold_traced_values(adopted):
    text = """
import numpy as np

def f(c, n):
    b = np.linspace(0.1, 0.5, 4)
    s = 0.0
    for i in range(n):
        b = b * 2.0
        s = s + c * i
    b[1] = c
    return s + np.sum(b * b)
"""
    require_same(adopted(text).f, 0.7, 3)


def test_an_error_is_told_by_the_line_of_the_file(adopted):
    text = """
import numpy as np

def f(c):
    u = np.zeros(3)
    for i in range(4):
        u[i] = c
    return np.sum(u)
"""
    with pytest.raises(IndexError, match="index 3 is out of bounds") as raised:
        pb.grad(adopted(text).f)(0.7)
    assert raised.traceback[-1].lineno == 6 or any(
        entry.lineno == 6 and "loops_" in str(entry.path) for entry in raised.traceback
    )


def test_a_warning_names_the_line_of_the_file(adopted):
    text = """
import numpy as np

def f(c):
    u = np.zeros(3)
    for i in range(3):
        u[i] = c / (i * u[0])
    return np.sum(u)
"""
    module = adopted(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        pb.grad(module.f)(0.7)
    assert {(w.lineno, w.filename) for w in told} == {(7, module.__file__)}


@pytest.mark.parametrize(
    "body",
    [
        "row = u[i]\n        row[0] = c",
        "u[i] = c\n        if u[0, 0] > 5: break",
        "u[int(c)] = c",
        "u[i, :2] = c * np.ones(1)",
        "u[i] = np.cumsum(u[i] + c)",
        "k = i if i < 2 else 0\n        u[k] = c",
        "u[i, i] = max(c, u[0, i])",
    ],
)
def test_what_is_left_to_the_ordinary_way(adopted, ran, body):
    text = f"""
import numpy as np

def f(c):
    u = np.zeros((3, 3))
    for i in range(3):
        {body}
    return np.sum(u * u)
"""
    require_same(adopted(text).f, 0.7)
    assert not any(whole for _, whole in ran)


def test_functions_under_other_names(adopted, ran):
    """Names are looked up where the loop stands; what a local name hides is not followed."""
    text = """
import numpy as np
from math import sin as wave

def f(c):
    s = 0.0
    for i in range(3):
        s = s + wave(c * i)
    return s

def g(c, wave):
    s = 0.0
    for i in range(3):
        s = s + wave(c * i)
    return s
"""
    module = adopted(text)
    require_same(module.f, 0.3)
    value, gradient = pb.value_and_grad(lambda c: module.g(c, np.cos))(0.3)
    np.testing.assert_allclose([value, gradient], [1 + np.cos(0.3) + np.cos(0.6), -np.sin(0.3) - 2 * np.sin(0.6)])
    assert next(whole for line, whole in ran if line == 7)
    assert not [line for line, _ in ran if line == 13]


def test_a_function_that_is_another_in_the_next_call(adopted):
    text = """
import numpy as np
wave = np.sin

def f(c):
    s = 0.0
    for i in range(3):
        s = s + wave(c * i)
    return s
"""
    module = adopted(text)
    first = pb.grad(module.f)(0.3)
    module.wave = np.cos
    np.testing.assert_allclose(pb.grad(module.f)(0.3), -np.sin(0.3) - 2 * np.sin(0.6))
    assert first != pb.grad(module.f)(0.3)


def test_a_short_loop_on_a_large_array_copies_nothing(adopted, ran):
    text = """
import numpy as np

def f(c):
    u = np.zeros(100_000)
    for i in range(2):
        u[i] = c
    return np.sum(u)
"""
    assert pb.grad(adopted(text).f)(0.7) == 2.0
    assert ran == [(6, False)]


def test_a_loop_that_makes_large_arrays_goes_operation_by_operation(adopted, ran):
    text = """
import numpy as np

def f(c, n):
    u = np.linspace(0.0, 1.0, n)
    for i in range(9):
        u = u + c * u * (1.0 - u)
    return np.sum(u)
"""
    f = adopted(text).f
    require_same(f, 0.1, 10)
    pb.grad(f)(0.1, 10_000)
    assert [ran[0][1], ran[-1][1]] == [True, False]


def test_a_loop_that_never_runs_as_a_whole_rests(adopted, ran):
    text = """
import numpy as np

def f(c):
    u = np.zeros((3, 3))
    for k in [0] * 200:
        for i in range(3):
            u[i] = np.cumsum(u[i] + c)
    return np.sum(u)
"""
    pb.grad(adopted(text).f)(0.0)
    assert 8 < len(ran) < 60


def test_arrays_of_the_module_and_arguments_of_others(adopted):
    text = """
import numpy as np
TABLE = np.linspace(0.1, 1.0, 4)

def f(c, given):
    for i in range(4):
        TABLE[i] *= c
        given[i] = given[i] + TABLE[i]
    return np.sum(given)
"""
    module = adopted(text)
    given = np.ones(4)
    value, gradient = pb.value_and_grad(lambda c: module.f(c, np.array(given, like=c)))(0.5)
    np.testing.assert_allclose([value, gradient], [4 + 0.5 * 2.2, 2.2])
    assert module.TABLE[0] == 0.1
    assert given.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("u[i] = np.cumsum(u[i] + c)", "np.cumsum is not followed"),
        ("u[i, :2] = c * np.ones(1)", "np.ones is not followed"),
        ("u[i, :2] += c * TABLE[:1]", "arrays of different shapes meet"),
        ("v[i] = c", loop_runs.UNFIT),
        ("u[i] = c\n        if u[0, 0] > 5: break", "break is not followed"),
        ("k = int(c)\n        u[k] = c", "int of what is no integer is not followed"),
    ],
)
def test_why_a_loop_runs_item_by_item_is_told(adopted, body, why):
    text = f"""
import numpy as np
TABLE = np.ones(2)

def f(c):
    u = np.zeros((3, 3))
    v = u[1]
    for i in range(3):
        {body}
    return np.sum(u * u)
"""
    f = adopted(text).f
    require_same(f, 0.7)
    assert pb.explain_stage(f).why == (f"the loop at line 8 is not followed as a whole: {why}",)
    assert not pb.explain_stage(f).stages


def test_the_text_of_a_loop_is_told(adopted):
    f = adopted(SWEEPS).sweeps
    pb.grad(f)(0.7)
    [text] = pb.explain_stage(f).stages
    assert "for j in range(1, n - 1):" in text
    assert "for j in reversed(range(1, n - 1)):" in text
    assert not pb.explain_stage(f).why
