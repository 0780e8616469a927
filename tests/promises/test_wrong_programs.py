"""Programs that people write who come from PyTorch, JAX, autograd or SciPy, and that cannot be differentiated as they
stand: each gets an error that names what to write, and what it names runs. None gives a wrong number in silence.

Each line: the program, the error, words of it, and the program that the words tell to write, with its gradient.
"""

# ruff: noqa: PLW0108, UP031 - the call must stand in this file, where its expression is read

import decimal
import functools
import io
import json
import math
import pickle
import statistics
import struct

import numpy as np
import pytest
from tests.programs.wrong import ONE, VALUE, X, require_told

import pullback as pb
from pullback import numpy as pnp

C, N, U = pb.ConversionError, pb.NotDifferentiableError, pb.UnknownFunctionError


def no_return(x):
    np.sum(x)


def with_plain_state(x):
    u = np.ones(3)
    for _ in pb.steps(3):
        u[:] = u * x
    return np.sum(u)


def with_traced_state(x):
    u = np.array(np.ones(3), like=x)
    for _ in pb.steps(3):
        u[:] = u * x
    return np.sum(u)


def added_to_a_plain_state(x):
    u = np.zeros(3)
    for _ in pb.steps(3):
        u += x
    return np.sum(u)


def rows(x):
    table = np.empty((2, 3))
    table[0] = x
    return np.sum(table)


def updated(x):
    y = x.copy()
    y[0] = 5.0
    return np.sum(y)


IN_NUMPY = {
    "np.sum of a list": (
        lambda x: np.sum([x[0], x[1]]),
        C,
        r"write np\.sum\(np\.stack\(\[x\[0\], x\[1\]\]\)\)",
        lambda x: np.sum(np.stack([x[0], x[1]])),
        [1, 1, 0],
    ),
    "np.max of a list": (
        lambda x: np.max([x[0], x[1]]),
        C,
        r"np\.max\(np\.stack\(",
        lambda x: np.max(np.stack([x[0], x[1]])),
        [0, 1, 0],
    ),
    "np.mean of a comprehension": (
        lambda x: np.mean([v * v for v in x]),
        C,
        r"write np\.mean\(np\.stack\(\[v \* v for v in x\]\)\)",
        lambda x: np.mean(np.stack([v * v for v in x])),
        2 * X / 3,
    ),
    "np.dot of lists": (
        lambda x: np.dot([x[0], x[1]], [1.0, 2.0]),
        C,
        r"np\.dot\(np\.stack\(\[x\[0\], x\[1\]\]\), \[1\.0, 2\.0\]\)",
        lambda x: np.dot(np.stack([x[0], x[1]]), [1.0, 2.0]),
        [1, 2, 0],
    ),
    "np.prod of nested lists": (
        lambda x: np.prod([[x[0], x[1]], [x[1], x[2]]]),
        C,
        r"np\.prod\(pnp\.array\(\[\[.*from pullback import numpy as pnp",
        lambda x: np.prod(pnp.array([[x[0], x[1]], [x[1], x[2]]])),
        [12, 12, 4],
    ),
    "np.linalg.det of lists": (
        lambda x: np.linalg.det([[x[0], 0.0], [0.0, x[1]]]),
        C,
        r"np\.linalg\.det\(pnp\.array\(",
        lambda x: np.linalg.det(pnp.array([[x[0], 0.0], [0.0, x[1]]])),
        [2, 1, 0],
    ),
    "np.sum(axis=) of arrays": (
        lambda x: np.sum([x, x], axis=0)[0],
        C,
        r"np\.sum\(np\.stack\(\[x, x\]\), axis=0\)",
        lambda x: np.sum(np.stack([x, x]), axis=0)[0],
        [2, 0, 0],
    ),
    "np.array of a list": (
        lambda x: np.sum(np.array([x[0], x[1]])),
        C,
        r"np\.stack\(\[\.\.\.\]\)",
        lambda x: np.sum(np.array([x[0], x[1]], like=x)),
        [1, 1, 0],
    ),
    "np.concatenate of scalars": (
        lambda x: np.sum(np.concatenate([x[0], x[1]])),
        ValueError,
        r"zero-dimensional arrays cannot be concatenated; join scalars with np\.stack",
        lambda x: np.sum(np.stack([x[0], x[1]])),
        [1, 1, 0],
    ),
    "np.ndenumerate": (
        lambda x: sum(v * v for _, v in np.ndenumerate(x)),
        C,
        r"for i in np\.ndindex\(x\.shape\)",
        lambda x: sum(x[i] * x[i] for i in np.ndindex(x.shape)),
        2 * X,
    ),
    "np.nditer": (
        lambda x: sum(v * v for v in np.nditer(x)),
        TypeError,
        r"iterate over x\.flat",
        lambda x: sum(v * v for v in x.flat),
        2 * X,
    ),
    "np.nditer over several": (
        lambda x: sum(v * w for v, w in np.nditer([x, X])),
        (C, TypeError),
        r"x\.flat",
        lambda x: sum(v * w for v, w in zip(x.flat, X.flat, strict=True)),
        X,
    ),
    "np.sum(initial=)": (
        lambda x: np.sum(ONE, initial=x[0]),
        C,
        r"write np\.sum\(np\.array\(ONE, like=x\[0\]\), initial=x\[0\]\)",
        lambda x: np.sum(np.array(ONE, like=x[0]), initial=x[0]),
        [1, 0, 0],
    ),
    "np.max(initial=)": (
        lambda x: np.max(ONE, initial=x[1]),
        C,
        r"np\.max\(np\.array\(ONE, like=x\[1\]\), initial=x\[1\]\)",
        lambda x: np.max(np.array(ONE, like=x[1]), initial=x[1]),
        [0, 1, 0],
    ),
    "np.multiply.reduce(initial=)": (
        lambda x: np.multiply.reduce(2 * ONE, initial=x[1]),
        C,
        r"np\.multiply\.reduce\(np\.array\(2 \* ONE, like=x\[1\]\), initial=x\[1\]\)",
        lambda x: np.multiply.reduce(np.array(2 * ONE, like=x[1]), initial=x[1]),
        [0, 8, 0],
    ),
    "plain.sum(initial=)": (
        lambda x: ONE.sum(initial=x[0]),
        C,
        r"write np\.array\(ONE, like=x\[0\]\)\.sum\(initial=x\[0\]\)",
        lambda x: np.array(ONE, like=x[0]).sum(initial=x[0]),
        [1, 0, 0],
    ),
    "where= of floats": (
        lambda x: np.sum(ONE, where=x) * x[0],
        TypeError,
        r"to dtype\('bool'\)",
        lambda x: np.sum(ONE, where=x > 1) * x[0],
        [2, 0, 0],
    ),
    "a plain state under steps": (
        with_plain_state,
        C,
        r"or with np\.array\(u0, like=x\) where it begins with values",
        with_traced_state,
        3 * X**2,
    ),
    "a sum into a plain state": (
        added_to_a_plain_state,
        C,
        r"np\.array\(u0, like=x\)",
        with_traced_state,
        3 * X**2,
    ),
    "rows of a plain table": (rows, C, r"np\.zeros\(shape, like=x\)", lambda x: np.sum(np.stack([x])), ONE),
    "np.zeros(x)": (
        lambda x: np.sum(np.zeros(x[2])) + x[0],
        TypeError,
        r"int\(pullback\.value\(x\)\)",
        lambda x: np.sum(np.zeros(int(pb.value(x[2])))) + x[0],
        [1, 0, 0],
    ),
    "reshape to a float": (
        lambda x: np.sum(x.reshape(x[2])),
        C,
        r"int\(pullback\.value\(x\)\)",
        lambda x: np.sum(x.reshape(int(pb.value(x[2])))),
        ONE,
    ),
    "a slice to a float": (
        lambda x: np.sum(x[: x[1]]),
        C,
        r"int\(pullback\.value\(x\)\)",
        lambda x: np.sum(x[: int(pb.value(x[1]))]),
        [1, 1, 0],
    ),
    "np.vectorize": (
        lambda x: np.sum(np.vectorize(lambda v: v * v)(x)),
        C,
        r"pnp\.vectorize",
        lambda x: np.sum(pnp.vectorize(lambda v: v * v)(x)),
        2 * X,
    ),
    "np.frompyfunc": (
        lambda x: np.sum(np.frompyfunc(lambda v: v * v, 1, 1)(x)),
        U,
        "write it with functions that have one",
        lambda x: np.sum(x * x),
        2 * X,
    ),
    "np.fromiter": (
        lambda x: np.sum(np.fromiter((v * v for v in x), float)),
        C,
        r"pnp\.fromiter",
        lambda x: np.sum(pnp.fromiter((v * v for v in x), float)),
        2 * X,
    ),
    "np.save": (
        lambda x: np.save(io.BytesIO(), x) or x[0],
        U,
        rf"a file keeps no derivative; write {VALUE}",
        lambda x: np.save(io.BytesIO(), pb.value(x)) or x[0],
        [1, 0, 0],
    ),
    "np.random.normal": (
        lambda x: np.random.default_rng(0).normal(x[0]),
        C,
        r"loc \+ scale \* rng\.normal",
        lambda x: x[0] + np.random.default_rng(0).normal(),
        [1, 0, 0],
    ),
    "np.testing": (
        lambda x: np.testing.assert_allclose(x, X) or x[0],
        C,
        VALUE,
        lambda x: np.testing.assert_allclose(pb.value(x), X) or x[0],
        [1, 0, 0],
    ),
    "a masked array": (
        lambda x: np.ma.masked_array(x, mask=[1, 0, 0]).sum(),
        C,
        r"np\.where\(mask, other, x\)",
        lambda x: np.sum(np.where([True, False, False], 0.0, x)),
        [0, 1, 1],
    ),
    "np.where of a comparison as a test": (
        lambda x: np.sum(x) if x > 0 else x[0],
        ValueError,
        r"Use a\.any\(\) or a\.all\(\)",
        lambda x: np.sum(np.where(x > 0, x, x[0])),
        ONE,
    ),
}
IN_PYTHON = {
    "%g": (
        lambda x: ("%g" % x[0]) and x[0],
        C,
        r"write float\(pullback\.value\(x\)\), or f\"\{x:g\}\"",
        lambda x: f"{x[0]:g}" and ("%g" % float(pb.value(x[0]))) and x[0],
        [1, 0, 0],
    ),
    "%d": (
        lambda x: ("%d" % x[0]) and x[0],
        TypeError,
        r"write float\(pullback\.value\(x\)\)",
        lambda x: ("%d" % float(pb.value(x[0]))) and x[0],
        [1, 0, 0],
    ),
    "%g of several": (
        lambda x: ("%g %g" % (x[0], x[1])) and x[0],
        C,
        r"write float\(pullback\.value\(x\)\)",
        lambda x: f"{x[0]:g} {x[1]:g}" and x[0],
        [1, 0, 0],
    ),
    "float": (lambda x: float(x[0]), C, "keep it an array", lambda x: x[0], [1, 0, 0]),
    "int": (lambda x: x[int(x[0])], C, r"int\(pullback\.value\(x\)\)", lambda x: x[int(pb.value(x[0]))], [0, 1, 0]),
    "range": (
        lambda x: sum(x[0] for _ in range(x[2])),
        C,
        r"int\(pullback\.value\(x\)\)",
        lambda x: sum(x[0] for _ in range(int(pb.value(x[2])))),
        [3, 0, 0],
    ),
    "math.sin": (lambda x: math.sin(x[0]), C, r"np\.sin\(x\)", lambda x: np.sin(x[0]), [np.cos(1.0), 0, 0]),
    "math.sqrt": (lambda x: math.sqrt(x[0]), C, r"np\.sqrt\(x\)", lambda x: np.sqrt(x[0]), [0.5, 0, 0]),
    "statistics.mean": (
        lambda x: statistics.mean([x[0], x[1]]),
        TypeError,
        r"NumPy function on np\.stack",
        lambda x: np.mean(np.stack([x[0], x[1]])),
        [0.5, 0.5, 0],
    ),
    "json": (
        lambda x: json.dumps({"a": x[0]}) and x[0],
        TypeError,
        VALUE,
        lambda x: json.dumps({"a": float(pb.value(x[0]))}) and x[0],
        [1, 0, 0],
    ),
    "pickle": (
        lambda x: pickle.dumps(x) and x[0],
        C,
        VALUE,
        lambda x: pickle.dumps(pb.value(x)) and x[0],
        [1, 0, 0],
    ),
    "Decimal": (
        lambda x: decimal.Decimal(x[0]) and x[0],
        TypeError,
        VALUE,
        lambda x: decimal.Decimal(float(pb.value(x[0]))) and x[0],
        [1, 0, 0],
    ),
    "struct": (
        lambda x: struct.pack("d", x[0]) and x[0],
        struct.error,
        "not a float",
        lambda x: struct.pack("d", float(pb.value(x[0]))) and x[0],
        [1, 0, 0],
    ),
    "join": (
        lambda x: ",".join(x) and x[0],
        TypeError,
        VALUE,
        lambda x: ",".join(map(str, pb.value(x))) and x[0],
        [1, 0, 0],
    ),
    "a set": (
        lambda x: x[0] * len({x[0], x[1]}),
        C,
        r"float\(pullback\.value\(x\)\)",
        lambda x: x[0] * len(set(pb.value(x).tolist())),
        [3, 0, 0],
    ),
    "a memoised function": (
        lambda x: functools.lru_cache(lambda v: v * v)(x[0]),
        C,
        r"f\.__wrapped__\(x\)",
        lambda x: functools.lru_cache(lambda v: v * v).__wrapped__(x[0]),
        [2, 0, 0],
    ),
    "x.numpy()": (lambda x: x.numpy()[0], AttributeError, VALUE, lambda x: x[0] * pb.value(x)[1], [2, 0, 0]),
    "x.detach()": (lambda x: x.detach()[0], AttributeError, VALUE, lambda x: x[0] * pb.value(x)[1], [2, 0, 0]),
    "x.at[].set": (
        lambda x: np.sum(x.at[0].set(5.0)),
        AttributeError,
        r"y = x\.copy\(\), then y\[i\] = value",
        updated,
        [0, 1, 1],
    ),
    "x.backward": (lambda x: x.backward(), AttributeError, r"pullback\.grad\(f\)\(x\)", np.sum, ONE),
    "x.requires_grad": (lambda x: x.requires_grad, AttributeError, r"pullback\.grad\(f\)\(x\)", np.sum, ONE),
    "x.append": (
        lambda x: x.append(1.0),
        AttributeError,
        r"np\.append\(x, y\)",
        lambda x: np.sum(np.append(x, 1.0)),
        ONE,
    ),
    "x.tobytes": (
        lambda x: x.tobytes() and x[0],
        AttributeError,
        VALUE,
        lambda x: pb.value(x).tobytes() and x[0],
        [1, 0, 0],
    ),
    "~x": (lambda x: ~x, TypeError, VALUE, lambda x: np.sum(-x), -ONE),
    "no return": (no_return, N, r"no_return returned None.*is its return missing", np.sum, ONE),
    "a comparison": (lambda x: x[0] > 1, N, r"returned dtype bool", lambda x: x[0], [1, 0, 0]),
    "argmax": (lambda x: np.argmax(x), N, r"returned dtype int64.*leave out what makes it so", np.max, [0, 0, 1]),
    "a pair": (lambda x: (np.sum(x), {}), N, r"pass has_aux=True", np.sum, ONE),
    "a list": (lambda x: [x[0]], N, r"returned a list; sum it", lambda x: x[0], [1, 0, 0]),
}


@pytest.mark.parametrize("name", IN_NUMPY)
def test_a_wrong_program_of_numpy_is_told_what_to_write(name):
    require_told(IN_NUMPY[name])


@pytest.mark.parametrize("name", IN_PYTHON)
def test_a_wrong_program_of_python_is_told_what_to_write(name):
    require_told(IN_PYTHON[name])
