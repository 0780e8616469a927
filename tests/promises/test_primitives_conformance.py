"""Every case of every primitive: NumPy's values, right derivatives of both orders, kept dtypes, equal bits under
policies."""

import numpy as np
import pytest
from tests.primitives.tables import CASES

import pullback as pb
from pullback.primitives import CORE
from pullback.primitives.imported_late import LATE
from pullback.testing.comparing.bits import same_bits, twin
from pullback.testing.comparing.differences import random_like
from pullback.testing.comparing.faults import raise_faults
from pullback.testing.gradients.hessian_check import hessian_faults
from pullback.testing.gradients.jacobian_check import level_faults, start_level
from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten, unflatten

ROWS = [pytest.param(case, dtype, id=f"{case.name}-{dtype}") for case in CASES for dtype in case.dtypes]
POLICIES = (pb.Recompute(), pb.Binomial(2))
SEED = 11

# What the core registers and no case covers, with the reason.
NOT_COVERED: dict[str, str] = {
    "_ones_like": "a ufunc that NumPy itself calls for ones_like and does not export",
    "ix_": "takes integers and booleans, which carry no derivative; its use as a key is a case of getitem",
    "ravel_multi_index": "takes integers, which carry no derivative",
    "unravel_index": "takes integers, which carry no derivative",
}


def cast(leaf, dtype):
    """A leaf in the precision of ``dtype``; complex stays complex, what has that dtype already keeps its strides."""
    if not isinstance(leaf, np.ndarray | np.generic) or leaf.dtype.kind not in "fc":
        return leaf
    real = np.zeros(0, dtype).real.dtype
    wanted = np.result_type(real, np.complex64) if leaf.dtype.kind == "c" else real
    return leaf if leaf.dtype == wanted else leaf.astype(wanted)


class Run:
    """A case at one dtype: the arrays that are differentiated, and the function of them alone that gives a tuple of
    arrays."""

    def __init__(self, case, dtype):
        leaves, self.definition = flatten(case.args)
        self.leaves = [twin(cast(leaf, dtype)) for leaf in leaves]
        self.places = [
            k
            for k, leaf in enumerate(self.leaves)
            if isinstance(leaf, np.ndarray | np.inexact) and leaf.dtype.kind in "fc"
        ]
        self.xs = tuple(self.leaves[k] for k in self.places)
        self.case = case

    def whole(self, *xs):
        """What the case's function returns."""
        leaves = list(self.leaves)
        for place, x in zip(self.places, xs, strict=True):
            leaves[place] = x
        with np.errstate(all="ignore"):
            return self.case.fn(*unflatten(self.definition, leaves))

    def outputs(self, *xs):
        return tuple(leaf for leaf in flatten(self.whole(*xs))[0] if carries_derivative(leaf))


def seeds_for(outs):
    rng = np.random.default_rng(SEED)
    return tuple(random_like(rng, out) for out in outs)


@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_values_are_those_of_numpy_and_cotangents_are_like_their_primals(case, dtype):
    run = Run(case, dtype)
    before = tuple(x.copy() for x in run.xs)
    expected = flatten(run.whole(*run.xs))[0]
    given = flatten(pb.vjp(run.whole, *run.xs)[0])[0]
    assert [np.shape(v) for v in given] == [np.shape(v) for v in expected]
    assert [np.asarray(v).dtype for v in given] == [np.asarray(v).dtype for v in expected]
    assert same_bits(tuple(given), tuple(expected)), "the traced forward gives other bits than NumPy"
    outs, pull = pb.vjp(run.outputs, *run.xs)
    with np.errstate(all="ignore"):
        cts = pull(seeds_for(outs))
    assert same_bits(before, run.xs), "an input was written"
    assert [(np.shape(ct), np.asarray(ct).dtype) for ct in cts] == [(np.shape(x), np.asarray(x).dtype) for x in run.xs]


@pytest.mark.share(10, of=lambda case, dtype: case.covers)
@pytest.mark.parametrize(("case", "dtype"), [row for row in ROWS if not row.values[0].rough])
def test_derivatives_are_those_of_differences(case, dtype):
    run = Run(case, dtype)
    rng = np.random.default_rng(SEED)
    with np.errstate(all="ignore"):
        level = start_level(case.name, run.outputs, run.xs, rng, each_element=0)
        faults = list(level_faults(level, ("rev", "fwd"), rng)) or list(hessian_faults(level, rng))
    raise_faults(case.name, faults)


@pytest.mark.share(5, of=lambda case, dtype: case.covers, turn=1)
@pytest.mark.parametrize(("case", "dtype"), ROWS)
def test_policies_give_the_same_bits(case, dtype):
    run = Run(case, dtype)
    other = tuple(np.asarray(x * (1 + 2.0**-6)).astype(x.dtype) for x in run.xs)
    for xs in (run.xs, other):
        outs, pull = pb.vjp(run.outputs, *xs)
        cts = seeds_for(outs)
        with np.errstate(all="ignore"):
            expected = pull(cts)
            for policy in POLICIES:
                found, again = pb.vjp(run.outputs, *xs, policy=policy)
                assert same_bits(found, outs), f"{policy!r} gives another value"
                assert same_bits(again(cts), expected), f"{policy!r} gives another gradient"
                again.close()
                assert again.report.live_bytes == 0, f"{policy!r} left bytes behind"


def test_every_primitive_has_a_case():
    covered = {name for case in CASES for name in case.covers}
    core = {each.name for each in (*CORE, *LATE)}  # not the registry: another test may have made it look for plugins
    missing = sorted(core - covered - NOT_COVERED.keys())
    assert not missing, (
        f"no case covers {', '.join(missing)}: add one to a tests/primitives/*/cases_*.py, "
        "or a line with the reason to NOT_COVERED"
    )
    assert not (stale := sorted(NOT_COVERED.keys() - core)), f"NOT_COVERED lists what is not in the registry: {stale}"
    assert not (both := sorted(NOT_COVERED.keys() & covered)), f"NOT_COVERED lists what has a case: {both}"


def test_cases_name_what_there_is():
    known = set(pb.registry.complete().names)
    wrong = sorted({f"{case.name}: {name}" for case in CASES for name in case.covers if name not in known})
    assert not wrong, "cases cover what is not in the registry: " + "; ".join(wrong)


def test_names_of_cases_are_unique():
    names = [case.name for case in CASES]
    twice = sorted({name for name in names if names.count(name) > 1})
    assert not twice, f"two cases have one name, so a failure would not say which: {twice}"
