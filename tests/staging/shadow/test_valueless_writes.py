"""Writes into the leaves of a state, by every way to write: one list of operations, of the written values."""

import numpy as np
import pytest
from tests.staging.generated.both_ways import POLICIES, measured

import pullback as pb
from pullback.testing.comparing.bits import same_bits

N = 9
INDICES = np.array([2, 0])
WRITES = {
    "copyto": np.copyto,
    "copyto_where": lambda a, b: np.copyto(a, b, where=np.arange(a.size) % 2 == 0),
    "put": lambda a, b: np.put(a, INDICES, 0.3),
    "putmask": lambda a, b: np.putmask(a, np.arange(a.size) % 2 == 0, 0.2),
    "place": lambda a, b: np.place(a, np.arange(a.size) % 2 == 0, [0.2]),
    "put_along_axis": lambda a, b: np.put_along_axis(a, INDICES, 0.1, 0),
    "fill": lambda a, b: a.fill(0.4),
    "sort": lambda a, b: a.sort(),
    "partition": lambda a, b: a.partition(1),
    "item": lambda a, b: a.__setitem__(slice(1, None), b[1:]),
    "flat": lambda a, b: a.flat.__setitem__(0, 0.5),
    "ufunc_out": lambda a, b: np.add(a, b, out=a),
    "ufunc_at": lambda a, b: np.add.at(a, INDICES, 0.1),
    "function_out": lambda a, b: np.cumsum(b, out=a),
    "clip_out": lambda a, b: np.clip(b, 0.1, 0.2, out=a),
    "method_out": lambda a, b: b.cumsum(out=a),
    "in_place": lambda a, b: a.__imul__(b),
}


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("n", [4, 2400], ids=["small", "buffers"])
@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_followed_like_any_operation_though_leaves_have_equal_bytes(write, n):
    def body(k, state):
        a, b = state
        write_into(a, b)
        return a, np.tanh(b + np.sum(a) * 0.1)

    def f(x):  # both leaves hold the same, so a list that mistakes one for the other would pass a look at bytes
        a, b = pb.fori_loop(0, N, body, (x * 1.0, x * 1.0))
        return np.sum(a * a) + np.sum(b * np.arange(n))

    write_into = WRITES[write]
    for x in (np.linspace(0.2, 1, n), np.linspace(-0.5, 0.1, n)[::-1].copy()):
        for policy in POLICIES:
            value, gradient = measured(f, x, policy, "off")
            for _ in range(3):
                again, its = measured(f, x, policy, "numpy")
                assert same_bits(again, value) and same_bits(its, gradient), policy
    texts = pb.explain_stage(body)
    assert len(texts.stages) <= 1, f"one list of operations, not several\n{texts}"
    assert texts.stages or texts.why


def _flat_written(s):
    s.flat[1] = s.flat[0] * 0.5
    return s * 1.1


def _flat_of_a_view(s):
    v = s.T[1:]
    v.flat[:] = 0.3
    v.flat = s.flat[0]
    return s + sum(s.flat) * 0.1


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 1)])
@pytest.mark.parametrize("body", [_flat_written, _flat_of_a_view])
def test_elements_in_c_order_are_followed(shape, body):
    """A staged function that wrote to them was refused, as one that writes to what it captures."""
    x = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape)
    staged = pb.staged(body)
    loop = lambda x: np.sum(pb.fori_loop(0, 9, lambda k, s: body(s), x) ** 2)  # noqa: E731
    calls = lambda x: np.sum(staged(staged(x * 1.0)) ** 2)  # noqa: E731
    for f in (loop, calls):
        with pb.using(staging="off"):
            recorded = pb.grad(f)(x)
        for policy in (pb.SaveAll(), pb.Binomial(2)):
            with pb.using(staging="numpy"):
                assert [pb.grad(f, policy=policy)(x).tobytes() == recorded.tobytes() for _ in range(3)] == [True] * 3
