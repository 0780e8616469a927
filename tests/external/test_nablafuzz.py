"""Values and gradients at the arguments that NablaFuzz recorded of JAX's tests, for every function that NumPy has.

Each recorded set that NumPy accepts is traced with all its floating and complex arrays and NumPy scalars as arguments:
the value has NumPy's bits, the derivatives (by the pull and forward, of small sets the second as well) are those of
numeric ones, and what is refused is refused by one of our errors.

Needs pymongo, which no extra for tests has, and NABLAFUZZ: the path of a checkout of
https://github.com/ise-uiuc/NablaFuzz (read at commit b65693b)::

    pip install pymongo
    NABLAFUZZ=/path/to/NablaFuzz sh .ci/test -m slow tests/external/test_nablafuzz.py
    NABLAFUZZ=/path/to/NablaFuzz python -m tests.external.test_nablafuzz    # prints the figures of docs/coverage.md
"""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.external.nablafuzz import LARGE, UnwrittenError, calls, distinct, elements, numpys, recorded

import pullback as pb
from pullback import numpy as pnp
from pullback.testing import check_grads
from pullback.words.structures import flatten, unflatten

EQUAL, BESIDE, VALUE = "equal", "equal beside a kink", "value only"
ADVISED, REFUSED, UNJUDGED = "refused by name, with pullback.numpy", "refused by name", "not to be judged"
STAIRCASE = "a staircase: derivative 0"
NOTHING, NUMPY, UNWRITTEN, TOO_LARGE = "nothing to trace", "NumPy refuses", "value not recorded", "too large"


# What the draws do not know: the points of interp increase.
PREPARED = {"interp": lambda x, points, *rest: (x, np.sort(points), *rest)}
# Stairs as fine as rounding: 0 for us, 1 for any difference quotient.
STAIRS = {"nextafter"}
# NumPy reads one triangle of the matrix.
HERMITIAN = {"cholesky", "eigh", "eigvalsh"}
VECTORS = {"eig", "eigh", "svd"}


# Up to this many elements second derivatives are compared as well.
SMALL = 12
# Where a set lies at a point without a derivative, or where its dtype leaves no digits to the differences.
JUMPS, EDGE, TIES = "a jump", "the edge of the domain", "a tie"
ROUNDING = "the dtype overflows, or nothing is left of the difference"
KINKS = {
    **dict.fromkeys(("ceil", "divmod", "floor", "floor_divide", "fmod", "frexp", "mod", "modf", "remainder"), JUMPS),
    **dict.fromkeys(("trunc",), JUMPS),
    **dict.fromkeys(("arccos", "arccosh", "arcsin", "arctanh", "cbrt", "log", "sqrt"), EDGE),
    **dict.fromkeys(("clip", "fmax", "fmin", "maximum", "minimum", "percentile"), TIES),
    **dict.fromkeys(("exp", "expm1", "linalg.cond", "linalg.norm", "nanstd", "polydiv"), ROUNDING),
    **dict.fromkeys(("sinh", "tanh", "true_divide"), ROUNDING),
}


@cache
def sets() -> dict[str, list[dict[str, Any]]]:
    if not (checkout := os.environ.get("NABLAFUZZ")):
        pytest.skip("NABLAFUZZ is to be the path of a checkout of ise-uiuc/NablaFuzz")
    pytest.importorskip("bson", reason="the records are dumps of MongoDB; pip install pymongo")
    return recorded(Path(checkout))


def carries(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray | np.inexact) and leaf.dtype.kind in "fc"


def chosen(function: Callable[..., Any], record: dict[str, Any], seed: int) -> tuple[Any, Any] | None:
    """The first arguments with a finite result, else the first that NumPy accepts, else None."""
    accepted = None
    for args, options in calls(record, seed):
        try:
            out = function(*args, **options)
        # NumPy's refusals are of every kind.
        except Exception:  # noqa: BLE001, S112
            continue
        accepted = accepted or (args, options)
        if all(np.all(np.isfinite(leaf)) for leaf in flatten(out)[0] if carries(leaf)):
            return args, options
    return accepted


def outcome(function: Callable[..., Any], record: dict[str, Any], seed: int) -> str:
    """How one recorded set went; raises where a value or gradient differs or an error is not one of ours."""
    if sum(map(elements, record.values())) > LARGE:
        return TOO_LARGE
    try:
        args, options = next(calls(record, seed))
    except UnwrittenError:
        return UNWRITTEN
    if not any(map(carries, flatten((args, options))[0])):
        return NOTHING
    call = chosen(function, record, seed)
    if call is None:
        return NUMPY
    args, options = call
    args = PREPARED.get(function.__name__, lambda *xs: xs)(*args)
    try:
        return compare(function, function, args, options)
    except pb.PullbackError as refusal:
        said = named(refusal)
    # NumPy hands some calls to nobody: then what the error advises is held to the same.
    if (advised := getattr(pnp, function.__name__)) is function:
        return said
    try:
        return f"{ADVISED}: {compare(advised, function, args, options)}"
    except pb.PullbackError as refusal:
        return named(refusal)


def named(refusal: pb.PullbackError) -> str:
    if isinstance(refusal, pb.CheckError):
        raise refusal
    return f"{REFUSED}: {type(refusal).__name__}"


def compare(function: Callable[..., Any], plain: Callable[..., Any], args: Any, options: dict[str, Any]) -> str:
    """The value of ``function``, traced, against the bits of the ``plain`` one, and its derivatives against numeric
    ones."""
    leaves, tree = flatten((args, options))
    places = [k for k, leaf in enumerate(leaves) if carries(leaf)]

    def on_places(*xs: Any) -> Any:
        filled = list(leaves)
        for place, x in zip(places, xs, strict=True):
            filled[place] = x
        inner, named = unflatten(tree, filled)
        return function(*inner, **named)

    primals = tuple(leaves[k] for k in places)
    expected, shape = flatten(plain(*args, **options))
    out, pull = pb.vjp(on_places, *primals)
    same_bits(flatten(out)[0], expected)
    pull(unflatten(shape, [np.ones_like(leaf) if carries(leaf) else None for leaf in expected]))
    if not any(map(carries, expected)):
        return VALUE
    if function.__name__ in STAIRS:
        return STAIRCASE
    return judged(compared(function, on_places, options), primals, SMALL if function is plain else 0)


def compared(
    function: Callable[..., Any], on_places: Callable[..., Any], options: dict[str, Any]
) -> Callable[..., Any]:
    """What differences can be taken of: functions of one triangle of Hermitian matrices get Hermitian ones, and of
    vectors whose signs and phases are anybody's only the magnitudes are compared."""
    name = function.__name__

    def of(*xs: Any) -> Any:
        if name in HERMITIAN or options.get("hermitian"):
            xs = (hermitian(xs[0]), *xs[1:])
        out = on_places(*xs)
        return [np.abs(leaf) for leaf in flatten(out)[0]] if name in VECTORS else out

    return of


def hermitian(x: Any) -> Any:
    return (x + np.conj(np.swapaxes(x, -1, -2))) / 2


def same_bits(traced: list[Any], plain: list[Any]) -> None:
    assert len(traced) == len(plain)
    for ours, numpys_own in zip(traced, plain, strict=True):
        np.testing.assert_array_equal(ours, numpys_own, err_msg="the traced value and NumPy's own", strict=True)


def judged(function: Callable[..., Any], primals: tuple[Any, ...], small: int) -> str:
    """At the primals themselves; at a kink, or where a narrow dtype leaves no digits, beside them and in double."""
    if not any(map(np.size, primals)):
        return EQUAL  # of no elements: that the pull ran is all
    faults = []
    for outcome, moved in ((EQUAL, primals), *((BESIDE, beside(primals, seed)) for seed in range(3))):
        try:
            first_and_second(function, moved, order=2 if sum(map(np.size, moved)) <= small else 1)
        except pb.CheckError as found:
            faults.append(found)
        else:
            return outcome
    for fault in faults:
        if not without_numeric(fault, "first"):
            raise fault
    return UNJUDGED


def first_and_second(function: Callable[..., Any], primals: tuple[Any, ...], order: int) -> None:
    """Where there are no numeric second derivatives, the first are enough."""
    try:
        check_grads(function, primals, order=order)
    except pb.CheckError as found:
        if not without_numeric(found, "second"):
            raise


def without_numeric(fault: pb.CheckError, order: str) -> bool:
    return "1 fault\n" in str(fault) and f"no {order}-order numeric derivative" in str(fault)


def beside(primals: tuple[Any, ...], seed: int) -> tuple[Any, ...]:
    """The primals in double precision, moved by about a hundredth: ties come apart, a wrong gradient stays wrong."""
    rng = np.random.default_rng(seed)
    moved = []
    for x in primals:
        wide = np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64)
        moved.append(wide + 0.01 * rng.uniform(0.5, 1.0, wide.shape))
    return tuple(moved)


def outcomes(name: str) -> Iterator[str]:
    function = numpys(name)
    assert function is not None
    for number, record in enumerate(distinct(sets()[name])):
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield outcome(function, record, number)
        except Exception as error:
            error.add_note(f"{name}, set {number}: {record}")
            raise


def names() -> list[str]:
    return [name for name in sets() if numpys(name)]


@pytest.mark.slow
@pytest.mark.parametrize("share", range(8))
def test_values_are_numpys_and_gradients_those_of_differences(share):
    for name in names()[share::8]:
        counted = Counter(outcomes(name))
        assert counted[BESIDE] == 0 or name.removeprefix("jax.numpy.") in KINKS, f"{name}: {counted}"


def figures() -> str:
    """The counts for docs/coverage.md, in Markdown."""
    counted = {name: Counter(outcomes(name)) for name in names()}
    total = sum(counted.values(), Counter[str]())
    judged_names = sum(any(count[kind] for kind in (EQUAL, BESIDE, STAIRCASE)) for count in counted.values())
    refused = sorted(name for name, count in counted.items() if any(kind.startswith(REFUSED) for kind in count))
    theirs = sum(map(len, sets().values()))
    ours = sum(len(sets()[name]) for name in counted)
    lines = [
        f"{len(sets())} functions and {theirs} sets recorded; of NumPy {len(counted)} functions and {ours} sets,",
        f"of which {total.total()} are distinct; {judged_names} functions with gradients.",
        *(f"- {kind}: {number}" for kind, number in total.most_common()),
        f"refused: {', '.join(refused)}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(figures())
