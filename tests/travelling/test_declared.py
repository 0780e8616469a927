"""Primitives and composites in other processes: found again there, or known by what they declare."""

import copy
import linecache
import pickle
import subprocess
import sys
from types import ModuleType

import cloudpickle
import numpy as np
import pytest
from tests.promises import travelling_programs as programs

import pullback as pb
from pullback.rules.forms import FORMS
from pullback.words import call_sites

X = programs.X


def again(thing, pickler=pickle):
    return pickle.loads(pickler.dumps(thing))  # noqa: S301 - what was dumped just now


def test_every_registered_one_is_itself_again():
    for pickler in (pickle, cloudpickle):
        for name, declared in pb.registry.complete().names.items():
            assert again(declared, pickler) is declared, name


def test_one_of_a_module_is_found_there():
    for pickler in (pickle, cloudpickle):
        for declared in (programs.softplus, programs.doubled, programs.twice):
            assert again(declared, pickler) is declared
    assert len(pickle.dumps(programs.doubled)) < 200
    assert programs.doubled.module == programs.twice.module == programs.__name__


def test_copies_are_itself():
    for way in (copy.copy, copy.deepcopy):
        assert way(programs.softplus) is programs.softplus
        assert way(programs.twice) is programs.twice


def test_one_that_nobody_could_find_is_refused():
    lonely = pb.primitive(lambda x: x, name="lonely")
    with pytest.raises(pb.TravelError, match=r"lonely cannot be pickled: it is neither registered.*pullback\.register"):
        pickle.dumps(lonely)


def test_a_name_that_is_another_one_here_is_refused():
    with pb.registry.replaced(pb.primitive(lambda x: x, name="travels")):
        data = pickle.dumps(pb.registry.named("travels"))
    with pytest.raises(pb.UnknownFunctionError, match="travels"):
        pickle.loads(data)  # noqa: S301 - as above
    other = ModuleType("another_package")
    exec("import pullback as pb; travels = pb.primitive(lambda x: x, name='travels')", vars(other))  # noqa: S102
    with (
        pb.registry.replaced(other.travels),
        pytest.raises(pb.TravelError, match=r"travels of tests\..*registered by another_package"),
    ):
        pickle.loads(data)  # noqa: S301 - as above


def test_a_module_that_lacks_it_is_named(monkeypatch):
    data = pickle.dumps(programs.softplus)
    monkeypatch.delattr(programs, "softplus")
    with pytest.raises(pb.TravelError, match=r"travelling_programs\.softplus comes by pickle, and is not here"):
        pickle.loads(data)  # noqa: S301 - as above


DECLARATIONS = """
import numpy as np, pullback as pb

SCALE = 2.0

@pb.primitive
def soft(x):
    return np.logaddexp(0.0, SCALE * x)

@soft.vjp("x")
def _(ct, x):
    return ct * SCALE * rising(SCALE * x)

@pb.primitive
def rising(x):
    return 1.0 / (1.0 + np.exp(-x))

@rising.vjp("x")
def _(ct, x):
    return ct * rising(x) * (1.0 - rising(x))

@pb.composite(name="soft_twice")
def twice(x):
    return 2.0 * soft(x) + 0.0 * rising(x)

def body(k, u):
    return soft(u) * 0.5

def f(x):
    return np.sum(pb.fori_loop(0, 30, body, x)) + np.sum(twice(x))
"""
SENDER = f"""{DECLARATIONS}
import pickle, sys, cloudpickle

payloads = [cloudpickle.dumps(pb.grad(f)) for _ in range(40)]
SCALE = 3.0
other = cloudpickle.dumps(pb.grad(f))
assert cloudpickle.loads(cloudpickle.dumps(soft)) is soft
assert pickle.loads(pickle.dumps((soft, twice))) == (soft, twice)
pickle.dump((payloads, other), sys.stdout.buffer)
"""


@pytest.fixture(scope="module")
def payloads():
    """What a script sends for 40 tasks, and for one after a number has changed that its primitive reads."""
    done = subprocess.run([sys.executable, "-c", SENDER], capture_output=True, check=True)
    return pickle.loads(done.stdout)  # noqa: S301 - written by the script above


def grown():
    """What a process has for good."""
    return len(FORMS), len(call_sites._SITES), len([name for name in linecache.cache if name.startswith("<pullback")])


def test_copies_leave_nothing_behind(payloads):
    tasks, _ = payloads
    first = pickle.loads(tasks[0])(X)  # noqa: S301 - as above
    before = grown()
    for task in tasks[1:]:
        np.testing.assert_array_equal(pickle.loads(task)(X), first)  # noqa: S301 - as above
    assert grown() == before


def test_a_copy_reads_what_its_own_process_read(payloads):
    tasks, other = payloads
    here = ModuleType("declared_here")
    exec(DECLARATIONS, vars(here))  # noqa: S102 - the text above
    np.testing.assert_array_equal(pickle.loads(tasks[0])(X), pb.grad(here.f)(X))  # noqa: S301 - as above
    here.SCALE = 3.0
    np.testing.assert_array_equal(pickle.loads(other)(X), pb.grad(here.f)(X))  # noqa: S301 - as above


def test_its_rules_know_it_and_each_other(payloads):
    slope = pickle.loads(payloads[0][0])  # noqa: S301 - as above
    soft = slope.__wrapped__.__globals__["body"].__globals__["soft"]
    rising = soft.rules["x"][0].fn.__globals__["rising"]
    assert type(soft) is type(rising) is pb.Primitive
    assert rising.rules["x"][0].fn.__globals__["rising"] is rising
    assert slope.__wrapped__.__globals__["twice"].function.__globals__["soft"] is soft
