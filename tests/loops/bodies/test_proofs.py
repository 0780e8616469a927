"""Steps of a body that is proved to do the same each time run without it, with the same bits; others run it."""

import sys

import attrs
import numpy as np
import pytest

import pullback as pb
from pullback.loops.bodies import proofs
from pullback.loops.bodies.proofs import Proof
from pullback.loops.stepping import proved_pass, proved_steps
from pullback.loops.stepping.proved_pass import ProvedPass

N = 150
U, C = np.linspace(0.1, 0.9, 7), np.linspace(-0.5, 0.5, 7)
POLICIES = [pb.SaveAll(), pb.Binomial(6), pb.Budget("1 MB"), "auto"]
OF_ROWS = [
    pb.Mixed(40), pb.Mixed(7), pb.Recompute(), pb.Recompute(2), pb.Periodic(50), pb.Budget("60 kB"),
]  # fmt: skip
DT = 0.01


def plain(c):
    return lambda _, u: u + DT * (c * u * (1.0 - u))


def in_place(c):
    weights = np.linspace(0.5, 1.5, 5)

    def body(_, u):
        v = u * 0.99
        v[1:-1] += DT * weights * c[1:-1]
        v *= 1.01
        return v

    return body


def gradients(make, policy, staging="numpy", given=(U, C), **said):
    def f(u, c):
        return np.sum(pb.fori_loop(0, N, make(c), u, policy=policy, staging=staging, **said) ** 2)

    found = pb.value_and_grad(f, (0, 1))
    for _ in range(3):  # the actions of a schedule are known from the third call on
        value, (by_u, by_c) = found(*given)
    return [np.asarray(value).tobytes(), by_u.tobytes(), by_c.tobytes()]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("make", [plain, in_place])
def test_the_body_rests_and_the_bits_are_those_of_recorded_steps(rested, make, policy):
    assert gradients(make, policy) == gradients(make, policy, "off")
    assert sum(rested) > 3 * (N - 30)


def test_the_body_rests_between_steps_that_a_stage_advances_in_buffers(rested):
    given = np.resize(U, 4096), np.resize(C, 4096)  # of 32 KiB, from which a stage has buffers
    wanted = gradients(plain, pb.Binomial(6), "off", given)
    assert gradients(plain, pb.Binomial(6), "numpy", given) == wanted
    assert sum(rested) > 3 * (N - 30)


@pytest.mark.parametrize("policy", OF_ROWS, ids=repr)
@pytest.mark.parametrize("make", [plain, in_place])
def test_the_body_rests_while_rows_of_tapes_are_kept_and_taken_back(monkeypatch, rested, make, policy):
    taken = []

    def back(self, k, first, seeds, taken_back=ProvedPass._back):
        taken.append(k - first + 1)
        return taken_back(self, k, first, seeds)

    monkeypatch.setattr(ProvedPass, "_back", back)
    assert gradients(make, policy) == gradients(make, policy, "off")
    assert sum(taken) > 3 * 30


def counting(c):
    seen = np.zeros(7)

    def body(_, u):
        np.add(seen, 1e-3, out=seen)
        return u + seen * (c * u)

    return body


def looking(c):
    return lambda _, u: u * 1.01 if u[0] > 0.2 else u + DT * c


def of_other_steps(c):
    return lambda k, u: u * c if k % 2 else u + DT * c


@pytest.mark.parametrize("make", [counting, looking, of_other_steps])
def test_a_body_that_is_not_proved_runs_in_each_step(rested, make):
    assert gradients(make, pb.SaveAll()) == gradients(make, pb.SaveAll(), "off")
    assert not rested


@attrs.frozen
class Computing:
    """What it answers depends on how often it was asked."""

    w: float

    def changing(self):
        CALLS.append(self)
        return self.w * (1 + len(CALLS) // 60)

    half = property(changing)
    size = property(changing)

    def __call__(self, u):
        return u * self.changing()


OPERATED = ("__getitem__", "__mul__", "__rmul__", "__neg__", "__len__", "__float__", "__iter__", "__bool__", "__eq__")


def computing(name):
    """An object of a class that has this method."""
    answers = {"__iter__": lambda self: iter([self.changing()]), "__len__": lambda self: int(self.changing() * 1e3),
               "__bool__": lambda self: self.changing() > 1.5e-3, "__eq__": lambda self, _: self.changing() > 1.5e-3,
               "__hash__": None}  # fmt: skip
    method = answers.get(name, lambda self, *_: self.changing())
    return attrs.frozen(type("Computing", (Computing,), {name: method, "__slots__": ()}), eq=False)(1e-3)


@attrs.frozen
class Members:
    half: float


CALLS = []
OTHER = Members(0.5)
BODIES = {
    "half": lambda p: lambda _, u: u + p.half * u * OTHER.half,
    "size": lambda p: lambda _, u: u + p.size * u * OTHER.half,
    "__call__": lambda p: lambda _, u: u + p(u),
    "__getitem__": lambda p: lambda _, u: u + p[0] * u,
    "__mul__": lambda p: lambda _, u: u + u * (p * 1.0),
    "__rmul__": lambda p: lambda _, u: u + u * (1.0 * p),
    "__neg__": lambda p: lambda _, u: u + u * -p,
    "__len__": lambda p: lambda _, u: u + u * (len(p) * 1e-3),
    "__float__": lambda p: lambda _, u: u + u * float(p),
    "__iter__": lambda p: lambda _, u: u + u * sum([*p]),
    "__bool__": lambda p: lambda _, u: u * 1.001 if p else u * 0.999,
    "__eq__": lambda p: lambda _, u: u + u * (p == 3) * 1e-3,
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_reads_an_object_which_computes_runs_in_each_step(rested, name):
    """A property, and what an operator, a call or a function asks for, is code of the user's."""
    found = []
    for staging in ("off", "numpy"):
        CALLS.clear()
        p = computing(name) if name in OPERATED else Computing(1e-3)
        body = BODIES[name](p)
        with pb.using(staging=staging):
            g = pb.grad(lambda u, body=body: np.sum(pb.fori_loop(0, N, body, u) ** 2))(U)
        found.append((g.tobytes(), len(CALLS)))
    assert found[0] == found[1]
    assert not rested


def test_a_body_that_reads_members_alone_rests(rested):
    pb.grad(lambda u: np.sum(pb.fori_loop(0, N, lambda _, u: u + OTHER.half * u, u, staging="numpy")))(U)
    assert rested


def test_an_array_that_the_body_changes_is_found_under_a_policy():
    with pytest.raises(pb.ReplayError):
        gradients(counting, pb.Binomial(6))


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_what_is_read_is_looked_at_again_and_the_body_goes_on_where_it_differs(rested, monkeypatch, policy):
    kept = []

    def hold(reads, *looked_up, hold=proofs.Reads.hold):
        kept.append(hold(reads, *looked_up))
        return kept[-1] and len(kept) % 7 != 4

    monkeypatch.setattr(proved_pass, "CHECKED", 10)
    monkeypatch.setattr(proved_steps, "CHECKED", 10)
    monkeypatch.setattr(proofs.Reads, "hold", hold)
    wanted = gradients(plain, policy, "off")
    assert gradients(plain, policy) == wanted
    assert 0 < max(rested) < N - 10


def test_who_traces_calls_sees_each_of_them(rested):
    calls = []
    body = plain(C)

    def profile(frame, event, _):
        if event == "call" and frame.f_code is body.__code__:
            calls.append(event)

    sys.setprofile(profile)
    try:
        pb.grad(lambda u: np.sum(pb.fori_loop(0, N, body, u, staging="numpy")))(U)
    finally:
        sys.setprofile(None)
    assert len(calls) >= N
    assert not rested


def test_why_a_body_is_not_proved():
    proof = Proof(lambda _, u: id(u), "fori_loop")
    assert not proof.repeats(0, [], [])
    assert proof.why == "it reads a builtin_function_or_method"
