"""Names are watched one by one: what a body counts in an object, a dict or a module hides nothing that stands beside
it. The first step reads nothing and the state is zero, so that nothing else shows it."""

import types

import numpy as np
import pytest

import pullback as pb

POLICIES = (pb.Recompute(2), pb.Binomial(1), pb.Binomial(2), pb.Binomial(50))
N, ZERO = 6, np.zeros(3)
COUNT, SCALE = 0, 0.7


class Model:
    """Counts its steps and writes them down, beside what it reads."""

    kept, count_of_all = 0.7, 0

    def __init__(self):
        self.count, self.log, self.scale, self.items = 0, [], 0.7, {"count": 0, "scale": 0.7}

    def of_attribute(self, k, u):
        self.count += 1
        self.log.append(k)
        return self.scale

    def of_class(self, k, u):
        Model.count_of_all += 1
        return Model.kept

    def of_item(self, k, u):
        self.items["count"] += 1
        self.items[k] = "new"
        return self.items["scale"]

    def of_global(self, k, u):
        global COUNT  # noqa: PLW0603 - a user's habit
        COUNT += 1
        return SCALE

    def of_method(self, k, u):
        return self.told()

    def told(self):
        return 0.7

    def of_special_method(self, k, u):
        return self[k]

    def __getitem__(self, k):
        return self.items["scale"]


CHANGES = {
    "attribute": lambda m, patch: setattr(m, "scale", 3.0),
    "class": lambda m, patch: patch.setattr(Model, "kept", 3.0),
    "item": lambda m, patch: m.items.update(scale=3.0),
    "global": lambda m, patch: patch.setitem(globals(), "SCALE", 3.0),
    "method": lambda m, patch: patch.setattr(Model, "told", lambda self: 3.0),
    "special_method": lambda m, patch: patch.setattr(Model, "__getitem__", lambda self, k: 3.0),
}


def pulled(m, place, policy):
    read = getattr(m, f"of_{place}")

    def body(k, u):
        return pb.name(u * (read(k, u) if k else 1.0), "u")

    return pb.vjp(lambda x: np.sum(pb.fori_loop(0, N, body, x)), ZERO, policy=policy)[1]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("place", CHANGES)
@pytest.mark.parametrize("when", ["before the pull", "between two pulls", "in a callback"])
def test_what_is_changed_beside_a_counter_is_put_back_or_told(place, policy, when, monkeypatch):
    m = Model()
    pull = pulled(m, place, policy)
    done = []

    def change(*_):
        if not done:
            CHANGES[place](m, monkeypatch)
        done.append(1)

    on_adjoint = {"u": change} if when == "in a callback" else None
    if when == "between two pulls":
        pull(1.0)
    if when != "in a callback":
        change()
    if place == "item":  # may be a switch
        with pytest.raises(pb.ReplayError, match=r"read\.items, changed"):
            pull(1.0, on_adjoint=on_adjoint)
        return
    for _ in range(2):
        np.testing.assert_allclose(pull(1.0, on_adjoint=on_adjoint)[0], 0.7**5 * np.ones(3), rtol=1e-14)
    assert m.scale == (3.0 if place == "attribute" else 0.7)


def test_the_name_that_has_changed_is_told():
    switches = types.SimpleNamespace(count=0, on=False, scale=0.7)

    def body(k, u):
        switches.count += 1
        return u * (3.0 if switches.on and k else switches.scale)

    pull = pb.vjp(lambda x: np.sum(pb.fori_loop(0, N, body, x)), ZERO, policy=pb.Binomial(2))[1]
    switches.on = True
    with pytest.raises(pb.ReplayError, match=r"changed in between: switches\.on, changed after the first run\. Make"):
        pull(1.0)


def test_a_callback_finds_and_binds_the_users_names():
    m = Model()
    pull = pulled(m, "attribute", pb.Binomial(2))
    m.scale, seen = 5.0, []

    def heard(step, ct):
        seen.append(m.scale)
        m.scale += 1.0

    pull(1.0, on_adjoint={"u": heard})
    assert seen == [5.0, 6.0, 7.0, 8.0, 9.0, 10.0]
    assert m.scale == 11.0
