"""Programs whose temporaries somebody has still, and what tests of results in operands share."""

import functools
import operator

import numpy as np

import pullback as pb
from pullback.tracing import results_into_operands

LARGE = 1 << 10
"""Bytes from which on arrays are large here."""
N = 1032
RNG = np.random.default_rng(3)
X = RNG.uniform(0.2, 0.9, N)


class Watched(dict):
    """Notes what is computed into an operand."""

    def __init__(self, ufuncs, seen):
        super().__init__(ufuncs)
        self.seen = seen

    def __getitem__(self, symbol):
        self.seen.append(symbol)
        return super().__getitem__(symbol)


def in_new_arrays(monkeypatch, run):
    """What ``run`` gives where nothing is taken over."""
    with monkeypatch.context() as patch:
        patch.setattr(results_into_operands, "_dies", lambda *_: False)
        return run()


KEPT = []


def by_a_list(x):
    KEPT.append(x * 2.0)
    return KEPT[-1] + 1.0


def by_a_variable(x):
    t = x * 2.0
    u = t + 1.0
    return u * t


def by_a_variable_in_the_expression(x):
    return ((t := x * 2.0) + 1.0) * 0.5 + t


def by_a_parameter(x):
    def f(t):
        return (t + 1.0) * 0.5 + t

    return f(x * 2.0)


def by_both_sides(x):
    def f(t):
        return t + t

    return f(x * 2.0) + 1.0


def by_a_value(x):
    def kept(t):
        KEPT.append(pb.value(t))
        return t

    return kept(x * 2.0) + 1.0


def by_part_of_a_value(x):
    def kept(t):
        KEPT.append(pb.value(t)[3:7])
        return t

    return kept(x * 2.0) + 1.0


def by_a_view(x):
    def kept(t):
        KEPT.append(t[5:])
        return t

    return kept(x * 2.0) + 1.0


def by_a_transpose(x):
    def kept(t):
        KEPT.append(t.T)
        return t

    return np.ravel(kept(x.reshape(8, -1) * 2.0) + 1.0)


def by_a_closure(x):
    def kept(t):
        KEPT.append(lambda: t)
        return t

    return kept(x * 2.0) + 1.0


def by_an_attribute(x):
    class Box:
        pass

    box = Box()
    box.t = x * 2.0
    return (box.t + 1.0) * box.t


def by_a_generator(x):
    def terms():
        t = x * 2.0
        yield t
        yield t + 1.0

    return sum(term * 1.5 for term in terms()) + 1.0


def by_a_generator_expression(x):
    parts = [x * 2.0, x * 3.0]
    return sum(part + 1.0 for part in parts) * parts[0]


def by_a_reduction(x):
    return functools.reduce(operator.add, [x * 2.0, x * 3.0, x * 4.0]) + 1.0


def by_a_partial(x):
    """NumPy itself writes into an array that a ``partial`` has, so plain NumPy gives another number."""
    added = functools.partial(operator.add, x * 2.0)
    return added(1.0) * added(2.0)


def by_a_map(x):
    parts = [x * 2.0, x * 3.0]
    return sum(map(operator.mul, parts, parts)) + parts[0]


def by_a_memo(x):
    @functools.cache
    def doubled():
        return x * 2.0

    return (doubled() + 1.0) * doubled()


def by_a_default(x):
    def f(t=x * 2.0):
        return t + 1.0

    return f() * f()


def by_an_array_of_objects(x):
    boxes, factors = np.empty((2, 1), object), np.empty(3, object)
    boxes[0, 0], boxes[1, 0] = x * 2.0, x * 3.0
    factors[0], factors[1], factors[2] = x * 1.0, x * 1.5, x * 2.0
    found = (boxes * 2.0) + factors
    return sum(((boxes + 1.0) * boxes).ravel().tolist()) + sum(found.ravel().tolist())


def by_a_saved_value(x):
    return (x * 2.0) * (x + 1.0) + (x * 2.0) / (x + 1.0)


def by_its_own_record(x):
    return (np.exp(x) + 1.0) * (2.0 - np.tanh(x)) - (-np.sqrt(x))


def by_an_argument(x):
    def f():
        return x

    return f() + 1.0


def by_an_array_of_the_users(x):
    return np.asarray(X, like=x) * x + np.asarray(X * 2.0, like=x) + 1.0


def by_a_written_array(x):
    t = x * 2.0
    t += 1.0
    t[3:5] = x[:2]
    u = t * 1.0
    u *= 2.0
    return (t + 1.0) * 2.0 - u


def by_a_place_in_an_array(x):
    o = np.zeros_like(x)
    o[1:] = x[:-1] * 2.0 + 1.0
    return (o + 1.0) * 2.0 + o


def by_a_conditional(x):
    return (x * 2.0 if x[0] > 0 else x * 3.0) + 1.0


def by_a_sum_of_two_uses(x):
    return (x * 2.0 + 1.0) * (x * 2.0 + 1.0) + (-(x * 2.0)) * 3.0


def by_functions(x):
    """Some call ufuncs by a name that is none, or once more with what they were given."""
    tanh = np.tanh
    t = np.exp(x * 0.5)
    u = tanh(x * 2.0) + PARTIAL(x * 3.0) + np.exp(x * 0.5, out=None) + np.sqrt(np.exp(x * 0.25)) * t
    v = by_a_second_use(x * 0.5) + np.cbrt(t) - np.tanh(t * x) / (np.exp(np.sin(x)) + np.exp(-x))
    return u * v + np.positive(x + 1.0) - np.tan(u * 0.1) + by_a_name_of_its_own(x * 2.0) - np.negative(u * v)


def by_views(x):
    """Views are the other operands, and some look at what would die."""

    def seen(t):
        KEPT.append(t[2:])
        return t

    def twice(t):
        return (t - t[::-1]) * t

    u = x[2:] - 2.0 * x[1:-1] + x[:-2] - (x[2:] / (x[1:-1] + 1.0) - x[1:-1])
    grid = x.reshape(8, -1)
    cross = grid[2:, 1:-1] + grid[:-2, 1:-1] - (grid[1:-1, 2:] + grid[1:-1, :-2] - 4.0 * grid[1:-1, 1:-1])
    t = x[1:] * 2.0
    v = (t + x[:-1]) * t[::-1] - (x[1:] + t[...]) + (seen(x * 2.0) - x[::-1])[1:] + twice(x * 0.5)[:-1]
    return np.concatenate([u * v[1:] + np.sum(cross.T * 0.5 + grid.T[1:-1, 1:-1]), x[:2]])


def by_a_second_use(x):
    return np.tanh(x) + x


def by_a_name_of_its_own(x):
    np = results_into_operands  # noqa: F841 - the name is another thing here
    return EXP(x * 0.5) + EXP(x) * x


PARTIAL, EXP = functools.partial(np.tanh), np.exp


def by_nobody_of_what_functions_give(x):
    u = x - np.roll(x, 1) + (1.0 - np.cumsum(x) * 0.01) - np.where(x > 0.5, x, 2.0)
    v = np.roll(x, 2) + u * (np.cos(x) - np.sin(x)) - (-np.concatenate([x[:3], x[3:]]))
    return +(x * 2.0) + u - abs(np.roll(v, 1) - x) - x.copy() / (np.flip(v) + 3.0)


def by_nobody(x):
    return np.tanh(x * 2.0 + 1.0) * (1.0 - x * 0.5) - (x * 0.5 - x / 3.0)


HOLDERS = [f for name, f in list(globals().items()) if name.startswith("by_")]
