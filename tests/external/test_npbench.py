"""The programs of NPBench (github spcl/npbench), unmodified, through ``pb.adopt``, where ``PULLBACK_NPBENCH`` names a
checkout: the outputs of the copy have the bits of the original's, the gradient is that of differences, and every policy
gives the same bits."""

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest

import pullback as pb

CHECKOUT = Path(os.environ.get("PULLBACK_NPBENCH", "no-checkout"))
SIZES = {
    "stockham_fft": {"R": 2, "K": 4},
    "contour_integral": {"NR": 8, "NM": 10, "slab_per_bc": 2, "num_int_pts": 8},
    "resnet": {"N": 1, "W": 8, "H": 8, "C1": 8, "C2": 4},
    "conv2d_bias": {"N": 1, "C_in": 2, "C_out": 3, "K": 3, "H": 8, "W": 8},
    "cavity_flow": {"ny": 11, "nx": 11, "nt": 3, "nit": 3, "rho": 1.0, "nu": 0.1},
    "deriche": {"W": 8, "H": 8},
    "adi": {"TSTEPS": 3, "N": 8},
    "spmv": {"M": 30, "N": 30, "nnz": 60},
    "nbody": {"N": 5, "tEnd": 0.1, "dt": 0.02, "softening": 0.1, "G": 1.0},
    "azimint_hist": {"N": 50, "npt": 5},
    "azimint_naive": {"N": 50, "npt": 5},
    "jacobi_1d": {"TSTEPS": 4, "N": 12},
}
"""Sizes other than the small ones of the suite, cut to 9: a program asks for some relation between them."""
PROGRAMS = (
    "adi arc_distance atax azimint_hist azimint_naive bicg cavity_flow cholesky contour_integral correlation "
    "covariance covariance2 deriche durbin fdtd_2d gemm gemver gesummv go_fast gramschmidt hdiff heat_3d "
    "jacobi_1d jacobi_2d k2mm k3mm lu ludcmp mvt nbody seidel_2d spmv stockham_fft symm syr2k syrk trisolv trmm "
    "vadv "
).split()

pytestmark = pytest.mark.skipif(not CHECKOUT.is_dir(), reason="PULLBACK_NPBENCH names no checkout of NPBench")


def loaded(path):
    spec = importlib.util.spec_from_file_location(f"npbench_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copies(values):
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


class Program:
    """A program, what it is given, and the sum of its outputs with fixed weights."""

    def __init__(self, name):
        info = json.loads((CHECKOUT / "bench_info" / f"{name}.json").read_text())["benchmark"]
        folder = CHECKOUT / "npbench" / "benchmarks" / info["relative_path"]
        small = {k: min(v, 9) if isinstance(v, int) else v for k, v in info["parameters"]["S"].items()}
        values = small | SIZES.get(name, {})
        if info.get("init"):
            made = getattr(loaded(folder / f"{info['module_name']}.py"), info["init"]["func_name"])(*[
                values[key] for key in info["init"]["input_args"]
            ])
            names = info["init"]["output_args"]
            values |= dict(zip(names, made if len(names) > 1 else (made,), strict=True))
        path = folder / f"{info['module_name']}_numpy.py"
        self.original = getattr(loaded(path), info["func_name"])
        self.copy = getattr(pb.adopt(path), info["func_name"])
        self.args = [values[key] for key in info["input_args"]]
        self.written = [k for k, key in enumerate(info["input_args"]) if key in info["output_args"]]
        self.places = [k for k, value in enumerate(self.args) if np.asarray(value).dtype.kind in "fc"]
        self.theta = [self.args[k] for k in self.places]

    def total(self, function, *theta):
        args = copies(self.args)
        for k, value in zip(self.places, theta, strict=True):
            args[k] = value
        returned = function(*args)
        outs = [args[k] for k in self.written]
        outs += [] if returned is None else list(returned) if isinstance(returned, tuple | list) else [returned]
        draw, total = np.random.default_rng(1), 0.0
        for out in outs:
            if np.asarray(pb.value(out)).dtype.kind in "fc":
                total = total + np.sum(draw.normal(size=np.shape(out)) * (np.real(out) + np.imag(out)))
        return total


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_an_unmodified_program(name):
    program = Program(name)
    value = program.total(program.original, *copies(program.theta))
    assert np.asarray(program.total(program.copy, *copies(program.theta))).tobytes() == np.asarray(value).tobytes()
    places = tuple(range(len(program.theta)))
    gradient = pb.grad(lambda *theta: program.total(program.copy, *theta), argnums=places)
    found = gradient(*copies(program.theta))
    with pb.using(pb.Binomial(3)):
        again = gradient(*copies(program.theta))
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, again, strict=True))
    draw = np.random.default_rng(0)
    direction = [
        (draw.normal(size=np.shape(t)) * (np.abs(t) + 1e-3)).astype(np.asarray(t).dtype) for t in program.theta
    ]
    slope = sum(np.sum(np.real(g * d)) for g, d in zip(found, direction, strict=True))
    errors = []
    for h in (1e-4, 1e-5, 1e-6):
        ends = [
            program.total(program.original, *[t + sign * h * d for t, d in zip(program.theta, direction, strict=True)])
            for sign in (1, -1)
        ]
        errors.append(abs((ends[0] - ends[1]) / (2 * h) - slope) / (abs(slope) + 1e-12))
    assert min(errors) < 1e-6, errors
