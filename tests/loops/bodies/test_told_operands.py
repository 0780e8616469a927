"""Plain operands as functions of the number of the step: found by following the body once, with the bits of recorded
steps; what the number decides otherwise is not followed."""

import attrs
import numpy as np
import pytest

import pullback as pb
from pullback.loops.bodies.deterministic_functions import NotTheSameError, Reads
from pullback.loops.bodies.proofs import Proof
from pullback.loops.bodies.told_operands import ITSELF, FollowedBody
from pullback.loops.stepping import proved_steps

N = 60
U, C = np.linspace(0.1, 0.9, 5), np.linspace(-0.5, 0.5, 5)
TABLE = np.linspace(0.5, 1.5, N + 3)
ROWS = np.linspace(-1.0, 1.0, 5 * (N + 3)).reshape(N + 3, 5)
POLICIES = [pb.SaveAll(), pb.Binomial(5)]


@attrs.frozen
class Problem:
    """What a body reads, and hands on."""

    dt: float
    data: np.ndarray
    place: tuple


PROBLEM = Problem(0.01, ROWS, (slice(1, 3),))


def of_numbers(c):
    return lambda k, u: u + 0.01 * TABLE[k] * c - ROWS[k] * u


def of_arithmetic(c):
    return lambda k, u: u * (1.0 - k * 1e-4) + np.sin(0.1 * k) * c


def handed(u, problem, k):
    v = u * (1.0 - problem.dt)
    v[problem.place] += problem.data[k][1:3]
    return v


def of_members(c):
    def body(k, u):
        return handed(u, PROBLEM, k) + c * PROBLEM.dt

    return body


def of_parts(c):
    def body(k, u):
        v, w = u * 0.5, np.cumsum(c, axis=0)
        v[1:] += w[:-1] * TABLE[k]
        v[:2] = v.dot(c) * ROWS[k][3:]
        return -v

    return body


def of_layers(c):
    weights = tuple((c * (k + 1.0), c - k) for k in range(3))

    def body(k, u):
        x, after = TABLE[k] * u, ()
        for weight, shift in weights:
            for sign in (1.0, -1.0):
                x = x * 0.9 + sign * weight * ROWS[k + 1]
            after = (*after, np.tanh(x + 0.01 * shift))
        for one, (other, _), number in zip(after, weights, (1.0, 2.0, 3.0), strict=True):
            x = x + 0.01 * one * other * number
        return x * 0.1

    return body


def unequal(c):
    def body(k, u):
        for x, y in zip((c, c), (c, c, c), strict=k > N):
            u = u + 0.01 * x * y * TABLE[k]
        return u

    return body


def through_itself(c):
    def body(k, u):
        total = 0.0
        for x in u:
            total = total + x * TABLE[k]
        return u + 0.01 * total * c

    return body


def as_often_as_the_number_says(c):
    def body(k, u):
        for _ in range(k % 3):
            u = u + 0.01 * c
        return u * TABLE[k]

    return body


def branching(c):
    return lambda k, u: u * c if k == 7 else u + 0.01 * c


def slicing(c):
    return lambda k, u: u + c * np.sum(TABLE[: k + 1])


def adding_up(c):
    def body(k, u):
        w = ROWS[3] * 0.0
        w += ROWS[k]
        return u + w * c

    return body


@pytest.fixture
def proved(monkeypatch):
    """Whether each body that was asked for rests."""
    seen = []

    def repeats(self, *args, ordinary=Proof.repeats):
        found = ordinary(self, *args)
        seen.append(found)
        return found

    monkeypatch.setattr(Proof, "repeats", repeats)
    return seen


def gradients(make, policy, staging):
    def f(u, c):
        return np.sum(pb.fori_loop(2, N + 2, make(c), u, policy=policy, staging=staging) ** 2)

    gradient = pb.value_and_grad(f, (0, 1))
    for _ in range(3):  # the actions of a schedule are known from the third call on
        value, cts = gradient(U, C)
    return [np.asarray(x).tobytes() for x in (value, *cts)]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("make", [of_numbers, of_arithmetic, of_members, of_parts, of_layers])
def test_what_the_number_tells_is_computed_without_the_body(proved, make, policy):
    assert gradients(make, policy, "numpy") == gradients(make, policy, "off")
    assert any(proved)


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("make", [branching, slicing, adding_up, through_itself, as_often_as_the_number_says])
def test_what_the_number_decides_otherwise_is_asked_of_the_body(proved, make, policy):
    assert gradients(make, policy, "numpy") == gradients(make, policy, "off")
    assert not any(proved)


def test_a_loop_that_fails_fails_at_its_step():
    for staging in ("numpy", "off"):
        with pytest.raises(ValueError, match="longer"):
            gradients(unequal, pb.SaveAll(), staging)


PAIR = ROWS, 2.0
LOOKED_UP = {
    "alone": (lambda k, u, c: u + 0.01 * ROWS[k] * c, True),
    "twice": (lambda k, u, c: u * np.cos(ROWS[k]) + ROWS[k] * c, True),
    "in a function": (lambda k, u, c: u + looked_up_in(ROWS, k) * c, True),
    "by its shape": (lambda k, u, c: u + ROWS[k] * c / ROWS.shape[0], True),
    "a row of its own": (lambda k, u, c: u + ROWS[k] * c + ROWS[3], False),
    "its sum": (lambda k, u, c: u + ROWS[k] * c * np.sum(ROWS), False),
    "its own sum": (lambda k, u, c: u + ROWS[k] * c * ROWS.sum(), False),
    "turned": (lambda k, u, c: u + ROWS[k] * c * ROWS.T[0, 0], False),
    "joined": (lambda k, u, c: u + ROWS[k] * c * np.concatenate((ROWS, ROWS))[4], False),
    "in a function that sums": (lambda k, u, c: u + ROWS[k] * c * added_up_in(ROWS), False),
    "in a tuple": (lambda k, u, c: u + PAIR[0][k] * c, False),
}


def looked_up_in(rows, k):
    return rows[k]


def added_up_in(rows):
    return np.sum(rows)


@pytest.mark.parametrize("what", LOOKED_UP)
def test_an_array_of_which_the_number_tells_all_that_is_read_is_not_compared(monkeypatch, what):
    body, alone = LOOKED_UP[what]
    found = []

    def repeats(self, *args, ordinary=Proof.repeats):
        given = ordinary(self, *args)
        found.extend([any(x is ROWS for x, *_ in self.looked_up)] if given else [])
        return given

    monkeypatch.setattr(Proof, "repeats", repeats)
    make = lambda c: lambda k, u: body(k, u, c)  # noqa: E731
    assert gradients(make, pb.SaveAll(), "numpy") == gradients(make, pb.SaveAll(), "off")
    assert {*found} == {alone}


def test_what_another_thread_writes_to_rows_is_read_by_the_steps_after(monkeypatch):
    rows, asked = np.arange(1.0, N + 1.0), []

    def hold(reads, *looked_up, ordinary=Reads.hold):
        asked.append(any(x is rows for part in looked_up for x, *_ in part))
        if asked.count(True) == 4:
            rows[:] = 0.0
        return ordinary(reads, *looked_up)

    monkeypatch.setattr(proved_steps, "CHECKED", 10)
    monkeypatch.setattr(Reads, "hold", hold)
    gradient = pb.grad(lambda c: pb.fori_loop(0, N, lambda k, u: u + c * rows[k], 0.0, staging="numpy"))
    found = float(gradient(2.0))
    sums = [float(k * (k + 1) // 2) for k in range(N + 1)]
    assert asked.count(True) > 4
    assert found in sums[20:-10]


def test_rows_of_a_scan(proved):
    def f(c, staging):
        return np.sum(pb.scan(lambda u, x: (u * 0.99 + x * c, None), U, ROWS, staging=staging)[0] ** 2)

    found, wanted = (pb.grad(f)(C, staging).tobytes() for staging in ("numpy", "off"))
    assert found == wanted
    assert any(proved)


@pytest.mark.parametrize("staging", ["numpy", "off"])
def test_a_table_that_changes_between_forward_and_reverse(staging):
    rows = ROWS.copy()

    def f(u):
        return np.sum(pb.fori_loop(0, N, lambda k, u: u * np.cos(rows[k]) + rows[k] * u * u, u, staging=staging))

    _, pull = pb.vjp(f, U)
    wanted = pull(1.0)
    _, pull = pb.vjp(f, U)
    rows[:] = 3.0
    assert np.asarray(pull(1.0)).tobytes() == np.asarray(wanted).tobytes()


def test_a_number_beyond_the_table_fails_as_it_does_when_recorded():
    for staging in ("numpy", "off"):
        with pytest.raises(IndexError, match="out of bounds"):
            pb.grad(lambda u, s=staging: np.sum(pb.fori_loop(0, N, lambda k, u: u * TABLE[k + 30], u, staging=s)))(U)


def looping_over(k):
    total = 0.0
    for one in TABLE[k:]:
        total += one
    return total


@pytest.mark.parametrize(
    "body",
    [
        lambda k: [k],
        lambda k: (k, 1)[0],
        lambda k: TABLE[:k],
        lambda k: k,
        lambda k: np.where(k, TABLE, 0.0),
        lambda k: (*(1, 2), k),
        lambda k: [*TABLE[:3], *range(k)],
        looping_over,
    ],
)
def test_only_straight_arithmetic_and_tables_are_followed(body):
    with pytest.raises(NotTheSameError):
        FollowedBody([]).call(body, [3], [ITSELF])


BUFFER = np.zeros(5)


def stored(new):
    BUFFER[:] = new


def added(new):
    BUFFER[:] = 0.0
    w = BUFFER
    w += new


WRITERS = {
    "an assignment": stored,
    "in place": added,
    "out=": lambda new: np.multiply(new, 1.0, out=BUFFER),
    "out by place": lambda new: np.multiply(new, 1.0, BUFFER),
    "a clip's out": lambda new: np.clip(new, -9.0, 9.0, BUFFER),
    "a method's out": lambda new: np.full((1, 5), new).sum(0, None, BUFFER),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_buffer_has_its_content_at_the_moment_of_its_operation(write):
    def make(c):
        def body(k, u):
            write(5.0)
            low = np.minimum(BUFFER, k)  # both contents give the same in the first steps
            write(7.0)
            return u + low * c

        return body

    for policy in POLICIES:
        assert gradients(make, policy, "numpy") == gradients(make, policy, "off")


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_step_that_is_followed_in_vain_is_not_run_twice(write):
    def make(c):
        def body(k, u):
            write(BUFFER + 1.0)
            return u - c if k > 40 else u + c + BUFFER * 0.1

        return body

    found = []
    for staging in ("numpy", "off"):
        BUFFER[:] = 0.0
        found.append((gradients(make, pb.SaveAll(), staging), BUFFER.tolist()))
    assert found[0] == found[1]
