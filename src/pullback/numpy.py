"""NumPy's functions that plain NumPy cannot hand to a tracer: ``from pullback import numpy as pnp``.

``np.array([t, t])``, ``np.full(n, t)``, ``np.r_[t]``, ``np.fromiter``, ``np.vectorize`` and ``np.float64(t)`` convert
their argument without asking it, so plain NumPy can only refuse a tracer there. This module has the same calls with the
same arguments. Without a tracer among these, a call is NumPy's. Every other name of this module is NumPy's own object
(``pnp.sin is np.sin``). Shape, dtype and errors are NumPy's, since NumPy computes the result on the values behind the
tracers first. An integer or boolean result is a plain array, as from ``astype``; an array of objects is refused.
"""

# ruff: noqa: PLC0414  X as X re-exports a name explicitly

from typing import Any

import numpy as np

from pullback.adopting.kinds.iterators import broadcast as broadcast
from pullback.adopting.kinds.iterators import ndenumerate as ndenumerate
from pullback.adopting.kinds.iterators import nditer as nditer
from pullback.adopting.kinds.matrices import asmatrix as asmatrix
from pullback.adopting.kinds.matrices import bmat as bmat
from pullback.adopting.kinds.matrices import matrix as matrix
from pullback.adopting.modules.numpy_calls import append as append
from pullback.adopting.modules.numpy_calls import arange as arange
from pullback.adopting.modules.numpy_calls import array as array
from pullback.adopting.modules.numpy_calls import asanyarray as asanyarray
from pullback.adopting.modules.numpy_calls import asarray as asarray
from pullback.adopting.modules.numpy_calls import asarray_chkfinite as asarray_chkfinite
from pullback.adopting.modules.numpy_calls import ascontiguousarray as ascontiguousarray
from pullback.adopting.modules.numpy_calls import asfortranarray as asfortranarray
from pullback.adopting.modules.numpy_calls import c_ as c_
from pullback.adopting.modules.numpy_calls import cdouble as cdouble
from pullback.adopting.modules.numpy_calls import clongdouble as clongdouble
from pullback.adopting.modules.numpy_calls import column_stack as column_stack
from pullback.adopting.modules.numpy_calls import complex64 as complex64
from pullback.adopting.modules.numpy_calls import complex128 as complex128
from pullback.adopting.modules.numpy_calls import concat as concat
from pullback.adopting.modules.numpy_calls import concatenate as concatenate
from pullback.adopting.modules.numpy_calls import copyto as copyto
from pullback.adopting.modules.numpy_calls import csingle as csingle
from pullback.adopting.modules.numpy_calls import double as double
from pullback.adopting.modules.numpy_calls import dstack as dstack
from pullback.adopting.modules.numpy_calls import fill_diagonal as fill_diagonal
from pullback.adopting.modules.numpy_calls import float16 as float16
from pullback.adopting.modules.numpy_calls import float32 as float32
from pullback.adopting.modules.numpy_calls import float64 as float64
from pullback.adopting.modules.numpy_calls import fromiter as fromiter
from pullback.adopting.modules.numpy_calls import frompyfunc as frompyfunc
from pullback.adopting.modules.numpy_calls import full as full
from pullback.adopting.modules.numpy_calls import full_like as full_like
from pullback.adopting.modules.numpy_calls import half as half
from pullback.adopting.modules.numpy_calls import hstack as hstack
from pullback.adopting.modules.numpy_calls import isscalar as isscalar
from pullback.adopting.modules.numpy_calls import longdouble as longdouble
from pullback.adopting.modules.numpy_calls import place as place
from pullback.adopting.modules.numpy_calls import put as put
from pullback.adopting.modules.numpy_calls import put_along_axis as put_along_axis
from pullback.adopting.modules.numpy_calls import putmask as putmask
from pullback.adopting.modules.numpy_calls import r_ as r_
from pullback.adopting.modules.numpy_calls import require as require
from pullback.adopting.modules.numpy_calls import single as single
from pullback.adopting.modules.numpy_calls import stack as stack
from pullback.adopting.modules.numpy_calls import vectorize as vectorize
from pullback.adopting.modules.numpy_calls import vstack as vstack

__all__ = [
    "append", "arange", "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray", "asfortranarray",
    "asmatrix", "bmat", "broadcast", "c_", "cdouble",
    "clongdouble", "column_stack", "complex64", "complex128", "concat", "concatenate", "copyto", "csingle", "double",
    "dstack",
    "fill_diagonal", "float16", "float32", "float64", "fromiter", "frompyfunc", "full", "full_like", "half", "hstack",
    "isscalar",
    "longdouble", "matrix", "ndenumerate", "nditer", "place", "put", "put_along_axis", "putmask", "r_", "require",
    "single", "stack", "vectorize",
    "vstack",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """NumPy's own object."""
    return getattr(np, name)


def __dir__() -> list[str]:
    """All of NumPy's names, those of this module among them."""
    return sorted({*dir(np), *__all__})
