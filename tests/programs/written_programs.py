"""Programs with what people write around and into the body of a loop: closures, generators, exceptions, views of what
is captured, states of every kind, branches on values, objects, buffers. Each takes an array of six numbers and gives a
number."""

import random
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

import pullback as pb

N = 40
PROGRAMS: dict[str, Callable[[Any], Any]] = {}
TABLE = np.random.default_rng(0).normal(size=(N, 6))


def program(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PROGRAMS[f.__name__] = f
    return f


def looped(body: Any, init: Any, n: int = N) -> Any:
    return pb.fori_loop(0, n, body, init)


@program
def a_cell_that_is_bound_anew(x):
    scale = 0.5
    first = looped(lambda k, u: np.sin(u) * scale, x)
    scale = 0.25
    return np.sum(first * looped(lambda k, u: np.sin(u) * scale, x))


@program
def a_generator_of_numbers(x):
    rng = np.random.default_rng(3)
    return np.sum(looped(lambda k, u: 0.9 * u + 0.1 * rng.normal(size=u.shape) * np.cos(u), x) ** 2)


@program
def pythons_random_numbers(x):
    random.seed(3)
    return np.sum(looped(lambda k, u: u * 0.9 + random.random() * 0.01, x))  # noqa: S311 - no secret


@program
def an_iterator_that_is_drawn_from(x):
    numbers = iter(np.linspace(0, 1, 10_000))
    return np.sum(looped(lambda k, u: u * 0.9 + 0.01 * next(numbers) * np.sin(u), x))


@program
def a_log_of_calls(x):
    log = []

    def body(k, u):
        log.append(k)
        return np.tanh(u) * 1.1

    return np.sum(looped(body, x))


@program
def an_exception_within_the_body(x):
    def body(k, u):
        try:
            w = np.sin(u)
            if k % 3 == 0:
                raise ValueError  # noqa: TRY301 - as people write it
            w = w * u[k % 8]
        except (ValueError, IndexError):
            w = w * 3.0
        finally:
            rest = u * 0.5
        return w * 0.1 + rest

    return np.sum(looped(body, x))


@program
def an_exception_that_leaves_the_loop(x):
    def body(k, u):
        if k == 30:
            raise KeyError("late")
        return np.sin(u)

    try:
        return np.sum(looped(body, x))
    except KeyError:
        return np.sum(looped(lambda k, u: np.cos(u), x))


@program
def early_returns(x):
    def body(k, u):
        if k < 5:
            return u * 0.99
        v = np.cos(u)
        return v if k == 20 else v * 0.5 + u * 0.5

    return np.sum(looped(body, x))


@program
def leaves_that_are_one_array(x):
    def body(k, state):
        c = np.sin(state[0]) * state[1]
        return c, c

    a, b = looped(body, (x, x))
    return np.sum(a) + np.sum(b * b)


@program
def a_leaf_that_looks_at_another(x):
    def body(k, state):
        a = state[0] * 0.9 + 0.1 * np.sum(state[1])
        return a, a[1:4]

    a, b = looped(body, (x, x[1:4]))
    return np.sum(a) + np.sum(b * b)


@program
def views_of_what_is_captured(x):
    plain, traced = np.linspace(0, 1, 60), np.concatenate([x, x]) * 0.5
    v, w, z = plain[3:33:5], plain[::-1][:6], traced[::2]
    return np.sum(looped(lambda k, u: u * 0.9 + v * np.sin(u) + w * z + traced[k % 6 : k % 6 + 6], x))


@program
def whole_numbers_and_masks_in_the_state(x):
    def body(k, state):
        u, n, at, mask = state
        u = np.where(mask, u[at] * 0.95 + 0.01 * n * np.cos(u), np.sin(u))
        return u, n + 1, np.roll(at, 1), ~mask

    u, n, at, mask = looped(body, (x, 0, np.arange(6), np.array([1, 0, 1, 1, 0, 0], bool)))
    return np.sum(u * at) * n + np.sum(u[mask])


@program
def complex_numbers(x):
    z = looped(lambda k, z: z * np.exp(1j * 0.1) * 0.99 + 0.01 * np.conj(z) * z, x + 0.5j * x)
    return np.sum(np.abs(z) ** 2)


@program
def two_precisions(x):
    def body(k, state):
        a = state[0] * np.float32(0.9) + np.sin(state[0]) * 0.1
        return a, state[1] * 0.9 + a

    a, b = looped(body, (x.astype(np.float32), x))
    return np.sum(b) + np.sum(a).astype(np.float64)


@program
def an_empty_leaf(x):
    u, e = looped(lambda k, s: (s[0] * 0.9 + np.sum(s[1]) + 0.1 * np.sin(s[0]), s[1] * 2.0), (x, x[:0]))
    return np.sum(u) + np.sum(e)


@program
def a_loop_within_a_loop(x):
    def inner(j, v):
        return np.sin(v) * 0.9 + 0.1 * x

    return np.sum(looped(lambda k, u: looped(inner, u, 30) * 0.5 + u * 0.1, x, 30))


@program
def branches_on_values(x):
    def body(k, u):
        if pb.value(np.sum(u)) > 1.0:
            return u * 0.5
        if u[0] > 0.3:
            u = u * 0.8
        return u * 1.3 + 0.01

    return np.sum(looped(body, x))


@program
def what_is_printed(x):
    def body(k, u):
        if k % 10 == 0:
            print(k, float(pb.value(u[0])))  # noqa: T201 - what is printed is compared
        return np.sin(u) * 0.99

    return np.sum(looped(body, x))


@program
def a_while_loop_with_time_steps(x):
    def body(state):
        dt = 0.03 / (1 + np.max(np.abs(state[0])))
        return state[0] - dt * np.sin(state[0]), state[1] + pb.value(dt)

    u, t = pb.while_loop(lambda state: state[1] < 1.0, body, (x, 0.0))
    return np.sum(u) * t


@program
def marked_steps_that_break(x):
    u = x
    for k in pb.steps(N):
        if k % 4 == 1:
            continue
        u = np.sin(u) * 0.97
        if pb.value(u[0]) < 0.2:
            break
    else:
        u = u * 2
    return np.sum(u)


@program
def recursion(x):
    def deep(u, depth):
        return u if depth == 0 else np.sin(deep(u, depth - 1)) * 0.9

    return np.sum(looped(lambda k, u: deep(u, k % 3 + 1), x))


class Scaled:
    """An object with a property that counts, and an attribute that is made when it is asked for."""

    asked = 0

    @property
    def scale(self):
        Scaled.asked += 1
        return 0.9

    def __getattr__(self, name):
        return 0.5


@program
def properties_and_attributes(x):
    scaled = Scaled()
    return np.sum(looped(lambda k, u: np.sin(u) * scaled.scale + scaled.anything * x, x))


@attrs.frozen
class Fields:
    u: Any
    v: Any
    n: int = 0

    @property
    def energy(self):
        return np.sum(self.u * self.v)


@program
def a_class_as_state(x):
    def body(k, s):
        return Fields(s.u * 0.9 + s.v * 0.1, s.v - 0.1 * s.u + 0.01 * s.energy, s.n + 1)

    end = looped(body, Fields(x, x * 0.5))
    return end.energy * end.n


@program
def a_buffer_that_is_filled_twice_in_a_step(x):
    buffer = np.zeros(6)
    ends = buffer[::-1]

    def body(k, u):
        buffer[:] = k * 0.01
        v = u * buffer
        ends[k % 6] = 3.0
        return u * 0.9 + v + 0.001 * buffer

    return np.sum(looped(body, x))


@program
def writes_into_the_state(x):
    def body(k, m):
        m[1:] += 0.1 * m[:-1]
        m.T[k % 6] *= 0.9
        m[2, 3] = np.sin(m[3, 2]) * k
        return m

    return np.sum(looped(body, np.outer(x, x)) ** 2)


@program
def out_and_where(x):
    def body(k, u):
        v = np.empty_like(u)
        np.multiply(u, 0.9, out=v)
        np.add(v, np.sin(u), out=v, where=np.array([1, 0, 1, 0, 1, 1], bool))
        return v * 0.5

    return np.sum(looped(body, x))


@program
def rows_of_tables_and_indices(x):
    at, log = np.array([[0, 2, 4], [1, 3, 5]]), np.zeros((N, 6))

    def body(k, u):
        w = u * 0.9 + TABLE[N - 1 - k, ::-1] * 1e-3
        log[k] = k
        w[at[k % 2]] += 0.1 * TABLE[k, 0] * u[at[(k + 1) % 2]]
        np.add.at(w, [0, 0, 1], 0.01 * u[:3])
        return w

    return np.sum(looped(body, x))


@program
def numbers_made_of_the_number_of_the_step(x):
    return np.sum(looped(lambda k, u: u * (0.9 + 1e-3 * (k // 2) % 3) + np.float32(k) * 0.01 + (-1) ** k * 0.1, x))


@program
def a_scan_with_outputs(x):
    def step(c, row):
        c = np.tanh(c) * 0.9 + row * row
        return c, (c[::2], np.sum(c * row))

    c, (a, b) = pb.scan(step, x, np.outer(np.linspace(0, 1, N), x))
    return np.sum(c) + np.sum(a**2) + np.sum(b)


@program
def calls_of_a_checkpointed_function(x):
    step = pb.checkpoint(lambda u, k: np.sin(u) * 0.9 + np.exp(-u * u) * 0.01 * k)
    u = x
    for k in range(N):
        u = step(u, k)
    return np.sum(u)


@program
def marked_steps_that_keep_a_list(x):
    seen = [x]
    for _ in pb.steps(N):
        seen.append(np.sin(seen[-1]) * 0.9 + 0.05 * seen[max(0, len(seen) - 3)])
    return np.sum(seen[-1] * seen[5])


@program
def marked_steps_in_place_through_a_view(x):
    u = np.concatenate([x, x]) * 1.0
    v = u[::2]
    for _ in pb.steps(N):
        v *= 0.95
        u[1::2] += 0.1 * v
        u[pb.value(u) > 0.5] *= 0.8
    return np.sum(u)


@program
def large_fields(x):
    start = np.outer(np.resize(x, 70), np.resize(x[::-1], 70))
    damp = np.linspace(0.9, 1, 4900).reshape(70, 70)

    def body(k, state):
        p, u = state
        v = u - p
        v *= damp
        v += u
        v[1:-1, 1:-1] += 0.1 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4.0 * u[1:-1, 1:-1])
        return (u, np.cos(v) * 0.3) if k in (7, 21, 33) else (u, v)

    p, u = looped(body, (start, start * 0.9))
    return np.sum(u * p)


@program
def a_large_array_that_is_another_in_every_second_step(x):
    turned = np.zeros((70, 70))

    def body(k, u):
        turned[...] = 1.0 - turned
        return u * 0.9 + 0.01 * turned * np.sin(u)

    return np.sum(looped(body, np.outer(np.resize(x, 70), np.resize(x[::-1], 70))))
