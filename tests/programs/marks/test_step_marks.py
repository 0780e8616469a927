"""``pullback.steps`` over anything: there are as many steps as items come, whatever ``len()`` says."""

from collections import deque
from functools import partial
from itertools import islice

import numpy as np
import pytest
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save

X = np.array([0.3, -0.7, 1.1])


@frozen
class FromTheStart(pb.MemoryPolicy):
    """Needs to know the length: the least that a user may write."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        yield Save("state", 0)
        if n:
            yield Advance(0, n)
        yield EndForward()
        for k in reversed(range(n)):
            yield Load("state", 0)
            if k:
                yield Advance(0, k)
            yield Record(k)
            yield Reverse(k)
        yield Delete("state", 0)
        yield EndReverse()


ONLINE = (
    pb.Recompute(),
    pb.Recompute(1),
    pb.Recompute(3),
    pb.Binomial(1),
    pb.Binomial(3),
    pb.Binomial(2, online="wmi"),
)


class Promises:
    """Says that it has ``said`` items and gives others; ``said`` may be an exception."""

    def __init__(self, said, items):
        self.said, self.items = said, items

    def __len__(self):
        if isinstance(self.said, Exception):
            raise self.said
        return self.said

    def __iter__(self):
        return iter(self.items)


class Grows:
    """A list that grows, or shrinks, while it is iterated over."""

    def __init__(self, n, until):
        self.n, self.until = n, until

    def __call__(self):
        items = list(range(self.n))
        for k in pb.steps(items):
            yield k
            if len(items) < self.until:
                items.append(len(items))
            elif len(items) > self.until:
                items.pop()


def stepped(x, items):
    """A program of which each step reads its item, the state and the argument, and writes."""
    u, total = x * 1.0, 0.0
    for k in items:
        u = np.sin(u * x) + 0.1 * k
        u[1:] *= x[:-1]
        total = total + u[0] * x[1]
    return np.sum(u * x) + total


def same_bits_everywhere(make, plainly, policies=ONLINE):
    value, gradient = pb.value_and_grad(lambda x: stepped(x, plainly()))(X)
    for policy in (pb.SaveAll(), *policies):
        found, g = pb.value_and_grad(lambda x: stepped(x, make()), policy=policy)(X)
        assert found == value, policy
        assert g.tobytes() == gradient.tobytes(), policy
        out, pull = pb.vjp(lambda x: stepped(x, make()), X, policy=policy)
        assert out == value
        assert [pull(1.0)[0].tobytes() for _ in range(2)] == [gradient.tobytes()] * 2, policy
        pull.close()
        assert pull.report.live_bytes == 0


@settings(max_examples=15)
@given(n=st.integers(0, 9), said=st.integers(0, 12))
def test_the_length_is_what_is_iterated(n, said):
    same_bits_everywhere(lambda: pb.steps(Promises(said, range(n))), lambda: range(n))


@settings(max_examples=15)
@given(n=st.integers(0, 6), until=st.integers(0, 9))
def test_a_list_that_grows_or_shrinks(n, until):
    expected = [int(k) for k in Grows(n, until)()]
    same_bits_everywhere(Grows(n, until), lambda: expected)


KINDS = {
    "int": lambda n: n,
    "int64": np.int64,
    "uint8": np.uint8,
    "0-d array": np.array,
    "range": range,
    "list": lambda n: list(range(n)),
    "tuple": lambda n: tuple(range(n)),
    "array": np.arange,
    "array of rows": lambda n: np.arange(n)[:, None],
    "dict": lambda n: dict.fromkeys(range(n)),
    "keys": lambda n: dict.fromkeys(range(n)).keys(),
    "set": lambda n: set(range(n)),
    "deque": lambda n: deque(range(n)),
    "generator": lambda n: (k for k in range(n)),
    "iterator": lambda n: iter(range(n)),
    "reversed": lambda n: reversed(range(n)),
    "map": lambda n: map(int, range(n)),
    "zip": lambda n: (k for k, _ in zip(range(n), range(n + 2), strict=False)),
    "enumerate": lambda n: (k for k, _ in enumerate(range(n))),
    "bytes": lambda n: bytes(range(n)),
    "len raises TypeError": lambda n: Promises(TypeError("object of type 'generator' has no len()"), range(n)),
    "len raises its own": lambda n: Promises(LookupError("not yet"), range(n)),
    "len is negative": lambda n: Promises(-1, range(n)),
    "len is huge": lambda n: Promises(10**9, range(n)),
    "len is no int": lambda n: Promises(2.5, range(n)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_every_kind_of_iterable(kind, n):
    make = KINDS[kind]
    plain = make(n)
    plainly = list(iter(range(n) if "int" in kind or kind == "0-d array" else plain))  # list() would ask for the length
    same_bits_everywhere(lambda: pb.steps(make(n)), lambda: plainly)


@settings(max_examples=15)
@given(n=st.integers(1, 7), left=st.integers(0, 7), said=st.integers(0, 9))
def test_left_by_break_or_by_an_error(n, left, said):
    def broken(items):
        for count, k in enumerate(items):
            if count == left:
                break
            yield k

    def raising():
        yield from range(min(n, left))
        raise LookupError

    def caught(items):
        try:
            yield from items
        except LookupError:
            return

    same_bits_everywhere(lambda: broken(pb.steps(Promises(said, range(n)))), lambda: range(min(n, left)))
    same_bits_everywhere(lambda: caught(pb.steps(Promises(said, raising()))), lambda: range(min(n, left)))


def test_items_that_are_traced_and_made_as_the_loop_goes():
    def f(x, mark):
        def rows():
            u = x
            for _ in range(5):
                u = np.cos(u) * x
                yield u

        return sum(np.sum(row * row) for row in mark(rows())) + sum(np.sum(row**3) for row in mark(x))

    expected = pb.grad(lambda x: f(x, iter))(X)
    for policy in (pb.SaveAll(), *ONLINE):
        for said in (None, 0, 3, 5, 8):
            mark = (lambda it, said=said: pb.steps(Promises(said, it))) if said is not None else pb.steps
            assert pb.grad(lambda x, mark=mark: f(x, mark), policy=policy)(X).tobytes() == expected.tobytes()


def test_steps_within_the_items_and_after_them():
    """The items' own generator marks steps: the outermost has them, and where its length was 0 the inner one."""

    def inner():
        yield from pb.steps(4)

    for said in (0, 2, 4, 9):
        same_bits_everywhere(lambda said=said: pb.steps(Promises(said, inner())), lambda: range(4))
    same_bits_everywhere(
        lambda: (k for _ in pb.steps(Promises(1, range(3))) for k in pb.steps(Promises(0, range(2)))),
        lambda: [0, 1] * 3,
    )
    same_bits_everywhere(
        lambda: (k for make in (Promises(0, range(3)), Promises(2, range(4))) for k in pb.steps(make)),
        lambda: [0, 1, 2, 0, 1, 2, 3],
    )


def test_a_generator_left_by_break_goes_on_as_in_a_plain_loop():
    def f(x, mark):
        numbers = (k for k in range(6))
        for k in mark(numbers):
            x = np.sin(x * (k + 1.0))
            if k == 2:
                break
        return np.sum(x) * sum(numbers)

    for policy in (pb.SaveAll(), *ONLINE):
        value, gradient = pb.value_and_grad(lambda x: f(x, pb.steps), policy=policy)(X)
        assert value == f(X, iter)
        assert np.any(gradient)
    with pb.trap("nan"):
        assert pb.value_and_grad(lambda x: f(x, pb.steps))(X)[0] == f(X, iter)
    assert f(X, pb.steps) == f(X, iter)


def test_a_policy_that_needs_the_length_says_what_len_promised():
    policy = FromTheStart()
    same_bits_everywhere(lambda: pb.steps(Promises(4, range(4))), lambda: range(4), [policy])
    same_bits_everywhere(lambda: pb.steps([]), list, [policy])
    for said in (0, 3):
        with pytest.raises(pb.PolicyError, match=rf"known length.* was {said}, and more items come"):
            pb.grad(lambda x, said=said: stepped(x, pb.steps(Promises(said, range(4)))), policy=policy)(X)
    same_bits_everywhere(lambda: pb.steps(Promises(5, range(4))), lambda: range(4), [policy])


def test_numbers_that_are_no_length():
    for wrong in (2.5, np.float64(3.0), None):
        with pytest.raises(TypeError):
            pb.grad(lambda x, wrong=wrong: stepped(x, pb.steps(wrong)), policy=pb.Binomial(2))(X)


def test_as_many_steps_are_planned_as_promised_and_run():
    """A promise that is kept costs what the schedule says; one that is not goes on as an unknown length does."""

    def run(said, n):
        items = partial(islice, range(n), n)
        _, pull = pb.vjp(lambda x: stepped(x, pb.steps(Promises(said, items()))), X, policy=pb.Binomial(3))
        pull(1.0)
        return pull.report.n_forward

    assert run(40, 40) < run(0, 40)


LATE = [FromTheStart(), pb.Mixed(1), pb.Mixed(2), pb.Budget("1 MB"), pb.Tiered(1, 1, write_cost=1, read_cost=1)]


@pytest.mark.parametrize("policy", LATE)
def test_a_policy_that_needs_the_length_plans_again_for_a_loop_left_early(policy):

    def left(x, mark, *, by_zip):
        u = x * 1.0
        for k, j in zip(mark(5), range(3 if by_zip else 9), strict=False):
            u = np.sin(u * x) + 0.1 * k
            if j == 2 and not by_zip:
                break
        return np.sum(u * x)

    for by_zip in (False, True):
        wanted = pb.grad(lambda x, by_zip=by_zip: left(x, range, by_zip=by_zip))(X)
        _, pull = pb.vjp(lambda x, by_zip=by_zip: left(x, pb.steps, by_zip=by_zip), X, policy=policy)
        for _ in range(2):
            assert pull(1.0)[0].tobytes() == wanted.tobytes()
        pull.close()
        assert pull.report.live_bytes == 0


@settings(max_examples=15)
@given(n=st.integers(0, 6), shorter=st.integers(0, 6), said=st.sampled_from([None, 0, 2, 6]))
def test_zipped_with_something_shorter(n, shorter, said):
    """``zip`` asks for an item that no step follows."""

    def zipped(items):
        yield from (k for k, _ in zip(items, range(shorter), strict=False))

    items = (lambda: iter(range(n))) if said is None else (lambda: Promises(said, range(n)))
    same_bits_everywhere(lambda: zipped(pb.steps(items())), lambda: range(min(n, shorter)))
