"""Drawn programs on slices that overlap, with nests and without stages: the same bits.

The texts of the nests are run by Python here, and arrays of any size become nests: hundreds of programs take less time
than one takes to be compiled.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.staging.generated import shelf
from pullback_numba import compiling, nests, operations

POLICIES = (pb.SaveAll(), pb.Recompute(3), pb.Binomial(2))


def by_python(text):
    """What numba would compile."""
    names = {name: getattr(np, name) for name in ("float32", "float64", "complex64", "complex128", "int64")}
    names |= {"uintp": int, "FLAGS": 0, "clear": lambda flags: None, "test": lambda flags: 0}
    exec(compile(text, "<nest>", "exec"), names)  # noqa: S102

    def nest(*args):
        with np.errstate(all="ignore"):
            return names["nest"](*args)

    return nest


@pytest.fixture(autouse=True, scope="module")
def small_nests_by_python():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiling, "_made", by_python)
        patch.setattr(compiling, "_KERNELS", {})
        patch.setattr(operations, "FEWEST", 2)
        patch.setattr(nests, "MOSTLY", 0.0)
        yield


def bits(tree):
    value, gradients = tree
    return [np.asarray(leaf).tobytes() for leaf in (value, *gradients)]


def drawn(shape, dtype, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


COUNTS: set[str] = set()
OPS = ("+", "-", "*")


@st.composite
def programs(draw):
    ndim = draw(st.integers(1, 3))
    found = []
    for _ in range(draw(st.integers(2, 7))):
        kind = draw(st.sampled_from(("new", "add", "subtract", "set", "scale", "swap", "mask", "sine")))
        offsets = [tuple(draw(st.integers(0, 2)) for _ in range(ndim)) for _ in range(3)]
        found.append((kind, draw(st.sampled_from(OPS)), draw(st.integers(0, 1)), draw(st.integers(0, 1)), offsets))
    return ndim, found


def part(x, offset):
    return x[tuple(slice(o, n - 2 + o) for o, n in zip(offset, x.shape, strict=True))]


def combine(op, a, b):
    return a + b if op == "+" else a - b if op == "-" else a * b


def carried_out(program, state):
    arrays = list(state)
    for kind, op, target, source, (a, b, c) in program:
        x, y = arrays[target], arrays[source]
        inner = (slice(1, -1),) * len(x.shape)
        value = combine(op, part(x, a), part(y, b)) * 0.25
        if kind == "new":
            z = x * 0.5
            z[inner] = value
            arrays[target] = z
        elif kind == "add":
            x[tuple(slice(o, n - 2 + o) for o, n in zip(c, x.shape, strict=True))] += value
        elif kind == "subtract":
            x[tuple(slice(o, n - 2 + o) for o, n in zip(c, x.shape, strict=True))] -= part(y, b)
        elif kind == "set":
            x[tuple(slice(o, n - 2 + o) for o, n in zip(c, x.shape, strict=True))] = value
        elif kind == "mask":  # whose derivatives are masked: operands are handed on where they hold no NaN
            arrays[target] = np.maximum(x, y * 0.5) * 0.5 if op == "+" else np.where(x > 0.1, x * 0.5, -y)
        elif kind == "sine":
            x[inner] = np.sin(value) * value
        elif kind == "scale":
            arrays[target] = x * 0.5 - y
        else:
            arrays.reverse()
    return tuple(a * 0.5 for a in arrays)


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs(), st.sampled_from(["f4", "f8"]), st.integers(0, 2))
def test_drawn_programs(drawn_program, dtype, which):
    ndim, program = drawn_program
    shape = {1: (9,), 2: (6, 7), 3: (4, 5, 6)}[ndim]
    shelf.forget()

    def loss(*state):
        out = pb.fori_loop(0, 5, lambda k, state: carried_out(program, state), state)
        return np.sum(out[0] * out[0]) + np.sum(out[1])

    state = drawn(shape, dtype), drawn(shape, dtype, 1)
    gradient = pb.value_and_grad(loss, (0, 1), policy=POLICIES[which])
    with pb.using(staging="off"):
        recorded = gradient(*state)
    with pb.using(staging="numba"):
        assert bits(gradient(*state)) == bits(recorded)
    notes = [note for one in shelf._SHELVES.values() for v in one.variants for s in v.stages for note in s.notes]
    assert not notes
    COUNTS.update(kernel.text for one in shelf._SHELVES.values() for v in one.variants for s in v.stages
                  for each in (s.record, s.reverse, s.reverse_own) for kernel in each.kernels)  # fmt: skip


def test_there_were_nests():
    if not COUNTS:  # another process has run the test above
        test_drawn_programs()
    assert len(COUNTS) > 30
    assert sum("edge(" in text for text in COUNTS) > 15
