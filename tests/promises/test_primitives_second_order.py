"""Second order of the rows that the test of the core's does not reach; no row and no differentiable name of NumPy is
left out.

What "second order" is stands in ``testing/gradients/hessian_check.py``: gradient of gradient, JVP of VJP, VJP of JVP
and JVP of JVP, against differences and against each other. ``test_primitives_conformance.py`` runs it for the smooth
rows of the core, in every dtype.
"""

from typing import Any

import numpy as np
import pytest
from attrs import evolve
from tests.primitives.case import ROUGH
from tests.primitives.rows import PLUGIN_TABLES, ROOT, rows
from tests.primitives.tables import CASES as CORE

from pullback.instruments.inspect.coverage import DIFFERENTIABLE, coverage
from pullback.policies.binomial import Binomial
from pullback.policies.recompute import Recompute
from pullback.testing.comparing.bits import same_bits
from pullback.testing.comparing.differences import TOLERANCES, random_like
from pullback.testing.comparing.faults import raise_faults
from pullback.testing.gradients.hessian_check import hessian_faults
from pullback.testing.gradients.jacobian_check import start_level
from pullback.transforms.derivatives.forward import jvp
from pullback.transforms.derivatives.reverse import vjp

ROWS = tuple(rows())
SEED = 11
# Differentiable by the registry's word, with a result that carries no derivative.
WHOLE_NUMBERS = {"matrix_rank"}


def check(row, *, numeric):
    rng = np.random.default_rng(SEED)
    level = start_level(row.name, row.outputs, row.arrays, rng, each_element=0)
    if row.rough == "rounding":  # of a result in double precision, too
        level = evolve(level, tol=TOLERANCES[4])
    raise_faults(row.name, hessian_faults(level, rng, numeric=numeric))


@pytest.mark.share(8)
@pytest.mark.parametrize("row", [row for row in ROWS[len(CORE) :] if not row.rough], ids=lambda row: row.name)
def test_rows_of_plugins_are_right_to_second_order(row):
    check(row, numeric=True)


@pytest.mark.parametrize("row", [row for row in ROWS if row.rough], ids=lambda row: row.name)
def test_at_a_kink_every_order_of_the_modes_gives_the_same(row):
    check(row, numeric=False)


@pytest.mark.share(6, of=lambda row: row.covers)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_policy_gives_the_second_derivatives_the_same_bits(row):
    """What is run again are calls and writes of values that a forward trace, or another gradient, has traced."""
    xs, rng = row.arrays, np.random.default_rng(SEED)
    cts, along = (tuple(random_like(rng, value) for value in values) for values in (row.outputs(*xs), xs))

    def gradient(policy):
        return lambda *xs: vjp(row.outputs, *xs, policy=policy)[1](cts)

    with np.errstate(all="ignore"):
        expected = jvp(gradient(None), xs, along)[1]
        assert same_bits(jvp(gradient(Binomial(1)), xs, along)[1], expected)
        if not row.rough:
            again = vjp(gradient(Recompute()), *xs)[1](along)
            for found, value in zip(again, vjp(gradient(None), *xs)[1](along), strict=True):
                np.testing.assert_allclose(found, value, rtol=1e-3, atol=1e-3 * np.max(np.abs(value), initial=1e-9))


def test_a_row_that_is_not_compared_with_differences_says_why():
    words = {row.rough for row in ROWS if row.rough}
    assert words == ROUGH.keys(), f"rows use the words {sorted(words)}; case.py explains {sorted(ROUGH)}"
    assert [row.rough for row in ROWS[: len(CORE)]] == [case.rough for case in CORE]


def test_every_table_of_the_plugins_is_read():
    """A dict of functions in a test of a plugin is a table, and each row that it declares rough is one of its rows."""
    listed = dict(PLUGIN_TABLES)
    for path in sorted(ROOT.glob("plugins/*/tests/test_*.py")):
        text = path.read_text("utf-8")
        found = {name for name in ("FUNCTIONS", "ROWS") if f"\n{name} = {{" in text}
        place = path.relative_to(ROOT / "plugins").as_posix()
        assert found == ({listed[place]} if place in listed else set()), f"add {place} to PLUGIN_TABLES in rows.py"
    assert [row.name for row in ROWS[len(CORE) :] if row.rough] == ["linalg: eigh of one triangle"]


class Probe(np.ndarray):
    """An array that notes which functions of NumPy are called with it."""

    seen: set[tuple[str, str]] = set()  # noqa: RUF012 - one for all probes, as results are new ones

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        self.seen.add((function.__module__ or "numpy", function.__name__))
        return probed(function(*plain(args), **plain(kwargs)))

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        self.seen.add(("numpy (ufuncs)", ufunc.__name__))
        return probed(getattr(ufunc, method)(*plain(args), **plain(kwargs)))


def plain(x):
    """Structures of arrays without probes."""
    if isinstance(x, Probe):
        return x.view(np.ndarray)
    if isinstance(x, dict):
        return {key: plain(value) for key, value in x.items()}
    return type(x)(map(plain, x)) if type(x) in (list, tuple) else x


def probed(x):
    """Structures of arrays as probes."""
    if type(x) is np.ndarray:
        return x.view(Probe)
    return tuple(map(probed, x)) if type(x) is tuple else x


def test_every_differentiable_name_of_numpy_has_a_smooth_row():
    Probe.seen.clear()
    for row in ROWS:
        if (
            not row.rough and "masked_" not in row.name
        ):  # these are none of NumPy's, and know an array by its exact type
            row.outputs(*map(probed, row.arrays))
    named = {
        name for case in CORE if not case.rough for name in case.covers
    }  # poly and roots ask the elements, not the array
    wanted = {(row.module, row.name) for row in coverage().rows if row.status == DIFFERENTIABLE}
    left_out = sorted(f"{module}.{name}" for module, name in wanted - Probe.seen if name not in named | WHOLE_NUMBERS)
    assert not left_out, (
        f"no smooth row calls {', '.join(left_out)}: add one to a table of tests/primitives or of a plugin"
    )
