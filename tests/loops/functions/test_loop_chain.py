"""The chain of a loop: what a policy of a user's own may save and record while the length is unknown, and what is left
when something raises."""

import numpy as np
import pytest
from attrs import frozen

import pullback as pb
from pullback.rules.forms import FORMS
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, Schedule

X = np.linspace(0.1, 0.9, 5)


@frozen
class NewestStates(pb.MemoryPolicy):
    """x_0, and then each state as soon as it is live, beside the one before it, which the lookback has."""

    def begin(self, n, *, state_bytes, tape_bytes):
        return Schedule(self.sweep(), n, policy=self, finish=self.finish)

    def sweep(self):
        yield Save("state", 0)
        k = 0
        while True:
            yield Advance(k, k + 1)
            k += 1
            yield Save("state", k)

    def finish(self, n):
        yield EndForward()
        for k in reversed(range(n)):
            yield Load("state", k)
            yield Record(k)
            yield Reverse(k)
        for k in range(n):
            yield Delete("state", k)
        yield EndReverse()


@frozen
class RecordsTheNewest(pb.MemoryPolicy):
    """Steps 0 and 1 as soon as they can be: step 1 from the live state, not from the one before it."""

    def begin(self, n, *, state_bytes, tape_bytes):
        return Schedule(self.sweep(), n, policy=self, finish=self.finish)

    def sweep(self):
        yield Save("state", 0)
        yield Advance(0, 1)
        yield Record(1)
        yield Save("tape", 1)
        k = 2
        while True:
            yield Record(k)
            yield Save("tape", k)
            k += 1

    def finish(self, n):
        yield EndForward()
        for k in reversed(range(1, n)):
            if k < n - 1:  # the last is in WORK
                yield Load("tape", k)
                yield Delete("tape", k)
            yield Reverse(k)
        yield Load("state", 0)
        yield Delete("state", 0)
        yield Record(0)
        yield Reverse(0)
        yield EndReverse()


def growing(x):
    return pb.while_loop(lambda u: np.sum(u) < 40.0, lambda u: u * 1.5 + np.sin(u) * x, x)


@pytest.mark.parametrize("policy", [NewestStates(), RecordsTheNewest()], ids=repr)
@pytest.mark.parametrize("f", [growing, lambda x: growing(x) * growing(x * 0.5)])
def test_the_newest_state_is_not_the_one_before_it(f, policy):
    expected = pb.grad(lambda x: np.sum(f(x)))(X)
    assert pb.grad(lambda x: np.sum(f(x)), policy=policy)(X).tobytes() == expected.tobytes()


def test_a_chain_holds_nothing_after_its_reverse_pass_has_raised():
    calls = 0

    def body(k, u):
        nonlocal calls
        calls += 1
        if calls > 8:
            raise ZeroDivisionError
        return np.sin(u)

    _, pull = pb.vjp(lambda x: pb.fori_loop(0, 6, body, x), X, policy=pb.Binomial(2))
    with pytest.raises(ZeroDivisionError):
        pull(np.ones_like(X))
    (loop,) = [record[2] for record in pull._traced.tape.records if FORMS[record[0]].wide]
    assert (loop.chain.store.entries, loop.chain.work, loop.chain.probe) == ({}, None, None)
    pull.close()
    assert pull.ledger.total == 0
