"""Values and gradients against torch's, at torch's own sample inputs, for every operator of torch that NumPy has words
for.

The samples are those by which torch tests itself (``op_db``, its OpInfo table); what NumPy says in the place of each
operator stands in torch_twins.py and torch_twins_linear.py. Both sides take the same seed back through the same inputs,
in float64 and complex128. Torch's gradient of a complex argument is the conjugate of ours: df/dx + i df/dy. Needs torch
and expecttest, which no extra for tests has::

    pip install "pullback[bench]" expecttest
    sh .ci/test -m slow tests/external/test_torch_samples.py
    python -m tests.external.test_torch_samples      # prints the figures of docs/coverage.md
"""

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from attrs import frozen
from tests.external.torch_twins import ELEMENTWISE, REDUCTIONS, SHAPING, Untranslated
from tests.external.torch_twins_linear import FOURIER, INDEXING, LINEAR

import pullback as pb
from pullback.words.structures import flatten, unflatten

TWINS = {**ELEMENTWISE, **REDUCTIONS, **SHAPING, **INDEXING, **LINEAR, **FOURIER}
DTYPES = ("float64", "complex128")

# Entries of torch's table about what NumPy's arrays have not.
LEFT_OUT = {"as_strided:partial_views": "it reads the memory of a tensor beyond its view"}
# Samples that NumPy refuses, beside an axis named of an array that has none, which torch allows.
REFUSED = {
    "einsum": "an ellipsis in the result alone",
    "logaddexp": "complex numbers have no logaddexp in NumPy",
    "logcumsumexp": "complex numbers have no logaddexp in NumPy",
    "take_along_dim": "indices of two axes without an axis",
    "tensordot": "axes of 1 and of 2 elements summed together",
}


@frozen
class Difference:
    """Where torch decides otherwise: why, and what of a gradient is left to compare (None: its value alone)."""

    reason: str
    through: Callable[[Any, dict[str, Any]], Any]


def hermitian_part(gradient: Any, options: dict[str, Any]) -> Any:
    return (gradient + np.conj(np.swapaxes(gradient, -1, -2))) / 2


def triangle(gradient: Any, options: dict[str, Any]) -> Any:
    """Of the factor (the second argument of cholesky_solve) and of the right-hand side, whose shape does not tell
    them apart."""
    return np.triu(gradient) if options.get("upper") else np.tril(gradient)


HERMITIAN = "the gradient of a Hermitian argument is Hermitian; torch leaves an imaginary part on its diagonal"
DIFFERENT = {
    "cholesky": Difference(HERMITIAN, hermitian_part),
    "linalg.cholesky": Difference(HERMITIAN, hermitian_part),
    "linalg.cholesky_ex": Difference(HERMITIAN, hermitian_part),
    "cholesky_solve": Difference("torch gives the triangle that is not read a gradient; ours there is 0", triangle),
    "linalg.norm:subgradients_at_zero": Difference(
        "nuclear norm of the zero matrix: 0, as for every norm at 0; torch takes u v^H, another element of the "
        "subdifferential",
        lambda gradient, options: None,
    ),
    "nextafter": Difference(
        "piecewise constant for us; torch hands the cotangent to the first argument", lambda gradient, options: None
    ),
    "nn.functional.hardsigmoid": Difference(
        "torch multiplies by 1/6 rounded to single precision", lambda g, options: np.asarray(g, "f4")
    ),
}

# --------------------------------------------------------------------------------------------------------- torch's side


def load_torch() -> tuple[Any, Any]:
    """Torch and its table of operators, or a skip; not at the top, because it takes ten seconds and the default run
    leaves it out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch", reason="the samples and the gradients compared with are torch's")
        pytest.importorskip("expecttest", reason="torch's table of samples imports it")
        from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415 - as above
    return torch, op_db


@cache
def operators() -> dict[str, list[Any]]:
    """The entries of torch's table by the key of their twin; an entry with a variant of its own in TWINS goes there."""
    found: dict[str, list[Any]] = {}
    for info in load_torch()[1]:
        full = f"{info.name}:{info.variant_test_name}"
        if full in LEFT_OUT:
            continue
        # The differences of a variant are a matter of that variant alone.
        key = full if full in TWINS or (full in DIFFERENT and info.name in TWINS) else info.name
        found.setdefault(key, []).append(info)
    return found


def twin_of(key: str) -> Callable[..., Any]:
    return TWINS[key] if key in TWINS else TWINS[key.partition(":")[0]]


def thin_svd(out: Any, *, rows: bool) -> Any:
    """Magnitudes of as many singular vectors as there are values; the right ones are rows, or columns."""
    u, s, v = out
    k = s.shape[-1]
    return u[..., :k].abs(), s, (v[..., :k, :] if rows else v[..., :k]).abs()


# What is compared of factorisations: signs and phases of their vectors are anybody's.
SEEN: dict[str, Callable[[Any], Any]] = {
    "linalg.svd": lambda out: thin_svd(out, rows=True),
    "svd": lambda out: thin_svd(out, rows=False),
    "linalg.eigh": lambda out: (out[0], out[1].abs()),
    "linalg.eig": lambda out: (out[0], out[1].abs()),
}
# Operators of Hermitian matrices, whose samples are not Hermitian: torch's tests add the conjugate transpose, and so
# does the twin.
MADE_HERMITIAN = {"linalg.pinv:hermitian"}


def samples_of(info: Any, dtype: str) -> list[Any]:
    torch, _ = load_torch()
    kind = getattr(torch, dtype)
    if kind not in info.dtypes:
        return []
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(
            info.sample_inputs("cpu", kind, requires_grad=bool(info.supports_autograd and kind in info.backward_dtypes))
        )


def nested(argument: Any) -> Any:
    """Lists and tuples for torch's own sequences, so that one traversal serves torch's arguments and NumPy's."""
    if isinstance(argument, list):
        return [nested(part) for part in argument]
    if isinstance(argument, tuple):
        return tuple(nested(part) for part in argument)
    return argument


def as_numpy(leaf: Any) -> Any:
    torch, _ = load_torch()
    if isinstance(leaf, torch.Tensor):
        return leaf.detach().numpy(force=True).copy(order="K")
    return torch.empty(0, dtype=leaf).numpy().dtype if isinstance(leaf, torch.dtype) else leaf


# ------------------------------------------------------------------------------------------------------------ comparing


def assert_close(ours: Any, theirs: Any, what: str, tolerance: float = 1e-9) -> None:
    """Equal shapes; values to ``tolerance``, relatively or of the largest, with NaN and infinities in the same
    places."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, torch {theirs.shape}"
    finite = np.abs(theirs[np.isfinite(theirs)])
    scale = float(np.max(finite, initial=1.0))
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def seed_of(out: Any, rng: np.random.Generator) -> Any:
    """A random cotangent of the output's shape and dtype; None for integers and booleans."""
    out = np.asarray(out)
    if out.dtype.kind not in "fc":
        return None
    seed = rng.normal(size=out.shape)
    return (seed + 1j * rng.normal(size=out.shape) if out.dtype.kind == "c" else seed).astype(out.dtype)


@frozen
class Sample:
    """One sample as both sides take it: its leaves, which of them carry a derivative, and how they make up the
    arguments."""

    leaves: list[Any]
    tree: Any
    carrying: list[int]
    options: dict[str, Any]

    @classmethod
    def read(cls, sample: Any) -> "Sample":
        torch, _ = load_torch()
        dropped = {"device", "layout", "requires_grad", "memory_format", "pin_memory"}
        options = {name: option for name, option in sample.kwargs.items() if name not in dropped}
        leaves, tree = flatten(nested((sample.input, tuple(sample.args), options)))
        return cls(
            leaves,
            tree,
            [k for k, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor) and leaf.requires_grad],
            options,
        )

    def arguments(self, leaves: list[Any], carried: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The first argument, the others and the options, with ``carried`` at the places that carry a derivative."""
        filled = list(leaves)
        for k, x in zip(self.carrying, carried, strict=True):
            filled[k] = x
        first, others, options = unflatten(self.tree, filled)
        return first, others, options


def compare(key: str, info: Any, sample: Any, seed: int) -> str:
    """One sample through both sides: "equal", "value only" (nothing to derive, for torch) or "convention"; raises
    what differs."""
    torch, _ = load_torch()
    read = Sample.read(sample)
    tensors = [read.leaves[k].detach().clone().requires_grad_() for k in read.carrying]
    first, others, options = read.arguments(read.leaves, tensors)
    hermitian = first + first.mH if key in MADE_HERMITIAN else first
    theirs = SEEN.get(key, nested)(info(hermitian, *others, **options))
    theirs = flatten(tuple(theirs) if isinstance(theirs, list | tuple) else (theirs,))[0]

    plain = [as_numpy(leaf) for leaf in read.leaves]
    tolerance = 1e-3 if any(isinstance(x, np.ndarray) and x.dtype.str[1:] in {"f4", "c8"} for x in plain) else 1e-9
    twin = twin_of(key)

    def on_numpy(*xs: Any) -> list[Any]:
        x, rest, named = read.arguments(plain, xs)
        out = twin(x, *rest, **named)
        leaves: list[Any] = flatten(tuple(out) if isinstance(out, list | tuple) else (out,))[0]
        return leaves

    primals = [plain[k] for k in read.carrying]
    expected = plain_values(key, on_numpy, primals)
    # A twin may leave out the last outputs: the indices beside a median.
    theirs = theirs[: len(expected)]
    for out, theirs_out in zip(expected, theirs, strict=True):
        assert_close(out, as_numpy(theirs_out), "the value", tolerance)
    if not any(isinstance(out, torch.Tensor) and out.requires_grad for out in theirs):
        return "value only"
    ours, given = both_gradients(on_numpy, primals, expected, tensors, theirs, seed)
    return judge(key, read, list(zip(ours, given, strict=True)), tolerance)


def plain_values(key: str, on_numpy: Callable[..., list[Any]], primals: list[Any]) -> list[Any]:
    """What NumPy itself says; what it refuses, by an axis of an array without axes or by REFUSED, is not translated."""
    try:
        return on_numpy(*primals)
    except np.exceptions.AxisError as refusal:
        if "dimension 0" not in str(refusal):
            raise
        raise Untranslated("an array without axes has no axis to name") from refusal
    except (ValueError, TypeError) as refusal:
        if key not in REFUSED:
            raise
        raise Untranslated(REFUSED[key]) from refusal


def both_gradients(
    on_numpy: Callable[..., list[Any]],
    primals: list[Any],
    expected: list[Any],
    tensors: list[Any],
    theirs: list[Any],
    seed: int,
) -> tuple[list[Any], list[Any]]:
    """Our gradients and torch's (conjugated) for one random seed; asserts that tracing changed no bit of the values."""
    torch, _ = load_torch()
    out, pull = pb.vjp(on_numpy, *primals)
    for traced, plain in zip(out, expected, strict=True):
        np.testing.assert_array_equal(traced, plain, err_msg="the traced value and NumPy's own", strict=True)
    rng = np.random.default_rng(seed)
    seeds = [seed_of(leaf, rng) for leaf in out]
    derived = [isinstance(leaf, torch.Tensor) and leaf.requires_grad for leaf in theirs]
    seeds = [ct if follows or ct is None else np.zeros_like(ct) for ct, follows in zip(seeds, derived, strict=True)]
    ours = list(pull(seeds))
    used = [(leaf, ct) for leaf, ct, follows in zip(theirs, seeds, derived, strict=True) if follows]
    turned = [torch.from_numpy(np.asarray(np.conj(ct), as_numpy(leaf).dtype)) for leaf, ct in used]
    given = torch.autograd.grad([leaf for leaf, _ in used], tensors, turned, allow_unused=True)
    return ours, [np.zeros_like(x) if g is None else np.conj(as_numpy(g)) for x, g in zip(primals, given, strict=True)]


def judge(key: str, read: Sample, pairs: list[tuple[Any, Any]], tolerance: float) -> str:
    """ "equal", or "convention" where a difference of DIFFERENT explains what is left."""
    try:
        for k, (ours, theirs) in enumerate(pairs):
            assert ours.dtype == theirs.dtype, f"the gradient of argument {k}: {ours.dtype}, torch {theirs.dtype}"
            assert_close(ours, theirs, f"the gradient of argument {k}", tolerance)
    except AssertionError:
        if key not in DIFFERENT:
            raise
        for k, pair in enumerate(pairs):
            ours, theirs = (DIFFERENT[key].through(gradient, read.options) for gradient in pair)
            if ours is not None:
                single = 1e-6 if ours.dtype == "f4" else 0.0
                assert_close(
                    ours, theirs, f"what is to be compared of the gradient of argument {k}", max(tolerance, single)
                )
        return "convention"
    return "equal"


def outcomes(key: str) -> Iterator[tuple[str, str]]:
    """Dtype and outcome of every sample of one operator; raises at the first that differs, naming the sample."""
    for info in operators().get(key, ()):
        for dtype in DTYPES:
            for number, sample in enumerate(samples_of(info, dtype)):
                try:
                    with np.errstate(all="ignore"), warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        outcome = compare(key, info, sample, number)
                except Untranslated:
                    outcome = "untranslated"
                except Exception as error:
                    error.add_note(
                        f"{info.name} {info.variant_test_name}, {dtype}, sample {number}: {sample.summary()}"
                    )
                    raise
                yield dtype, outcome


KEYS = sorted(set(TWINS) | set(DIFFERENT))


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_values_and_gradients_are_torchs(key):
    load_torch()
    counted = Counter(outcome for _, outcome in outcomes(key))
    assert counted, f"torch has no samples of {key} in {' or '.join(DTYPES)}: take it off the table"
    assert counted.total() > counted["untranslated"], f"every sample of {key} is untranslated: take it off the table"
    assert (key in DIFFERENT) == (counted["convention"] > 0), f"{key} differs no more: take it off DIFFERENT"


def figures() -> str:
    """The counts for docs/coverage.md, in Markdown."""
    counted = {key: Counter(outcomes(key)) for key in KEYS}
    total = sum(counted.values(), Counter[tuple[str, str]]())
    kinds = ("equal", "value only", "convention", "untranslated")
    rows = [f"| {dtype} | " + " | ".join(str(total[dtype, kind]) for kind in kinds) + " |" for dtype in DTYPES]
    names = {info.name for key in KEYS for info in operators().get(key, ())}
    derived = {
        key.partition(":")[0]
        for key, count in counted.items()
        if any(kind in {"equal", "convention"} for _, kind in count)
    }
    entries = sum(len(operators().get(key, ())) for key in KEYS)
    covered = (
        f"{len(names)} operators ({entries} entries) of torch {load_torch()[0].__version__}'s table, of which "
        f"{len(derived)}"
    )
    lines = [
        f"{covered} with gradients; {total.total()} samples.",
        "",
        (
            "| samples | value and gradients equal | value equal, torch derives nothing | value equal, gradient by "
            "convention | not in NumPy |"
        ),
        "|---|---|---|---|---|",
        *rows,
        "",
        *(f"- `{key}`: {difference.reason}." for key, difference in sorted(DIFFERENT.items())),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(figures())
