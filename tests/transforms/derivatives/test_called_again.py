"""Derivatives that are written anew in each call of a loop: they become stages, with the bits of the ordinary way,
whatever of the function changes between two calls."""

import gc
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import pullback as pb
from pullback.staging.calls import hot_gradients, shortcuts
from pullback.staging.generated import shelf
from pullback.transforms.derivatives import called_again, jacobian_rows_and_columns
from pullback.transforms.nested import called_derivatives
from pullback.transforms.nested.called_stages import PLAIN
from pullback.words.call_sites import MISSED

FACTOR = 1.5
TABLE = np.array([0.5, 1.5, -1.0])
CALLS = 16


@pytest.fixture(autouse=True)
def stages_come_soon(monkeypatch):
    shelf.forget()
    monkeypatch.setattr(called_derivatives, "BEFORE", dict.fromkeys(called_derivatives.BEFORE, 2))
    monkeypatch.setattr(called_derivatives, "PAYS", 2)
    monkeypatch.setattr(shortcuts, "PAYS", 2)
    monkeypatch.setattr(called_again, "FEW", 2)
    monkeypatch.setattr(hot_gradients, "SELDOM", 3)
    monkeypatch.setattr(jacobian_rows_and_columns, "ENOUGH", 3)
    hot_gradients._MADE.clear()
    jacobian_rows_and_columns._KNOWN.clear()
    yield
    shelf.forget()
    jacobian_rows_and_columns._KNOWN.clear()


@pytest.fixture
def handed(monkeypatch):
    """How each call was answered by a stage, where none has a caller."""
    ways, ordinary = [], called_derivatives._handed_out
    monkeypatch.setattr(called_derivatives, "PAYS", 10**6)
    monkeypatch.setattr(
        called_derivatives, "_handed_out", lambda found, *rest: ways.append(found.way) or ordinary(found, *rest)
    )
    return ways


def bits(found):
    if isinstance(found, tuple):
        return list(map(bits, found))
    return type(found), found.dtype, found.shape, getattr(found, "strides", ()), found.tobytes()


WRITTEN = {
    "grad": lambda f, x, t: pb.grad(f)(x),
    "value_and_grad": lambda f, x, t: pb.value_and_grad(f)(x),
    "grad by a tuple": lambda f, x, t: pb.grad(f, (0,))(x),
    "hvp": lambda f, x, t: pb.hvp(f, (x,), (t,)),
    "jvp": lambda f, x, t: pb.jvp(f, (x,), (t,)),
    "jvp of grad": lambda f, x, t: pb.jvp(pb.grad(f), (x,), (t,)),
    "jvp of value_and_grad": lambda f, x, t: pb.jvp(pb.value_and_grad(f, (0,)), (x,), (t,)),
    "jvp of a lambda with grad": lambda f, x, t: pb.jvp(lambda y: 1.0 * pb.grad(f)(y), (x,), (t,)),
    "hessian": lambda f, x, t: pb.hessian(f)(x),
    "jacobian by columns": lambda f, x, t: pb.jacobian(f, mode="forward")(x),
    "vjp": lambda f, x, t: pb.vjp(f, x)[1](np.float64(2.0)),
    "product within a gradient": lambda f, x, t: pb.grad(lambda y: np.sum(pb.hvp(f, (y,), (t,)) * y))(x),
    "tangent of a gradient within a gradient": lambda f, x, t: pb.grad(
        lambda y: np.sum(pb.jvp(pb.grad(f), (y,), (t,))[1] * t)
    )(x),
}


def module_level(x):
    return FACTOR * np.dot(x, x) + x[0] * x[1] * x[0] + np.sum(np.sin(x) * TABLE)


staged_level = pb.staged(module_level)


def with_default(x, k=0.5, table=TABLE):
    return k * np.dot(x, x) + np.sum(np.exp(x) * table)


def decided(x):
    return np.dot(x, x) if x[0] > 0.5 else np.sum(np.sin(x))


def in_a_closure(k):
    factor, table = 0.5 + k % 3, TABLE * (k % 4)
    return lambda x: factor * np.dot(x, x) + np.sum(np.cos(x) * table)


def with_a_default_of_its_own(k):
    number = np.float64(k)
    return lambda x, factor=number, n=2 + k % 2: factor * np.sum(x**n) * x[0]


def with_functions_around(k):
    inner = np.sin if k < 8 else np.cos
    mine = (lambda y: y * k) if k % 2 else (lambda y: y + k)
    return lambda x: np.sum(inner(x) * mine(x))


def changing():
    factor = 1.0

    def inner(y):
        return y * factor

    def change(k):
        nonlocal factor
        factor = k

    return inner, change


INNER, change_inner = changing()


def with_a_function_that_changes(k):
    change_inner(1.0 + k // 6)
    inner = INNER
    return lambda x: np.sum(inner(x) ** 2)


def with_an_object(k):
    settings = SimpleNamespace(factor=0.5 * k)
    return lambda x: np.sum(x * x) * settings.factor


def with_keywords_only(k):
    def f(x, *, factor=0.5 * k):
        return np.sum(x * x * x) * factor

    return f


MADE = {
    "at the module's level": lambda k: module_level,
    "staged": lambda k: staged_level,
    "with defaults": lambda k: with_default,
    "one that decides": lambda k: decided,
    "a partial": lambda k: partial(with_default, k=0.25 * k),
    "in a closure": in_a_closure,
    "with a default of its own": with_a_default_of_its_own,
    "with functions around": with_functions_around,
    "with a function that changes": with_a_function_that_changes,
    "with an object": with_an_object,
    "with keywords only": with_keywords_only,
}


def points(n=CALLS):
    for k in range(n):
        x = np.array([0.3, -0.7, 0.9]) + 0.1 * k
        yield k, x, np.array([1.0, 0.5, -0.25]) * (k - 3)


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("written", WRITTEN)
def test_the_bits_are_those_of_the_ordinary_way(written, made):
    ask = WRITTEN[written]
    for k, x, t in points():
        f = MADE[made](k)
        with pb.using(staging="off"):
            wanted = ask(f, x, t)
        assert bits(ask(f, x, t)) == bits(wanted)


STAGED = [name for name in WRITTEN if name not in ("jacobian by columns", "vjp", "jvp of a lambda with grad")]


@pytest.mark.parametrize("made", ["at the module's level", "with defaults"])
@pytest.mark.parametrize("written", STAGED)
def test_they_are_stages(written, made, handed):
    for k, x, t in points():
        WRITTEN[written](MADE[made](k), x, t)
    assert len(handed) > 3


@pytest.fixture
def answered(monkeypatch):
    """The answers of callers."""
    found, ordinary = [], called_derivatives.by_caller

    def by_caller(*given):
        answer = ordinary(*given)
        if answer is not MISSED:
            found.append(answer)
        return answer

    monkeypatch.setattr(called_derivatives, "by_caller", by_caller)
    return found


@pytest.mark.parametrize("made", ["at the module's level", "with defaults"])
@pytest.mark.parametrize("written", [name for name in STAGED if "within" not in name and "jvp of v" not in name])
def test_they_get_callers(written, made, answered):
    for k, x, t in points():
        WRITTEN[written](MADE[made](k), x, t)
    assert len(answered) > 3


def test_where_anything_is_in_force_a_caller_gives_nothing(answered):
    def ask(x, t):
        return pb.hvp(module_level, (x,), (t,))

    given = list(points(20))
    for _, x, t in given:
        wanted = ask(x, t)
    n = len(answered)
    assert n
    with pb.using(staging="off"):
        assert ask(x, t).tobytes() == wanted.tobytes()
    with np.errstate(all="raise"):
        assert ask(x, t).tobytes() == wanted.tobytes()
    pb.grad(lambda y: np.sum(ask(y, t)))(x)
    assert len(answered) == n
    pb.hvp(pb.staged(module_level, staging="off"), (x,), (t,))
    assert len(answered) == n
    with pytest.raises(pb.StructureError, match="tangents"):
        pb.hvp(module_level, (x, x), (t,))
    assert ask(x, t).tobytes() == wanted.tobytes()
    assert len(answered) == n + 1


def test_a_gradient_of_a_staged_function_begins_with_the_caller_of_others():
    f = pb.staged(lambda x: np.sum(np.sin(x) * x))
    for _, x, _ in points():
        pb.grad(f)(x)
    assert pb.grad(f).__pullback_hot__.first
    assert not pb.grad(f, allow_int=True).__pullback_hot__.first
    for _, x, _ in points(3):
        with pb.using(staging="off"):
            wanted = [bits(pb.grad(f)(x)), bits(pb.value_and_grad(f)(x)), bits(pb.grad(f, (0,))(x))]
        assert [bits(pb.grad(f)(x)), bits(pb.value_and_grad(f)(x)), bits(pb.grad(f, (0,))(x))] == wanted


def test_a_lambda_that_names_its_gradient_is_a_stage(handed):
    for _, x, t in points():
        pb.jvp(lambda y: 1.0 * pb.grad(module_level)(y), (x,), (t,))
    assert len(handed) > 3


def changed_global(patch, k):
    patch.setitem(globals(), "FACTOR", 0.5 + k % 3)


def changed_array(patch, k):
    TABLE[k % 3] += 0.25


def replaced_array(patch, k):
    patch.setitem(globals(), "TABLE", np.array([0.25, 1.0, 2.0]) * k)


def array_of_another_dtype(patch, k):
    patch.setitem(globals(), "TABLE", np.array([0.25, 1.0, 2.0], "f4" if k % 2 else "f8"))


def other_defaults(patch, k):
    patch.setattr(with_default, "__defaults__", (0.5 + k % 2, np.ones(3) * k))


def other_code(patch, k):
    bodies = [lambda x: np.sum(x * x * x), lambda x: np.sum(x * x)]
    patch.setattr(module_level, "__code__", bodies[k % 2].__code__)


def other_numpy(patch, k):
    patch.setattr(np, "dot", (lambda a, b: np.sum(a * b * b)) if k % 2 else (lambda a, b: np.sum(a * b)))


CHANGES = [
    changed_global, changed_array, replaced_array, array_of_another_dtype, other_defaults, other_code, other_numpy,
]  # fmt: skip


@pytest.mark.share(3, of=lambda **_: "")
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("written", WRITTEN)
def test_what_changes_around_is_met(written, change, monkeypatch):
    ask, before = WRITTEN[written], TABLE.copy()
    try:
        for k, x, t in points(2 * CALLS):
            if k % 9 == 8:
                change(monkeypatch, k // 9)
            for f in (module_level, staged_level, with_default):
                with pb.using(staging="off"):
                    wanted = ask(f, x, t)
                assert bits(ask(f, x, t)) == bits(wanted)
    finally:
        monkeypatch.undo()
        TABLE[:] = before


@pytest.mark.parametrize("written", [name for name in WRITTEN if "hess" not in name and "jac" not in name])
def test_kinds_of_arguments_may_change(written):
    ask = WRITTEN[written]
    kinds = [
        lambda x, t: (x, t),
        lambda x, t: (np.repeat(x, 2)[::2], t),
        lambda x, t: (x.astype("f4"), t.astype("f4")),
        lambda x, t: (x, np.broadcast_to(np.float64(0.5), 3)),
        lambda x, t: (x.astype(">f8"), t),
        lambda x, t: (np.where(x > 1.0, np.nan, x), t),
    ]
    for k, first, second in points(3 * CALLS):
        x, t = kinds[k // 8](first, second)
        table = np.array([1.0, 2.0, 3.0])
        with pb.using(staging="off"):
            wanted = ask(lambda x: np.sum(np.sin(x) * table) * x[0], x, t)  # noqa: B023 - at once
        found = ask(lambda x: np.sum(np.sin(x) * table) * x[0], x, t)  # noqa: B023 - at once
        assert bits(found) == bits(wanted)


def test_what_is_handed_out_is_nobody_elses(handed):
    kept = []
    for _, x, t in points():
        found = pb.hvp(module_level, (x,), (t,))
        kept.append((found, found.copy(), x.copy()))
        assert not np.may_share_memory(found, x)
        x[:] = t[:] = np.nan
    assert handed
    assert all(found.tobytes() == copy.tobytes() for found, copy, _ in kept)
    found, _, x = kept[-1]
    found[:] = 7.0
    again = pb.hvp(module_level, (x,), (np.ones(3),))
    with pb.using(staging="off"):
        assert again.tobytes() == pb.hvp(module_level, (x,), (np.ones(3),)).tobytes()


def test_errors_are_those_of_the_ordinary_way(handed):
    x, t = np.array([0.3, -0.7, 0.9]), np.ones(3)
    for _ in range(CALLS):
        pb.hvp(module_level, (x,), (t,))
        pb.grad(module_level)(x)
    n = len(handed)
    assert n
    with pytest.raises(pb.StructureError, match="tangent"):
        pb.hvp(module_level, (x,), (np.ones(2),))
    with pytest.raises(pb.NotDifferentiableError, match="scalar"):
        pb.grad(lambda x: x * 2.0)(x)
    pb.hvp(module_level, (x,), (t,))
    assert len(handed) == n + 1


def test_a_policy_and_aux_go_the_ordinary_way(handed):
    for _, x, t in points():
        pb.hvp(module_level, (x,), (t,), policy=pb.Binomial(2))
        pb.hvp(lambda x: (module_level(x), x), (x,), (t,), has_aux=True)
        with pb.using(policy=pb.Recompute()):
            pb.grad(module_level)(x)
            pb.jvp(pb.grad(module_level), (x,), (t,))
    assert not handed


def test_a_kept_gradient_has_ways_of_its_own(handed):
    kept = pb.grad(module_level)
    for _, x, t in points():
        kept(x)
        pb.jvp(kept, (x,), (t,))
    assert PLAIN not in handed


@pytest.mark.parametrize("written", [name for name in WRITTEN if name not in ("hessian", "jacobian by columns")])
def test_calls_leave_nothing_behind(written):
    x, t = np.array([0.3, -0.7, 0.9]), np.ones(3)

    def call():
        table = np.ones(3)
        WRITTEN[written](lambda x: np.sum(x * x * table) * x[0], x, t)

    for _ in range(60):
        call()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            call()
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()
