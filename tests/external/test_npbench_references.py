"""The gradients that DaCe's tests of NPBench expect (github spcl/dace, ``tests/npbench``), found by ``pb.adopt`` on
the programs in these tests, where ``PULLBACK_DACE`` names a checkout.

Each test of theirs differentiates a program in NumPy by DaCe, and compares with JAX. Here it runs as it is, with
another module in the place of ``dace``, whose backward pass is ours; DaCe is not needed.
"""

import ast
import inspect
import os
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import MagicMock

import numpy as np
import pytest

import pullback as pb

CHECKOUT = Path(os.environ.get("PULLBACK_DACE", "no-checkout"))
FOUND = sorted((CHECKOUT / "tests" / "npbench").rglob("*_test.py"))
TESTS = [path for path in FOUND if "_autodiff():" in path.read_text(encoding="utf-8")]

pytestmark = pytest.mark.skipif(not TESTS, reason="PULLBACK_DACE names no checkout of DaCe")


class Symbol:
    """A size, which gets its value when a program is called."""

    def __init__(self, name, *_, **__):
        self.name = name

    def __add__(self, _):
        return None

    __sub__ = __mul__ = __radd__ = __rsub__ = __rmul__ = __floordiv__ = __add__


class Ranges:
    """``dace.map``: a range, written as a slice."""

    def __getitem__(self, bounds):
        return range(bounds.start, bounds.stop, bounds.step or 1)


class Kind:
    """A dtype, and with sizes an annotation."""

    def __init__(self, name):
        self.type = getattr(np, name, None)

    def __getitem__(self, sizes):
        return sizes if isinstance(sizes, tuple) else (sizes,)

    def __call__(self, value):
        return self.type(value)


class Program:
    """A function in NumPy, with its sizes and, once it is asked for, its gradient."""

    def __init__(self, f):
        self.f = self.__wrapped__ = f
        self.inputs = None

    def bind(self, args, names):
        """The sizes have these values, or those of the arrays."""
        values = dict(names)
        for parameter, arg in zip(inspect.signature(self.f).parameters.values(), args, strict=False):
            if isinstance(parameter.annotation, tuple):
                sized = zip(parameter.annotation, np.shape(arg), strict=False)
                values |= {size.name: n for size, n in sized if isinstance(size, Symbol)}
        self.f.__globals__.update(values)

    def __call__(self, *args, **kwargs):
        parameters = list(inspect.signature(self.f).parameters)
        given = dict(zip(parameters, args, strict=False)) | {k: v for k, v in kwargs.items() if k in parameters}
        args = [given[name] for name in parameters]
        self.bind(args, {k: v for k, v in kwargs.items() if k not in parameters and isinstance(v, int)})
        if self.inputs is None:
            return self.f(*args)
        places = [k for k, arg in enumerate(args) if np.asarray(arg).dtype.kind == "f"]

        def returned(*theta):
            taken = list(args)
            for k, value in zip(places, theta, strict=True):
                taken[k] = value
            return np.sum(self.f(*taken))

        found = pb.grad(returned, argnums=tuple(range(len(places))))(*[np.array(args[k]) for k in places])
        for name in self.inputs:
            kwargs[f"gradient_{name}"][...] = found[places.index(parameters.index(name))]
        return None

    def to_sdfg(self, *_, **__):
        return self


def add_backward_pass(sdfg, inputs, outputs, **_):
    """The gradient of what the program returns."""
    assert outputs == ["__return"]
    sdfg.inputs = inputs


def program(f=None, **_):
    return Program if f is None else Program(f)


def dace_for(source):
    """What stands for ``dace`` and all that is imported from it, and for pytest, whose marks there are not ours."""
    made = {"dace": ModuleType("dace"), "pytest": MagicMock()}
    for node in ast.walk(ast.parse(source)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
        for name in names:
            parts = name.split(".")
            for n in range(1, len(parts) + 1):
                if parts[0] == "dace":
                    made.setdefault(".".join(parts[:n]), MagicMock())
    made.setdefault("dace.autodiff", MagicMock()).add_backward_pass = add_backward_pass
    dace = made["dace"]
    dace.__path__ = []
    dace.map, dace.symbol, dace.program, dace.dtypes = Ranges(), Symbol, program, made.get("dace.dtypes", MagicMock())
    for name in "float32 float64 int8 uint8 int32 int64 uint32 complex64 complex128 bool".split():
        setattr(dace, name, Kind(name))
    dace.__getattr__ = lambda name: MagicMock()
    return made


@pytest.mark.slow
@pytest.mark.parametrize("path", TESTS, ids=lambda path: path.stem.removesuffix("_test"))
def test_a_gradient_is_the_one_expected(path, monkeypatch):
    pytest.importorskip("jax", reason="the references are jax programs")
    for name, module in dace_for(path.read_text(encoding="utf-8")).items():
        monkeypatch.setitem(sys.modules, name, module)
    copy = pb.adopt(path)
    [run] = [getattr(copy, name) for name in dir(copy) if name.startswith("run_") and name.endswith("_autodiff")]
    run()
