"""Programs that keep numbers in lists and hand these to NumPy, as scripts do."""

import numpy as np
from numpy.linalg import norm

FUNCTIONS = {
    "sum": lambda t, parts, m: np.sum(parts),
    "mean": lambda t, parts, m: np.mean(parts),
    "max": lambda t, parts, m: np.max(parts),
    "norm": lambda t, parts, m: np.linalg.norm(parts),
    "dot": lambda t, parts, m: np.dot(parts, [1.0, 2, 3]),
    "cross": lambda t, parts, m: np.sum(np.cross(parts, [1.0, 2, 3])),
    "atleast_2d": lambda t, parts, m: np.sum(np.atleast_2d(parts) ** 2),
    "atleast_1d": lambda t, parts, m: np.sum(np.atleast_1d(parts) ** 2),
    "atleast_3d": lambda t, parts, m: np.sum(np.atleast_3d(parts) ** 2),
    "diag": lambda t, parts, m: np.sum(np.diag(parts) ** 2),
    "sqrt": lambda t, parts, m: np.sum(np.sqrt(parts)),
    "outer": lambda t, parts, m: np.sum(np.outer(parts, parts)),
    "det": lambda t, parts, m: np.linalg.det(m),
    "solve": lambda t, parts, m: np.sum(np.linalg.solve(m, [1.0, 2.0])),
    "inv": lambda t, parts, m: np.sum(np.linalg.inv(m)),
    "add": lambda t, parts, m: np.sum(np.add(parts, 1.0)),
    "where": lambda t, parts, m: np.sum(np.where([True, False, True], parts, 0.0)),
    "diff": lambda t, parts, m: np.sum(np.diff(parts) ** 2),
    "cumsum": lambda t, parts, m: np.sum(np.cumsum(parts) ** 2),
    "prod": lambda t, parts, m: np.prod(parts),
    "trapezoid": lambda t, parts, m: np.trapezoid(parts),
    "transpose": lambda t, parts, m: np.sum(np.transpose(m) ** 2),
    "reshape": lambda t, parts, m: np.sum(np.reshape(m, 4) ** 2),
    "ravel": lambda t, parts, m: np.sum(np.ravel(m) ** 2),
    "tile": lambda t, parts, m: np.sum(np.tile(parts, 2) ** 2),
    "repeat": lambda t, parts, m: np.sum(np.repeat(parts, 2) ** 2),
    "interp": lambda t, parts, m: np.interp(0.5, [0.0, 1.0, 2.0], parts),
    "clip": lambda t, parts, m: np.sum(np.clip(parts, 0.1, 0.5)),
    "polyval": lambda t, parts, m: np.polyval(parts, 0.3),
    "einsum": lambda t, parts, m: np.einsum("i,i", parts, parts),
    "kron": lambda t, parts, m: np.sum(np.kron(parts, parts)),
    "block": lambda t, parts, m: np.sum(np.block([[np.eye(2), np.zeros((2, 1))], [np.zeros((1, 2)), t]]) ** 2),
    "expand": lambda t, parts, m: np.sum(np.expand_dims(parts, 0) ** 2),
    "squeeze": lambda t, parts, m: np.sum(np.squeeze([parts]) ** 2),
    "mul_arr": lambda t, parts, m: np.sum(np.ones(3) * parts),
    "arr_add": lambda t, parts, m: np.sum(parts + np.ones(3)),
    "matmul": lambda t, parts, m: np.sum(np.ones((2, 3)) @ parts),
    "var": lambda t, parts, m: np.var(parts),
    "std": lambda t, parts, m: np.std(parts),
    "median": lambda t, parts, m: np.median(parts),
    "sort": lambda t, parts, m: np.sum(np.sort(parts) * [1.0, 2, 3]),
    "argmax": lambda t, parts, m: parts[np.argmax(parts)],
    "linspace": lambda t, parts, m: np.sum(np.linspace(t, 2 * t, 5) ** 2),
    "broadcast_to": lambda t, parts, m: np.sum(np.broadcast_to(parts, (2, 3)) ** 2),
    "maximum": lambda t, parts, m: np.sum(np.maximum(parts, 0.5)),
    "hypot": lambda t, parts, m: np.sum(np.hypot(parts, parts)),
    "allclose": lambda t, parts, m: t * np.allclose(parts, parts),
    "asum": lambda t, parts, m: sum(np.asarray(parts)),
    "average": lambda t, parts, m: np.average(parts, weights=[1.0, 2, 1]),
    "roll": lambda t, parts, m: np.sum(np.roll(parts, 1) * [1.0, 2, 3]),
    "split": lambda t, parts, m: np.sum(np.array_split(parts, 2)[0] ** 2),
    "meshgrid": lambda t, parts, m: np.sum(np.meshgrid(parts, parts)[0] ** 2),
    "nansum": lambda t, parts, m: np.nansum(parts),
    "vdot": lambda t, parts, m: np.vdot(parts, parts),
    "inner": lambda t, parts, m: np.inner(parts, parts),
    "tensordot": lambda t, parts, m: np.tensordot(parts, parts, 1),
    "fft": lambda t, parts, m: np.sum(np.abs(np.fft.fft(parts))),
    "histogram": lambda t, parts, m: t + np.histogram([1.0, 2.0])[0][0],
    "isfin": lambda t, parts, m: t * np.all(np.isfinite(parts)),
    "pad": lambda t, parts, m: np.sum(np.pad(parts, 1) ** 2),
    "flip": lambda t, parts, m: np.sum(np.flip(parts) * [1.0, 2, 3]),
    "trace": lambda t, parts, m: np.trace(m),
    "triu": lambda t, parts, m: np.sum(np.triu(m)),
    "cov": lambda t, parts, m: np.sum(np.cov(parts)),
    "gradient": lambda t, parts, m: np.sum(np.gradient(parts) ** 2),
    "shape": lambda t, parts, m: t * np.shape(parts)[0],
    "size": lambda t, parts, m: t * np.size(parts),
    "ndim": lambda t, parts, m: t * np.ndim(m),
    "angle": lambda t, parts, m: np.sum(np.angle(parts)),
    "real": lambda t, parts, m: np.sum(np.real(parts)),
    "abs": lambda t, parts, m: np.sum(np.abs(parts)),
    "nested": lambda t, parts, m: np.sum(np.array([np.array([t, 1.0]), [2.0, t]]) ** 2),
    "norm by its name": lambda t, parts, m: norm(parts),
    "of a keyword": lambda t, parts, m: np.average(np.arange(3.0), weights=parts),
    "out": lambda t, parts, m: np.sum(np.multiply(parts, 2.0, out=np.zeros(3))),
}


def run(t, name):
    return FUNCTIONS[name](t, [t, 2 * t, t * t], [[t, 1.0], [0.5, t]])


def written(t):
    a, b = np.zeros(3), np.zeros((2, 2))
    a[:] = [t, 2 * t, 1.0]
    b[0] = [1.0, t]
    b[1, :] = (t, t)
    a -= [0.1, t, t]
    return np.sum(a**2) + np.sum(b**2)
