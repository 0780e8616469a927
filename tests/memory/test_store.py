"""The store: entries of a schedule by tier, booked in the ledger, and what a policy of a user's own may ask of it."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from attrs import frozen
from tests.programs.policies import every_state

import pullback as pb
from pullback.memory import store as stores
from pullback.memory.ledger import Ledger
from pullback.memory.store import Store
from pullback.schedules import Advance, Delete, EndForward, EndReverse, Load, Record, Reverse, Save, Transfer

X = np.linspace(0.1, 0.9, 50)


class Attic:
    """A tier that holds bytes, and counts what goes in and out."""

    in_memory = False

    def __init__(self):
        self.taken = self.given = self.dropped = 0

    def prepare(self):
        pass

    def look(self, stored):
        return None

    def close(self):
        pass

    def take(self, entry, label):
        self.taken += 1
        return pickle.dumps(entry)

    def give(self, stored):
        self.given += 1
        return pickle.loads(stored)  # noqa: S301 - our own bytes

    def drop(self, stored):
        self.dropped += 1


@pytest.fixture
def attic(monkeypatch):
    tier = Attic()
    monkeypatch.setitem(stores.TIERS, "attic", tier)
    return tier


@frozen
class InAttic(pb.MemoryPolicy):
    """Every state goes to the attic by way of memory, and back again before it is used."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for k in range(n):
            yield Save("state", k)
            yield Transfer("state", k, "memory", "attic")
            yield Delete("state", k)
            yield Advance(k, k + 1)
        yield EndForward()
        for k in reversed(range(n)):
            yield Transfer("state", k, "attic", "memory")
            yield Delete("state", k, "attic")
            yield Load("state", k)
            yield Delete("state", k)
            yield Record(k)
            yield Reverse(k)
        yield EndReverse()


@frozen
class SnapshotsIn(pb.MemoryPolicy):
    """Every state and no tape, in one tier."""

    tier: str

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        return every_state(n, self.tier)


@frozen
class MovesInReverse(pb.MemoryPolicy):
    """x_0 in memory, moved to another tier when the reverse begins; with ``kind="tape"`` a tape goes there, too."""

    target: str
    kind: str = "state"

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        yield Save("state", 0)
        yield Advance(0, n)
        yield EndForward()
        yield Transfer("state", 0, "memory", self.target)
        yield Delete("state", 0)
        for k in reversed(range(n)):
            yield Load("state", 0, self.target)
            if k:
                yield Advance(0, k)
            yield Record(k)
            if self.kind == "tape":
                yield Save("tape", k)
                yield Transfer("tape", k, "memory", self.target)
                yield Delete("tape", k)
                yield Load("tape", k, self.target)
            yield Reverse(k)
            if self.kind == "tape":
                yield Delete("tape", k, self.target)
        yield Delete("state", 0, self.target)
        yield EndReverse()


@frozen
class LetsATapeGo(pb.MemoryPolicy):
    """Every tape is saved, and then neither loaded nor reversed: recorded again from a snapshot."""

    def actions(self, n, *, state_bytes=0, tape_bytes=0):
        for k in range(n):
            yield Save("state", k)
            yield Record(k)
            yield Save("tape", k)
            yield Delete("tape", k)
        yield EndForward()
        for k in reversed(range(n)):
            yield Load("state", k)
            yield Delete("state", k)
            yield Record(k)
            yield Reverse(k)
        yield EndReverse()


def loop(x):
    return pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x)


def marked(x):
    u = x
    for _ in pb.steps(5):
        u = np.sin(u) * x
    return u


def unmarked(x):
    u = x
    for _ in range(40):
        u = np.sin(u) * x
    return u


def pulled(f, policy):
    """The pullback of ones under a policy, its report before, and the bytes left after it was closed."""
    _, pull = pb.vjp(f, X, policy=policy)
    before = pull.report
    ct = pull(np.ones_like(X))[0]
    ledger = pull.ledger
    pull.close()
    return ct, before, ledger.total


def test_entries_go_through_tiers_of_a_user_s_policy(attic):
    expected, _, _ = pulled(loop, pb.SaveAll())
    ct, before, left = pulled(loop, InAttic())
    assert ct.tobytes() == expected.tobytes()
    assert (attic.taken, attic.given, attic.dropped) == (5, 5, 5)
    in_memory = pulled(loop, SnapshotsIn("memory"))[1]
    assert in_memory.live_bytes - before.live_bytes == 4 * X.nbytes  # x_0 is held for another reverse pass, too
    assert left == 0


def test_a_tier_that_is_no_memory_is_not_booked(attic):
    expected, in_memory, _ = pulled(loop, SnapshotsIn("memory"))
    ct, before, left = pulled(loop, SnapshotsIn("attic"))
    assert ct.tobytes() == expected.tobytes()
    assert in_memory.live_bytes - before.live_bytes == 4 * X.nbytes
    assert left == 0


@pytest.mark.parametrize("policy", [InAttic(), SnapshotsIn("attic"), MovesInReverse("attic")])
def test_the_plan_is_what_is_measured_in_tiers_too(attic, policy):
    plan = pb.plan(loop, X, policy=policy)
    assert attic.taken == 0  # a plan stores names only
    _, pull = pb.vjp(loop, X, policy=policy)
    pull(np.ones_like(X))
    report = pull.report
    assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)


def test_marked_steps_transfer_snapshots_in_the_reverse_pass(attic):
    expected, _, _ = pulled(marked, pb.SaveAll())
    ct, _, left = pulled(marked, MovesInReverse("attic"))
    assert ct.tobytes() == expected.tobytes()
    assert (attic.taken, attic.given, attic.dropped, left) == (1, 5, 1, 0)


@pytest.mark.parametrize("f", [loop, marked])
def test_a_second_reverse_pass_goes_through_the_tiers_again(attic, f):
    _, pull = pb.vjp(f, X, policy=MovesInReverse("attic"))
    first, again = pull(np.ones_like(X))[0], pull(np.ones_like(X))[0]
    assert first.tobytes() == again.tobytes() == pulled(f, pb.SaveAll())[0].tobytes()


@pytest.mark.parametrize("f", [loop, marked, unmarked])
def test_an_unknown_tier_is_refused_at_the_save(f):
    class Unbounded(SnapshotsIn):  # knows no length: it judges plain code, too
        def begin(self, n, *, state_bytes, tape_bytes):
            return super().begin(1000 if n is None else n, state_bytes=state_bytes, tape_bytes=tape_bytes)

    policy = Unbounded("cellar")
    with pytest.raises(
        pb.PolicyError,
        match=r"Unbounded\(tier='cellar'\) wants Save\('state', 0, 'cellar'\), and there is no tier 'cellar': there is "
        r"'memory', 'disk'. Name one of these",
    ):
        pb.vjp(f, X, policy=policy)


@pytest.mark.parametrize("f", [loop, marked])
def test_an_unknown_tier_is_refused_at_the_transfer(f):
    _, pull = pb.vjp(f, X, policy=MovesInReverse("cellar"))
    with pytest.raises(
        pb.PolicyError, match=r"wants Transfer\('state', 0, 'memory', 'cellar'\), and there is no tier 'cellar'"
    ):
        pull(np.ones_like(X))


def test_the_plan_of_an_unknown_tier_is_refused():
    with pytest.raises(pb.PolicyError, match="there is no tier 'cellar'"):
        pb.plan(loop, X, policy=SnapshotsIn("cellar"))


def test_marked_steps_refuse_other_tiers_for_snapshots_of_the_forward_pass(attic):
    with pytest.raises(pb.PolicyError, match=r"wants Save\('state', 0, 'attic'\), but .*: name 'memory'.*loop func"):
        pb.vjp(marked, X, policy=SnapshotsIn("attic"))


def test_tapes_of_marked_steps_go_to_other_tiers_and_come_back(attic):
    ct, _, left = pulled(marked, MovesInReverse("attic", "tape"))
    assert ct.tobytes() == pulled(marked, pb.SaveAll())[0].tobytes()
    assert (attic.taken, attic.dropped, left) == (1 + 5, 1 + 5, 0)


def test_a_tape_that_is_deleted_unread_leaves_the_ledger():
    def nested(x):
        return pb.fori_loop(0, 3, lambda k, u: pb.fori_loop(0, 2, lambda j, v: np.sin(v) * x, u), x)

    expected, _, _ = pulled(nested, pb.SaveAll())
    ct, before, left = pulled(nested, LetsATapeGo())
    assert ct.tobytes() == expected.tobytes()
    assert left == 0
    assert before.live_bytes < 8 * X.nbytes  # snapshots, and no tape


def test_a_store_books_by_tier():
    ledger = Ledger()
    store = Store(ledger, "a policy", {"memory": stores.ByReference(), "attic": stores.ByReference(in_memory=False)})

    entry = SimpleNamespace(items=[("buffer", 7, "snapshot")])
    store.put("state", 3, "memory", entry)
    store.transfer("state", 3, "memory", "attic")
    assert store.get("state", 3, "attic") is store.get("state", 3, "memory") is entry
    assert (ledger.total, store.holds("state", 3), store.holds("tape", 3)) == (7, True, False)
    store.drop("state", 3, "memory")
    assert (ledger.total, store.of("state")) == (0, {3: entry})
    store.clear()
    assert not store.entries
