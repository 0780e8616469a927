"""What a record declares is enough for its pullback: everything else is overwritten before the reverse pass."""

import operator
from contextlib import contextmanager

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.primitives.tables import CASES

import pullback as pb
from pullback.memory.ledger import tape_holdings
from pullback.recording.handles import Handle, plain_value
from pullback.rules.forms import FORMS
from pullback.testing.comparing.bits import same_bits
from pullback.testing.comparing.differences import random_like
from pullback.words.specs import buffer_of, carries_derivative
from pullback.words.structures import flatten, unflatten

X = np.array([0.3, -0.7, 1.1])


# Declared is enough: every array that a handle of the forward stood for, and that no record holds, is overwritten
# before the reverse.
@contextmanager
def collecting():
    """Every handle made within the block, with its value kept alive."""
    made = []

    def new(kind):
        made.append(object.__new__(kind))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Handle, "__new__", new, raising=False)
        yield made


@pytest.fixture
def handles():
    with collecting() as made:
        yield made


def held_buffers(records):
    """Ids of the buffers that records hold, those of the loops among them included."""
    held = {id(item.buffer) for item in tape_holdings(records)}
    for record in records:
        if record is None or not FORMS[record[0]].wide:
            continue
        run = record[2]
        values = [*run.chain.start, *run.chain.state, *(handle._value for handle in run.closure)]
        steps = [run.chain.work] if run.chain.work is not None else []
        values += [leaf for snapshot in run.chain.store.of("state").values() for leaf in snapshot.leaves]
        steps += run.chain.store.of("tape").values()
        held |= {id(buffer_of(value)) for value in values if isinstance(value, np.ndarray)}
        for step in steps:
            held |= held_buffers(step.tape.records)
    return held


def poison(pull, handles):
    """Overwrite what is not held, the user's own inputs too; how many buffers that were."""
    traced = pull._traced
    held = held_buffers(traced.tape.records)
    for chain in pull._governor.chains if pull._governor is not None else ():  # what a checkpoint read at its entry
        held |= {
            id(buffer_of(value))
            for live in chain.snapshots.filling.values()
            for value in live.values.values()
            if isinstance(value, np.ndarray)
        }
    traced.inputs = [attrs.evolve(x, before=None) for x in traced.inputs]  # the digest of an input would see it
    values = [handle._value for handle in handles if hasattr(handle, "_value")]
    count = 0
    for found in {id(v): v for v in values}.values():
        value = plain_value(found) if isinstance(found, Handle) else found
        if not isinstance(value, np.ndarray):
            continue
        buffer = buffer_of(value)
        if id(buffer) in held or buffer.dtype.kind not in "fc" or not buffer.size:
            continue
        buffer.flags.writeable = True
        buffer[...] = np.nan
        count += 1
    return count


def require_enough(f, xs, handles):
    """The gradient after poisoning has the bits of the one before; the number of buffers overwritten."""
    with np.errstate(all="ignore"), pb.using(staging="off"):  # the handles of a staged step have no values
        outs, pull = pb.vjp(f, *(x.copy() for x in xs))
        rng = np.random.default_rng(3)
        cts = tuple(random_like(rng, out) for out in outs)
        expected = pull(cts)
        pull.close()
        handles.clear()
        _, again = pb.vjp(f, *(x.copy() for x in xs))
        count = poison(again, handles)
        found = again(cts)
        handles.clear()
    assert same_bits(found, expected), "a pullback read what its record does not hold"
    return count


@pytest.mark.share(3, of=lambda case, **_: case.covers)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_declared_is_enough_in_every_case(case, handles):
    leaves, definition = flatten(case.args)
    places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fc"]

    def f(*xs):
        full = list(leaves)
        for place, x in zip(places, xs, strict=True):
            full[place] = x * 1.0  # an intermediate value that nobody else holds
        return tuple(leaf for leaf in flatten(case.fn(*unflatten(definition, full)))[0] if carries_derivative(leaf))

    count = require_enough(f, [leaves[k].copy(order="K") for k in places], handles)
    assert count or not any(leaves[k].size for k in places)


def test_poison_reaches_a_rule_that_cheats(handles):
    """The check itself: a rule that keeps its operand behind the tape's back gives other bits."""
    seen = []

    def forward(x):
        seen.append(x)
        return x * x

    cheat = pb.primitive(forward, name="cheat")

    @cheat.vjp("x")
    def _(ct):
        return 2 * ct * seen[-1]

    with pytest.raises(AssertionError, match="read what its record does not hold"):
        require_enough(lambda x: (cheat(x * 1.0),), [X], handles)


def written(a, b):
    c = np.zeros_like(a)
    c[1:] = a[:-1] * b[1:]
    c[0] = b[-1]
    c *= a
    return c


def viewed(a, b):
    c = a * 2.0
    v = c[1:]
    d = v * b[1:]
    v[...] = np.cos(d)
    return c * np.concatenate([d, a[:1]])


OPERATIONS = {
    "sin": lambda a, b: np.sin(a),
    "exp": lambda a, b: np.exp(-a * a),
    "multiply": operator.mul,
    "add": operator.add,
    "divide": lambda a, b: a / (1.5 + b * b),
    "where": lambda a, b: np.where(a > b, a, b * b),
    "maximum": np.maximum,
    "roll": lambda a, b: np.roll(a, 1) * b[::-1],
    "cumsum": lambda a, b: np.cumsum(a) / (2 + np.max(b)),
    "loop": lambda a, b: pb.fori_loop(0, 4, lambda k, u: np.sin(u) * b, a),
    "scan": lambda a, b: pb.scan(lambda u, _: (np.tanh(u) * b, u * u), a, length=3)[1].sum(axis=0),
    "write": written,
    "view": viewed,
    "checkpoint": pb.checkpoint(lambda a, b: np.sin(a * b) * a),
}


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=8
    )
)
def test_declared_is_enough_in_drawn_programs(steps):
    def f(x, y):
        values = [x * 1.0, y * 1.0]
        for name, i, j in steps:
            values.append(OPERATIONS[name](values[i % len(values)], values[j % len(values)]))
        return values[-1], values[-2]

    with collecting() as made:
        require_enough(f, [X, X[::-1].copy()], made)
