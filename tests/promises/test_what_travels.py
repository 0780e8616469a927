"""What goes to another process by ``pickle``: every public name has an answer here, and so has what it returns."""

import pickle
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from tests.promises import travelling_programs as programs

import pullback as pb
from pullback.words import errors

X = programs.X
LINEAR = pb.linearize(programs.vector, X)


def read_there(things):
    """What another process, that knows nothing yet, makes of a pickle: outcomes by name."""
    code = (
        "import pickle, sys; things = pickle.loads(sys.stdin.buffer.read()); "
        "from tests.promises import test_what_travels as here; "
        "sys.stdout.buffer.write(pickle.dumps({name: here.outcome(thing) for name, thing in things.items()}))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(things), capture_output=True, check=False)
    assert not done.returncode, done.stderr.decode()
    return pickle.loads(done.stdout)  # noqa: S301 - written by the process above


def outcome(thing):
    """What tells a thing in every process: bits of what a function gives, the text of anything else."""
    if isinstance(thing, tuple) and len(thing) == 2 and callable(thing[0]):
        result = thing[0](*thing[1])
        found, structure = pb.ravel(result.toarray() if hasattr(result, "toarray") else result)
        return found.tobytes(), str(structure)
    return str(thing)


def tracer():
    kept = []
    pb.grad(lambda x: kept.append(x) or np.sum(x))(X)
    return kept[0]


MODULES = {"backends", "scaling", "schedules", "stores", "testing"}
"""Public names that are modules, which ``pickle`` does not take."""
ERRORS = {name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, Exception | Warning)}
CALLED = {
    "checkpoint": (pb.grad(programs.stacked, policy=pb.Binomial(2)), (X,)),
    "effect": (pb.effect(programs.said), (1,)),
    "elementwise_grad": (pb.elementwise_grad(programs.each, policy=pb.Recompute()), (X,)),
    "fun_and_grad": (pb.fun_and_grad(programs.of_model, programs.Model(X, 2.0)), (np.append(X, 3.0),)),
    "grad": (pb.grad(programs.in_loop, policy=pb.Binomial(2), conj=True), (X,)),
    "hessian": (pb.hessian(programs.misfit, chunk="1 MB"), (X,)),
    "jacobian": (pb.jacobian(programs.vector, argnames="x", mode="forward"), (X,)),
    "primitive": (pb.grad(programs.with_primitives), (X,)),
    "ravel": (pb.ravel(programs.Model(X, 2.0)).unravel, (np.append(X, 3.0),)),
    "sparse_jacobian": (pb.sparse_jacobian(programs.each, policy=pb.Binomial(2)), (X,)),
    "staged": (pb.grad(pb.staged(programs.misfit, staging="off")), (X,)),
    "value_and_grad": (
        pb.value_and_grad(
            partial(programs.marked, 2.0), on_adjoint={"u": programs.sees_adjoint}, policy=pb.Budget("1 MB")
        ),
        (X,),
    ),
}
"""By the public name that made it: a function, and the arguments with which it is called in both processes."""
TOLD = {
    "Binomial": pb.Binomial(3),
    "Budget": pb.Budget("2 MB"),
    "Keep": pb.Keep("a"),
    "Mixed": pb.Mixed(3),
    "Periodic": pb.Periodic(4),
    "Recompute": pb.Recompute(),
    "SaveAll": pb.SaveAll(),
    "Tiered": pb.Tiered(2, 3, directory="somewhere"),
    "dependencies": pb.dependencies(programs.vector, X),
    "explain_stage": pb.explain_stage(programs.body),
    "pareto": pb.pareto(programs.in_loop, X),
    "plan": pb.plan(programs.of_model, programs.Model(X, 2.0), policy=pb.Binomial(2)),
    "profile": pb.profile(programs.of_model, programs.Model(X, 2.0), policies=[pb.SaveAll()]),
    "record": pb.record(programs.of_model, programs.Model(X, 2.0)),
    "saved": pb.saved(programs.of_model, programs.Model(X, 2.0)),
    "spec": pb.spec((3,)),
}
"""What is a value, by the public name that made it."""
REFUSED = {
    "BudgetPool": (lambda: pb.BudgetPool("1 MB"), pb.TravelError, r"one of the threads of its process.*path=\.\.\."),
    "Registry": (pb.registry.scoped, pb.TravelError, r"a registry of your own cannot be pickled.*scoped\(\)"),
    "Tracer": (tracer, pb.ConversionError, r"a pickle of a tracer"),
    "linearize": (lambda: LINEAR[1], pb.TravelError, r"what linearize returns.*call linearize or jvp on that side"),
    "steps": (lambda: pb.steps(3), TypeError, "generator"),
    "trap": (pb.trap, TypeError, "generator"),
    "vjp": (
        lambda: pb.vjp(programs.misfit, X)[1],
        pb.TravelError,
        r"a pull holds the records of one run.*call pullback\.grad, value_and_grad or vjp on that side",
    ),
}
"""What cannot travel, by the public name that made it: with the error, and what this says."""
PLAIN = set(
    "Agreement Composite MemoryPolicy Primitive adopt composite custom_linear_solve custom_root fixed_point fori_loop "
    "gauss_newton_product hvp jvp map_leaves name odeint over_executor register registry resume scan stop_gradient "
    "using value while_loop".split()
)
"""Names of which nothing is made that would not be a number, an array, a structure of these, or the user's own."""


def test_every_public_name_has_an_answer():
    """A new name of ``pullback.__all__`` needs a line in one of the tables above."""
    tables = (CALLED, TOLD, REFUSED, PLAIN, MODULES, ERRORS)
    assert sorted(name for table in tables for name in table if not name.startswith("_")) == sorted(pb.__all__)


@pytest.mark.parametrize("name", sorted(set(pb.__all__) - MODULES))
def test_public_names_are_themselves_again(name):
    thing = getattr(pb, name)
    assert pickle.loads(pickle.dumps(thing)) is thing  # noqa: S301 - what was dumped just now


def test_what_they_make_is_the_same_in_another_process():
    things = {**CALLED, **TOLD, "nested": (pb.grad(pb.grad(programs.number)), (0.3,))}
    assert read_there(things) == {name: outcome(thing) for name, thing in things.items()}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_travel_says_so(name):
    make, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        pickle.dumps(make())


@pytest.mark.parametrize("name", sorted(name for name in ERRORS if name in pb.__all__))
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_errors_keep_class_code_text_attributes_and_notes(name, protocol):
    kind = getattr(pb, name)
    given = {"BudgetError": (30,), "ConvergenceError": (0.5, 3), "StoreError": ("part.npy",)}.get(name, ())
    error = kind("what happened, and what to do", *given)
    error.add_note("pullback: step 3")
    error.mine = [1, 2]
    again = pickle.loads(pickle.dumps(error, protocol))  # noqa: S301 - what was dumped just now
    assert (type(again), again.code, str(again), again.args, vars(again)) == (
        kind, kind.code, str(error), error.args, vars(error),
    )  # fmt: skip
    assert again.__notes__ == ["pullback: step 3"]
