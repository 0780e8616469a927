"""Generated callers and writes at once: they leave the tape that the general way leaves, to the byte, and hand over
what they do not know."""

import numpy as np
import pytest

import pullback as pb
from pullback.primitives.selecting.indexing import getitem
from pullback.recording.handles import Handle, resolve
from pullback.recording.recorder import call as record
from pullback.recording.regions import Region
from pullback.rules.catalogue import registry
from pullback.rules.declaration import Primitive
from pullback.tracing import fast_indexing, tracer
from pullback.tracing.dispatch import function
from pullback.tracing.in_place import in_place
from pullback.words.call_sites import site_text

rng = np.random.default_rng(7)
A, C = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))
SQUARE, LONG = rng.normal(size=(4, 4)), rng.normal(size=(40, 40))
ROWS, MASK = np.array([2, 0, 2]), A > 0


def written(w, c):
    w[1:3] += c[1:3]
    w[1:3] -= w[0:2] * 2.0
    w[2, 1] = 0.5
    w[0] = c[0]
    w[3, 3] += 1.5
    w += c
    w[:, 1][2:] += 1.0
    w.T[0] = w[:, 2] * 1.0
    w[ROWS] += 2.0
    return w


CALLS = {
    "sum": lambda u: [np.sum(u), u.sum(axis=0), np.sum(u[1:], axis=1, keepdims=True), np.sum(u, dtype=np.float32)],
    "mean": lambda u: [np.mean(u), u.mean(0)],
    "products": lambda u: [u @ SQUARE, u.T @ u, np.dot(u, SQUARE), np.matmul(C.T, u), u[0] @ u[1], np.inner(u, C)],
    "long constants": lambda u: [np.dot(np.zeros((3, 40)) + np.sum(u), LONG), np.sum(u) * LONG, LONG @ LONG * u[0, 0]],
    "keys": lambda u: [u[ROWS], u[ROWS, ROWS], u[MASK], u[:, ROWS], u[1:][ROWS], u[[0, 1]], u[2, 1], u[..., None]],
    "where": lambda u: [np.where(MASK, u, C), np.where(MASK, 0.0, u), np.where(u > 0, u, u[::-1]), np.where(u, u, 1)],
    "extrema": lambda u: [np.maximum(u, C), np.maximum(u, 0.0), np.max(u, axis=1), np.clip(u, -0.5, 0.5)],
    "moved": lambda u: [np.roll(u, 1, 0), u.reshape(20), np.reshape(u, (2, -1)), u.T, np.transpose(u), u.T.reshape(20)],
    "joined": lambda u: [
        np.concatenate([u, C]),
        np.stack([u, C, u], axis=1),
        np.vstack([u[0], u]),
        np.concatenate([u] * 9),
    ],
    "numbers": lambda u: [u.item(3) * u.item(3), u.item(3) * 2.0 + 1, np.sin(u.item(1)), u.item(2) ** 2, u * u.item(0)],
    "float32": lambda u: [u.astype(np.float32).sum() * np.float32(2), np.mean(u.astype(np.float32) @ SQUARE)],
    "writes": lambda u: [written(u * 1.0, C), written(u * 1.0, u * 2.0), written(np.zeros_like(u), u * 1.0)],
    "again": lambda u: [again(u * 1.0, C, u) for _ in range(2)],
    "views of what is written": lambda u: [viewed(u * 1.0)],
}


def again(w, c, u):
    for k in range(4):
        w[1:3] += c[1:3]
        w[1:, ::2] += u[1:, ::2]
        w[1:][::2] -= u[1:][::2]
        w[k : k + 2, :2] += u[k : k + 2, :2]
        w[1:3] += np.where(MASK, u, w)[ROWS[:2]]
        part = w[::-1]
        part += u
    return w


def viewed(w):
    part = w[1:]
    before = np.sum(part @ SQUARE)
    w[2] = 0.25
    return np.stack([before, np.sum(part @ SQUARE), np.sum(part * part)])


class Never(dict):
    """Callers that are forgotten at once, so that every call takes the general way."""

    def __setitem__(self, key, value):
        pass


GENERALLY = (
    (fast_indexing, "read", "lambda handle, key: record(getitem, (handle,), {'key': key})"),
    (fast_indexing, "gathered", "lambda handle, key: record(getitem, (handle,), {'key': handle._tape.keep(key)})"),
    (fast_indexing, "_met", "lambda *_: False"),
    (tracer, "assigned", "lambda *_: False"),
    (tracer.Tracer, "__iadd__", "lambda x, y: in_place('add', resolve(x), y)"),
    (tracer.Tracer, "__isub__", "lambda x, y: in_place('subtract', resolve(x), y)"),
    (tracer.Tracer, "__array_function__", "lambda x, f, _, args, named: function(x, f, args, named)"),
)
LIBRARY = {"record": record, "getitem": getitem, "in_place": in_place, "resolve": resolve, "function": function}
"""What takes the general way, as texts of the library's own: a line of the user's is looked for above it."""


def tape_of(call):
    out, pull = pb.vjp(call, A)
    flags = [(type(leaf), leaf._flag) for leaf in pull.out_leaves if isinstance(leaf, Handle)]
    records = list(pull._traced.tape.records)
    cts = pull([np.ones_like(leaf) for leaf in out])
    pull.close()
    return records, flags, out, cts


def alike(a, b):
    if isinstance(a, np.ndarray):
        same = type(b) is type(a) and (a.dtype, a.shape, a.strides) == (b.dtype, b.shape, b.strides)
        return same and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return type(b) is type(a) and len(a) == len(b) and all(map(alike, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(alike(a[k], b[k]) for k in a)
    if isinstance(a, Region):
        return alike(
            (a.steps, a.key, a.fancy, a.repeats, a.subtracts), (b.steps, b.key, b.fancy, b.repeats, b.subtracts)
        )
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("name", CALLS)
def test_both_ways_leave_one_tape(name, monkeypatch):
    call = CALLS[name]
    for _ in range(3):
        fast = tape_of(call)
    with monkeypatch.context() as general:
        for prim in registry.names.values():
            if isinstance(prim, Primitive):
                general.setattr(prim, "callers", Never())
        for owner, method, text in GENERALLY:
            general.setattr(owner, method, eval(compile(text, "<pullback tests>", "eval"), LIBRARY))  # noqa: S307
        slow = tape_of(call)
    assert len(fast[0]) == len(slow[0])
    for one, other in zip(fast[0], slow[0], strict=True):
        assert alike(one[:-1], other[:-1]), (site_text(one[-1]), one, other)
        assert site_text(one[-1]) == site_text(other[-1])  # the offset may differ: an instruction is specialised
    assert fast[1] == slow[1]
    assert all(map(alike, map(np.asarray, fast[2]), map(np.asarray, slow[2])))
    assert alike(fast[3], slow[3])


def test_callers_are_made():
    tape_of(CALLS["sum"])
    tape_of(CALLS["sum"])
    assert any(registry.named("reduce_sum").callers.values())


def test_a_rule_declared_later_is_taken():
    @pb.primitive
    def halved(x):
        return x * 0.5

    halved.vjp("x", fn=lambda ct: ct * 0.5)
    for _ in range(3):
        assert pb.grad(lambda x: np.sum(halved(x)))(np.ones(2)).tolist() == [0.5, 0.5]
    assert not any(halved.callers.values())  # its calls are looked at


def test_what_has_ended_or_belongs_to_others_is_handed_over():
    kept = []
    for _ in range(3):
        pb.grad(lambda x: kept.append(x) or np.sum(x @ x))(np.ones(3))
    with pytest.raises(pb.TracerError, match="ended"):
        np.sum(kept[-1])
    with pytest.raises(pb.TracerError, match="ended"):
        kept[-1] @ kept[-1]

    def nested(x):
        return np.sum(pb.grad(lambda z: np.sum(z @ z) * np.sum(x[ROWS]))(x) @ x)

    x = np.array([1.0, 2.0, 3.0])
    for _ in range(3):  # 2 (x . x) (x2 + x0 + x2)
        expected = 4 * x * 7.0 + 2 * 14.0 * np.array([1.0, 0.0, 2.0])
        np.testing.assert_allclose(pb.grad(nested)(x), expected)


def test_the_line_is_the_nearest_of_the_users():
    def inner(u):
        return np.sum(u @ SQUARE)

    def outer(u):
        return inner(u) + np.sum(u)

    for _ in range(3):
        _, pull = pb.vjp(outer, A)
        lines = [site_text(record[-1]).rpartition(":")[2] for record in pull._traced.tape.records[1:]]
        pull.close()
    first = inner.__code__.co_firstlineno
    assert lines == [str(first + 1), str(first + 1), str(first + 4), str(first + 4)]
