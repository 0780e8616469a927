"""Random NumPy programs as source text: the table of lines, and how Hypothesis makes programs of them.

A template is a line as a user writes it, with holes: ``{a}`` and ``{b}`` are values so far, ``{t}`` an array that is written to, ``{s}``
what is written, the other holes are the choices of :data:`HOLES`. A line is kept if NumPy takes it and its result stays small.
"""

import math
import string
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.util import find_spec
from random import Random
from types import CodeType
from typing import Any

import numpy as np
from attrs import evolve, frozen
from hypothesis import strategies as st

from pullback.testing.bits import twin

VALUES = {
    "elementwise": """
        np.sin({a})|np.cos({a})|np.tan(0.3 * {a})|np.arctan({a})|np.sinh({a})|np.cosh({a})|np.tanh({a})|np.arcsinh({a})|np.exp({a})
        np.exp2({a})|np.expm1({a})|np.square({a})|np.negative({a})|np.positive({a})|np.abs({a})|np.fabs({a})|np.conjugate({a})|{a}.conj()
        np.real({a})|{a}.real|np.imag({a})|{a}.imag|np.angle({a})|np.sinc({a})|np.i0({a})|np.cbrt({a})|np.deg2rad({a})|np.degrees({a})
        np.nan_to_num({a})|np.modf({a})[0]|np.frexp({a})[0]|np.ldexp({a}, 2)|np.unwrap({a})|np.real_if_close({a})|np.spacing({a})
        np.log({p})|np.log2({p})|np.log10({p})|np.log1p({p})|np.sqrt({p})|np.reciprocal({p})|np.arccosh({p} + 1)|np.emath.sqrt({a})
        np.emath.log({p})|np.arcsin({u})|np.arccos({u})|np.arctanh({u})|np.sign({a})|np.floor({a})|np.ceil({a})|np.rint({a})|np.trunc({a})
        np.round({a}, 1)|np.heaviside({a}, 0.5)|-{a}|+{a}|abs({a})|{a} ** 2|{a} ** 3|{a} ** {n}|{p} ** {n}|{n} ** {a}|{p} ** -0.5
        np.exp({a}, dtype=np.float64)|np.multiply({a}, 2, dtype=np.complex128)|{a} * {a}|{a} - {a}|1 / (1 + np.exp(-{a}))
    """,
    "two": """
        {a} + {b}|{a} - {b}|{a} * {b}|{a} / {p}|{p} ** {b}|{a} % {p}|{a} // {p}|{a} + {n}|{n} - {a}|{n} * {a}|{a} / {n}|{n} / {p}|{a} % {n}
        np.add({a}, {b})|np.subtract({a}, {b})|np.multiply({a}, {b})|np.divide({a}, {p})|np.true_divide({b}, {p})|np.power({p}, {b})
        np.float_power({p}, {b})|np.maximum({a}, {b})|np.minimum({a}, {b})|np.fmax({a}, {b})|np.fmin({a}, {b})|np.logaddexp({a}, {b})
        np.logaddexp2({a}, {b})|np.arctan2({a}, {b})|np.hypot({a}, {b})|np.remainder({b}, {p})|np.mod({a}, {n})|np.fmod({b}, {p})
        np.copysign({a}, {b})|divmod({b}, {p})[1]|np.divmod({b}, {p})[0]|np.floor_divide({b}, {p})|np.maximum({a}, {n})|np.minimum({n}, {a})
        np.where({mask}, {a}, {b})|np.where({mask}, {a}, {n})|np.where({mask}, {n}, {b})|np.clip({a}, {n}, 1.2)|np.clip({a}, -0.7, None)
        {a}.clip(-0.5, 0.5)|np.clip({a}, {b}, {b} + 1)|np.clip({a}, min=-1)|np.select([{mask}, {a} < 0.6], [{a}, {b}], {n})
        np.select([{a} > 0.5, {mask}], [{b}, {a} * 2])|np.choose(({mask}) * 1, [{a}, {b}])|np.piecewise({a}, [{a} > 0], [np.sin, {n}])
        np.add({a}, {b}, out=np.zeros_like({a}), where={mask})|np.multiply.outer({a}, {b})|np.add.outer({a}, {b})|np.outer({a}, {b})
        np.multiply({a}, {b}, out=np.ones_like({a}))|np.float32(1.5) * {a}|1j * {a}|{a} * True|{a} * k0|{a} + k0|{a} * m0|{a} * [0.5, 2, 1]
        np.maximum({a}, [0.5, -0.5, 0.1])|k0 / {p}|m0 + {a}|np.where(m0, {a}, k0)
    """,
    "reductions": """
        np.sum({a})|{a}.sum()|np.sum({a}, axis={axis})|np.sum({a}, axis={axis}, keepdims={flag})|{a}.sum(axis={axis}, keepdims={flag})
        np.sum({a}, axis={axis}, initial={n})|np.sum({a}, axis={axis}, where={mask})|np.sum({a}, axis={axis}, dtype={real})
        np.mean({a}, axis={axis}, keepdims={flag})|{a}.mean({axis})|np.mean({a}, axis={axis}, where={mask})|np.mean({a}, dtype={real})
        np.prod({a}, axis={axis}, keepdims={flag})|np.prod({a}, axis={axis}, initial={n}, where={mask})|{a}.prod()
        np.max({a}, axis={axis}, keepdims={flag})|np.max({a}, axis={axis}, initial={n})|np.max({a}, axis={axis}, initial=-2, where={mask})
        np.min({a}, axis={axis}, keepdims={flag})|{a}.min({axis})|np.min({a}, axis={axis}, initial={n})|np.amax({a}, {axis})|{a}.max()
        np.ptp({a}, axis={axis}, keepdims={flag})|np.var({a}, axis={axis}, keepdims={flag})|np.var({a}, axis={axis}, ddof=1)
        np.std({a}, axis={axis}, keepdims={flag})|np.std({a}, ddof=1)|{a}.std({axis})|{a}.var()|np.var({a}, axis={axis}, where={mask})
        np.average({a}, axis={axis})|np.average({a}, weights={p})|np.average({a}, axis={one}, weights=np.abs({a}) + 0.1)
        np.add.reduce({a}, axis={axis})|np.multiply.reduce({a}, axis={axis})|np.maximum.reduce({a}, axis={axis})
        np.logaddexp.reduce({a}, axis={one})|np.hypot.reduce({a}, axis={one})|np.subtract.reduce({a}, axis={one})
        np.add.reduceat({a}, [0, 1], axis={one})|np.multiply.reduceat({a}, [1, 0], axis={one})|np.argmax({a}, axis={one})|np.argmin({a})
        np.nansum({a}, axis={axis})|np.nanmean({a}, axis={axis}, keepdims={flag})|np.nanmax({a}, axis={axis})|np.nanstd({a}, axis={axis})
        np.nanprod({a}, axis={axis})|np.any({a} > 0, axis={axis})|np.count_nonzero({a} > 0)|np.all({a} > -1)|np.nanmin({a})
        np.trapezoid({a}, axis={one})|np.trapezoid({a}, dx=0.3)|np.cov({a})|np.corrcoef({a})|np.bincount([0, 1, 0], weights={a})
    """,
    "scans": """
        np.cumsum({a})|np.cumsum({a}, axis={one})|{a}.cumsum({one})|np.cumprod({a})|np.cumprod({a}, axis={one})|{a}.cumprod({one})
        np.cumulative_sum({a}, axis={one}, include_initial={flag})|np.cumulative_prod({a}, axis={one}, include_initial={flag})
        np.add.accumulate({a}, axis={one})|np.multiply.accumulate({a})|np.maximum.accumulate({a}, axis={one})|np.minimum.accumulate({a})
        np.logaddexp.accumulate({a}, axis={one})|np.nancumsum({a}, axis={one})|np.diff({a})|np.diff({a}, axis={one})|np.diff({a}, n=2)
        np.diff({a}, prepend={n})|np.ediff1d({a})|np.gradient({a}, axis={one})|np.gradient({a}, 0.5, axis={one}, edge_order=2)
        np.convolve({a}, {b})|np.convolve({a}, {b}, "same")|np.correlate({a}, {b}, "valid")|np.correlate({a}, {b}, "full")
        np.interp({a}, [-1, 0, 1], [0.2, 0.9, 0.4])|np.interp({a}, np.arange({b}.size) - 1, {b})|np.polyval({a}, 0.7)|np.polyval([1, -2, 3], {a})
        np.subtract.accumulate({a}, axis={one})|np.cross({a}, {b})
    """,
    "sorting": """
        np.sort({a})|np.sort({a}, axis={one})|np.sort({a}, axis=None)|np.partition({a}, 1)|np.partition({a}, -1, axis={one})
        np.median({a})|np.median({a}, axis={axis}, keepdims={flag})|np.quantile({a}, 0.3)|np.quantile({a}, [0.25, 0.6], axis={axis})
        np.percentile({a}, 35, axis={axis}, keepdims={flag})|np.quantile({a}, 0.4, axis={one}, method={method})|np.nanmedian({a}, axis={axis})
        {a}[np.argsort({a})]|np.take_along_axis({a}, np.argsort({a}, axis={one}), axis={one})|np.sort_complex({a})|np.unique({a})
        np.take_along_axis({a}, np.argmax({a}, axis={one}, keepdims=True), {one})|np.argsort({a}, axis={one})|np.searchsorted([-1, 0, 1], {a})
        np.take_along_axis({a}, np.array([[0], [1]]), axis={one})|np.unique_values({a})|{a}[np.argmax({a})]|np.nanquantile({a}, 0.3, axis={axis})
        np.union1d({a}, {b})|np.histogram([0.1, 0.5, 0.6], bins=2, weights={a})[0]|{a}[np.lexsort(({a},))]
    """,
    "shaping": """
        {a}.T|{a}.ravel()|{a}.ravel("F")|{a}.flatten()|{a}.reshape(-1)|{a}.reshape({shape})|np.reshape({a}, {shape}, order="F")|np.ravel({a}, "K")
        np.transpose({a})|np.transpose({a}, {perm})|{a}.transpose({perm})|np.swapaxes({a}, 0, -1)|{a}.swapaxes(-1, 0)|np.moveaxis({a}, 0, -1)
        np.rollaxis({a}, -1)|np.expand_dims({a}, {one})|np.expand_dims({a}, (0, -1))|np.squeeze({a})|{a}.squeeze()|np.atleast_2d({a})
        np.atleast_1d({a})|np.atleast_3d({a})|np.broadcast_to({a}, (2, *np.shape({a})))|np.broadcast_to({a}, (3, 3))|np.flip({a})|np.flip({a}, {one})
        np.broadcast_arrays({a}, {b})[0] * 1|np.fliplr({a})|np.flipud({a})|np.rot90({a})|np.rot90({a}, 3)|{a}.copy()|np.copy({a})|{a}.mT
        {a}.astype({real})|{a}.astype(complex)|{a}.astype(int)|np.astype({a}, np.float64)|np.diagonal({a})|{a}.diagonal(1)|np.diag({a})|np.diag({a}, -1)
        np.diagflat({a})|np.tril({a})|np.triu({a}, 1)|np.trace({a})|{a}.trace(1)|np.vander({a}, 3)|np.meshgrid({a}, {b})[1]|np.squeeze({a}, axis={one})
        np.lib.stride_tricks.sliding_window_view({a}, 2, axis={one})|np.permute_dims({a}, {perm})
        np.matrix_transpose({a})|np.zeros_like({a})|np.ones_like({a})|np.full_like({a}, {n})|np.zeros((2, 3), like={a})|np.empty_like({a}) * 0 + 1
    """,
    "joining": """
        np.concatenate([{a}, {b}])|np.concatenate([{a}, {b}], axis={one})|np.concatenate([{a}, {b}], axis=None)|np.stack([{a}, {b}])
        np.stack([{a}, {b}, {a}], axis={one})|np.vstack([{a}, {b}])|np.hstack([{a}, {b}])|np.dstack([{a}, {b}])|np.column_stack([{a}, {b}])
        np.block([{a}, {b}])|np.block([[{a}, {a}], [{b}, {b}]])|np.append({a}, {b})|np.append({a}, {n})|np.insert({a}, 1, {n})
        np.insert({a}, [0, 1], {n}, axis={one})|np.delete({a}, 0)|np.delete({a}, [0, -1], axis={one})|np.split({a}, 3)[1]|np.hsplit({a}, 3)[0]
        np.array_split({a}, 2, axis={one})[1]|np.vsplit({a}, [1])[1]|np.pad({a}, 1)|np.pad({a}, 1, constant_values={n})|np.pad({a}, 1, mode={pad})
        np.pad({a}, (1, 2), mode={pad})|np.pad({a}, 1, mode="linear_ramp", end_values={n})|np.roll({a}, 1)|np.roll({a}, -1, axis={one})
        np.roll({a}, (1, 2), axis=(0, 1))|np.tile({a}, 2)|np.tile({a}, (2, 1))|np.repeat({a}, 2)|np.repeat({a}, 2, axis={one})|{a}.repeat(2, {one})
        np.repeat({a}, [1, 0, 2], axis={one})|np.resize({a}, (2, 3))|np.trim_zeros({a})|np.unstack({a})[0]|np.stack([r * r for r in {a}])
        sum(r * 0.5 for r in {a})|np.apply_along_axis(np.cumsum, {one}, {a})|np.apply_over_axes(np.sum, {a}, (0, -1))|np.stack([{a}[0], {a}[-1]])
    """,
    "indexing": """
        {a}[{key}]|{a}[{key}]|{a}[{key}]|{a}[{view}]|{a}[{view}]|{a}[{view}]|{a}[{mask}]|{a}[:, m0]|{a}[0][0]|{a}[1:][::-1]|{a}.T[{view}]
        np.take({a}, [0, -1, 0])|np.take({a}, [[0, 1], [1, 0]], axis={one})|{a}.take(1)|np.take({a}, [0, 5], mode="clip")|np.compress([True, False, True], {a})
        np.compress([False, True], {a}, axis={one})|np.extract({mask}, {a})|{a}.flat[1]|{a}.flat[[0, 0, 1]]|{a}.item(0)|{a}[k0]|{a}[..., k0]
        {a}[np.nonzero({mask})]|{a}[np.where({a} > 0)]|{a}[np.diag_indices(2)]|{a}[np.ix_([0, 1], [1, 0])]|{a}[np.unravel_index(1, {a}.shape)]
    """,
    "likewise plain": """
        {a} > {b}|{a} > 0|{a} <= {n}|np.isfinite({a})|np.isclose({a}, {b})|np.shape({a})[0]|len({a})|{a}.ndim|np.zeros((2, 3))|np.arange(3)
    """,
}
LINALG = """
    {a} @ {b}|{a} @ {a}.T|np.matmul({a}, {b})|np.dot({a}, {b})|{a}.dot({b})|np.inner({a}, {b})|np.vdot({a}, {b})|np.tensordot({a}, {b}, 1)
    np.tensordot({a}, {b}, axes=([0], [0]))|np.kron({a}, {b})|np.einsum("ij,jk->ik", {a}, {b})|np.einsum("i,i", {a}, {b})|np.einsum("ii", {a})
    np.einsum("...i,...i->...", {a}, {b})|np.einsum("ij->j", {a})|np.einsum("ij,kj->ik", {a}, {a})|np.einsum({a}, [0, 1], [1, 0])
    np.linalg.solve({spd}, {b})|np.linalg.inv({spd})|np.linalg.det({spd})|np.linalg.slogdet({spd})[1]|np.linalg.cholesky({spd})
    np.linalg.norm({a})|np.linalg.norm({a}, axis={one}, keepdims={flag})|np.linalg.norm({a}, ord={order})|np.linalg.norm({a}, {order}, axis={one})
    np.linalg.eigvalsh({spd})|np.linalg.svd({a}, compute_uv=False)|np.linalg.pinv({spd})|np.linalg.matrix_power({a}, 2)|np.vecdot({a}, {b})
    np.linalg.multi_dot([{a}, {b}, {a}])|np.matvec({a}, {b})|np.linalg.lstsq({spd}, {b})[0]|np.linalg.vector_norm({a})|np.linalg.det({a})
"""
FFT = """
    np.fft.fft({a})|np.fft.ifft({a}, axis={one})|np.fft.rfft({a})|np.fft.irfft({a})|np.fft.fft({a}, n=4, norm="ortho")|np.fft.rfft({a}, n=2)
    np.fft.fft2({a})|np.fft.irfft({a}, n=5, axis={one})|np.fft.rfft2({a})|np.fft.fftshift({a})|np.fft.hfft({a})|np.fft.ihfft({a})|np.fft.fftn({a})
    np.fft.ifftshift({a}, axes={one})|np.fft.rfft({a}, norm="forward")|np.fft.irfft2({a})
"""
WRITES = """
    {t}[{key}] = {s}|{t}[{key}] = {s}|{t}[{view}] = {s}|{t}[{view}] = {s}|{t}[{key}] += {s}|{t}[{key}] *= {s}|{t}[{view}] -= {s}|{t}[{view}] /= 2
    {t}[{mask}] = {n}|{t}[{mask}] = {s}|{t}[{mask}] *= {n}|{t}[{t} > 0] = {t}[{t} > 0] * 0.5|{t}[{view}] = {t}[{view}] * {n}|{t}[...] = {s}
    {t} += {s}|{t} -= {s}|{t} *= {s}|{t} *= {n}|{t} /= 2|{t} **= 2|{t} @= np.eye(3)|{t}[{view}][{view}] = {s}|{t}[{view}][{view}] += {s}
    np.add({a}, {s}, out={t})|np.multiply({t}, {s}, out={t})|np.sin({s}, out={t})|np.exp({t}, {t})|np.subtract({s}, {t}, out={t}, where={mask})
    np.sum({a}, axis={one}, out={t})|np.cumsum({t}, axis={one}, out={t})|np.clip({t}, -0.8, 0.8, out={t})|np.add({t}[{view}], {s}, out={t}[{view}])
    np.add.at({t}, {keys}, {s})|np.subtract.at({t}, {keys}, {s})|np.multiply.at({t}, {keys}, {n})|np.negative.at({t}, {keys})
    np.put({t}, [0, -1], {n})|{t}.put([0, 1, 0], {s})|np.place({t}, {mask}, [0.3, {n}])|np.putmask({t}, {mask}, {s})|np.put({t}, [0, 1], {s})
    np.put_along_axis({t}, np.argmax({t}, axis={one}, keepdims=True), {s}, axis={one})|np.put_along_axis({t}, np.array([[0], [1]]), {n}, {one})
    np.fill_diagonal({t}, {n})|np.fill_diagonal({t}, {s})|np.copyto({t}, {s})|np.copyto({t}, {s}, where={mask})|{t}.fill({n})|{t}.sort()
    {t}.sort({one})|{t}.partition(1)|{t}.flat[0] = {n}|{t}.flat[1:] = {s}|{t}.flat = {s}|{t}.shape = {shape}|{t}.real = {s}|{t}.imag[...] = {n}
    {t}[0], {t}[-1] = {t}[-1].copy(), {t}[0].copy()|{t}[[0, -1]] = {t}[[-1, 0]]|{t}[0], {t}[1] = {t}[1], {t}[0]|{t}[:, [0, 1]] = {t}[:, [1, 0]]
    {t}.T[{view}] = {s}|{t}.ravel()[1:] = {s}|{t}.reshape(-1)[::2] *= {n}|{t}[1:] += {t}[:-1]|{t}[1:] = {t}[:-1]|{t}[::-1] += {t}|{t}[:] = {t}.T
    np.diagonal({t}).copy()[...] = {n}|np.put({t}, 1, {n})|del {t}|{t}[0] = {t}[-1] = {n}|{t}[tuple(np.argwhere({t} == {t})[0])] = {n}
    np.maximum({t}, {s}, out={t})|np.fmin({t}, {n}, {t})|np.divide({t}, 2, out={t})|np.negative({t}, out={t}[::-1])|np.nan_to_num({t}, copy=False)
"""

HOLES = {
    "n": ("0.5", "2", "-1.5", "3", "0", "np.float32(0.75)", "np.float64(-0.25)", "True", "{a}.sum()"),
    "s": ("{b}", "{b}", "{b}", "0.5", "{b}[0]", "{b} * 2", "{t}", "np.sin({b})", "np.sum({b})"),
    "p": ("(np.abs({a}) + 0.3)", "(np.square({a}) + 0.5)", "np.exp({a})", "({a} * {a} + 1)"),
    "u": ("np.tanh({a})", "(0.9 * np.sin({a}))", "({a} / (1 + np.abs({a})))"),
    "axis": ("None", "0", "-1", "1", "(0, 1)", "(-1, 0)", "()", "-2"),
    "one": ("-1", "0", "1", "-2"),
    "flag": ("False", "True"),
    "real": ("np.float64", "np.float32"),
    "method": ('"lower"', '"nearest"', '"midpoint"', '"hazen"', '"higher"', '"weibull"', '"median_unbiased"'),
    "pad": ('"edge"', '"reflect"', '"symmetric"', '"wrap"', '"mean"', '"maximum"', '"median"', '"minimum"'),
    "shape": ("(-1,)", "(-1, 1)", "(1, -1)", "(3, -1)", "(-1, 3)", "(2, -1)", "(-1, 2)", "(2, 1, -1)"),
    "perm": ("(1, 0)", "(-1, 0)", "(1, 2, 0)", "(2, 0, 1)", "(0, -1, 1)"),
    "order": ("1", "2", "np.inf", "-np.inf", "3", '"fro"', "-1", '"nuc"'),
    "spd": ("({a} @ {a}.T + 2 * np.eye(len({a})))", "({a} + 4 * np.eye(3))"),
    "mask": ("{x} > 0.1", "{x} < 0", "np.abs({x}) > 0.5", "np.arange(3) != 1", "m0", "True", "[True, False, True]", "{x} == {x}.max()"),
    "view": ("0", "-1", "1:", ":-1", "::2", "::-1", "...", "..., 0", "..., 1:", "..., ::-1", "None", ":, None", "1:, :-1", ":, 1", "()", "1:1"),
    "key": (
        *("[0, -1]", "[0, 0, 1]", "0, 1", "..., [1, 0]", "[1, 0], [0, 1]", "[0, 1], :, [1, 0]", "[[0], [1]], [0, 1]", "0, [1, 0]", "[1, 0], 0"),
        *("np.ix_([0, 1], [1, 0])", "np.array(1)", "[]", "np.arange(len({x})) % 2 == 0", "{x} > 0", "k0", "..., k0", "[1, 0], None", "True"),
        *("np.array([[0, 1], [1, 0]])", "[0, 1], 1:", "1:, [0, 0]", "..., None, [1, 1]", "m0", "np.int64(1)", "len({x}) - 1", "slice(1, None)"),
    ),
    # Not with a mask as the key and numbers of another dtype: see the segmentation fault of NumPy's own in ``held_back``.
    "keys": ("[0, 0, 1]", "0", "slice(1, None)", "([0, 1], [1, 1])", "(Ellipsis, [0, 0])", "k0", "Ellipsis", "{x} > 0", "(slice(None), [1, 1])"),
}
"""The choices for each hole; ``{x}`` is ``{t}`` in a line that writes, else ``{a}``."""

REFUSALS = (ValueError, IndexError, TypeError, AttributeError, ArithmeticError, AssertionError, Warning, NameError, RuntimeError)
"""What NumPy refuses a line with; ``LinAlgError`` and ``AxisError`` are of ValueError, what it will refuse in future is a warning."""

SHAPES = ((3,), (2, 3), (3, 3), (), (1,), (3, 1), (2, 2), (2, 3, 2), (4,), (0, 3), (3, 2), (2, 1, 3))
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C": np.copy,
    "F": lambda a: np.array(a, order="F"),
    "strided": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a.copy(),
    "reversed": lambda a: a[::-1].copy()[::-1] if a.ndim else a.copy(),
}
LARGEST, MOST = 1e3, 80
SMALL = {np.dtype(np.float32): np.float64, np.dtype(np.complex64): np.complex128}


def entries(text: str) -> tuple[str, ...]:
    """The templates of a block, which ``|`` and line ends part; a bar within brackets is not used in any."""
    return tuple(t.strip() for t in text.replace("\n", "|").split("|") if t.strip())


GROUPS = {name: entries(text) for name, text in VALUES.items()}
if find_spec("pullback_linalg"):
    GROUPS["linalg"] = entries(LINALG)
if find_spec("pullback_fft"):
    GROUPS["fft"] = entries(FFT)
WRITING = entries(WRITES)


@frozen(eq=False)
class Value:
    """An input or a constant: C-ordered ``array`` (or a number), laid out as ``layout`` says whenever a program begins."""

    array: Any
    layout: str = "number"

    def made(self, *, wide: bool = False, plus: Any = None) -> Any:
        """Afresh, in memory of its own; ``wide`` in double precision, moved by ``plus``."""
        array = self.array
        if wide and np.asarray(array).dtype in SMALL:
            array = np.asarray(array).astype(SMALL[np.asarray(array).dtype])
            array = array[()] if self.layout == "number" else array
        if plus is not None:
            array = array + plus
        return array if self.layout == "number" else LAYOUTS[self.layout](np.asarray(array))

    def __str__(self) -> str:
        if not isinstance(self.array, np.ndarray):
            return repr(self.array)
        text = f"np.array({self.array.tolist()!r}, np.{self.array.dtype.name}).reshape({self.array.shape})"
        return text if self.layout == "C" else f"{text}  # laid out: {self.layout}"


@frozen(repr=False, eq=False)
class Program:
    """``lines`` of source on named ``inputs`` and ``constants``; the arrays named in ``read`` are summed at the end."""

    inputs: dict[str, Value]
    constants: dict[str, Value]
    lines: tuple[str, ...]
    read: tuple[str, ...]
    number: int

    def run(self, *inputs: Any, wide: bool = False, mark: Callable[..., Iterable[Any]] = iter, after: Callable[..., None] | None = None) -> Any:
        """The program's scalar; ``mark`` goes around the lines, ``after(k, names)`` is called after line k; ``wide`` as in the source's words."""
        names: dict[str, Any] = {"np": np, **{k: v.made(wide=wide) for k, v in self.constants.items()}}
        names.update(zip(self.inputs, inputs, strict=True))
        for number, line in mark(tuple(enumerate(self.lines))):
            exec(compiled(line, wide), names)  # noqa: S102 - the text is drawn from the tables above
            if after is not None:
                after(number, names)
        names["loss"], names["weights"] = 0.0, weights
        for line in self.reading():
            exec(compiled(line, wide), names)  # noqa: S102 - as above
        return names["loss"]

    def reading(self) -> list[str]:
        """The last lines: a scalar of what is read."""
        return [f"loss = loss + {term}" for term in self.read]

    def __repr__(self) -> str:
        given = [f"{name} = {value}" for name, value in (*self.inputs.items(), *self.constants.items())]
        used = " ".join(self.lines)
        given = [line for line in given if line[0] == "x" or line[:2] in used]
        lines = [*given, "# the program", *self.lines, "loss = 0.0", *self.reading(), f"# inputs: {', '.join(self.inputs)}; number {self.number}"]
        return "\n".join(["", *(f"    {line}" for line in lines), ""])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What Hypothesis prints: the source, instead of the arguments of a class."""
        printer.text(repr(self))


@lru_cache(maxsize=4096)
def compiled(line: str, wide: bool) -> CodeType:
    """The code of a line; ``wide`` with double precision wherever it names single."""
    text = line.replace("float32", "float64").replace("complex64", "complex128") if wide else line
    return compile(text, "<drawn program>", "exec")


@lru_cache(maxsize=512)
def _weights(shape: tuple[int, ...]) -> Any:
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def weights(value: Any) -> Any:
    """Numbers of the shape of ``value``, all different."""
    return _weights(np.shape(value)).copy()


def moderate(value: Any) -> bool:
    """Small in number and in size, and a number at all."""
    array = np.asarray(value)
    return array.dtype.kind in "fciub" and array.size <= MOST and bool(np.all(np.abs(array) < LARGEST))


def inexact(value: Any) -> bool:
    """Of a dtype that carries a derivative."""
    return np.asarray(value).dtype.kind in "fc"


class Draft:
    """A program while it is drawn; NumPy runs every line as it comes."""

    def __init__(self, inputs: dict[str, Value], constants: dict[str, Value]) -> None:
        self.inputs, self.constants = inputs, constants
        self.lines: list[str] = []
        self.traced: set[str] = set(inputs)
        self.begin()

    def begin(self) -> None:
        """The names and values after the lines so far, from the start."""
        self.names: dict[str, Any] = {"np": np, **{k: v.made() for k, v in (*self.inputs.items(), *self.constants.items())}}
        for line in self.lines:
            self.execute(line)

    def execute(self, line: str) -> None:
        """One line; whatever NumPy warns of, it refuses."""
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="Setting the shape on a NumPy array")
            exec(compiled(line, False), self.names)  # noqa: S102, FBT003 - the text is drawn from the tables above

    def known(self) -> list[str]:
        """The names that may stand in a line: what is traced first and twice."""
        values = [k for k in self.names if k[0] in "xvc" and k[1:].isdigit()]
        traced = [k for k in values if k in self.traced]
        return [*traced, *traced, *(k for k in values if k not in self.traced)]

    def writable(self) -> list[str]:
        """The names of arrays that NumPy lets us write to."""
        found = [k for k in self.known() if isinstance(self.names[k], np.ndarray) and self.names[k].flags.writeable and inexact(self.names[k])]
        return found

    def offer(self, line: str, name: str | None, *, traced: bool) -> bool:
        """Keep ``line`` if NumPy takes it and all stays moderate; ``name`` is what it binds, None for a write."""
        before = self.names.get(name) if name else None
        try:
            self.execute(line)
            fine = moderate(self.names[name]) if name else all(moderate(v) for k, v in self.names.items() if k in self.known())
        except REFUSALS:
            fine = False
        if fine:
            self.lines.append(line)
            if name:
                self.traced.discard(name)
                self.traced |= {name} if traced and inexact(self.names[name]) else set()
        elif name is None:
            self.begin()  # a refused write may be half done
        elif before is not None:
            self.names[name] = before
        else:
            self.names.pop(name, None)
        return fine


def held_back(line: str, draft: Draft) -> bool:
    """Lines that are not drawn, each for its reason."""
    return line.startswith("del ") and len(set(draft.known())) == 1  # nothing would be left


FIELDS = {t: tuple(f for _, f, _, _ in string.Formatter().parse(t) if f) for group in (*GROUPS.values(), WRITING) for t in group}
INNER = {c: tuple(f for _, f, _, _ in string.Formatter().parse(c) if f) for choices in HOLES.values() for c in choices}
PLAIN = ("sign(", "floor(", "ceil(", "rint(", "trunc(", "round(", "heaviside(", "floor_divide(", "//", "divmod({b}, {p})[0]", "spacing(", "astype(int)")
"""Marks of templates whose result has no derivative: a plain array."""


def fill(rng: Random, draft: Draft, template: str) -> tuple[str, list[str]]:
    """The line of a template, and the names in it."""
    fields = FIELDS[template]
    target = rng.choice(draft.writable()) if "t" in fields else None
    pool = draft.known() if target is None or target in draft.traced else [k for k in draft.known() if k not in draft.traced]
    holes = {"t": target}
    used: list[str] = [target] if target else []

    def name(hole: str) -> str:
        if hole == "x":
            return target or name("a")
        if holes.get(hole) is None:
            holes[hole] = rng.choice(pool)
            used.append(str(holes[hole]))
        return str(holes[hole])

    for hole in fields:
        if hole in ("a", "b", "t", "x"):
            name(hole)
    filled: dict[str, Any] = {}
    for hole in fields:
        if hole in HOLES:
            choice = rng.choice(HOLES[hole])
            filled[hole] = choice.format(**{inner: name(inner) for inner in INNER[choice]})
    return template.format(**{**holes, **filled}), used


def drawn(number: int, most: int = 10) -> Program:
    """The program of a number, on one to three inputs, with at most ``most`` lines."""
    rng = Random(number)
    inputs = {f"x{k}": _value(rng, INPUTS) for k in range(rng.randint(1, 3))}
    constants = {f"c{k}": _value(rng, CONSTANTS) for k in range(rng.randint(0, 2))}
    constants["k0"] = Value(np.array([1, 0, 1]), "C")
    constants["m0"] = Value(np.array([True, False, True]), "C")
    draft = Draft(inputs, constants)
    for _ in range(rng.randint(2, most)):
        _line(rng, draft)
    names = sorted({k for k in draft.known() if inexact(draft.names[k])})
    latest = [k for k in draft.names if k in names and k in draft.traced][-1:]
    chosen = sorted({k for k in names if rng.random() < 0.4}.union(latest))
    return Program(inputs, constants, tuple(draft.lines), tuple(_term(k, draft.names[k]) for k in chosen), number)


def programs(most: int = 10) -> st.SearchStrategy[Program]:
    """Programs by number: choices of one line after the other repeat themselves, and would leave many templates out.

    So Hypothesis cannot shrink a program; :func:`smallest` does.
    """
    return st.integers(0, 2**64).map(lambda number: drawn(number, most))


def smallest(program: Program, fails: Callable[[Program], bool]) -> Program:
    """``program`` without the lines and the terms that it fails without."""
    changed = True
    while changed:
        changed = False
        for part in ("lines", "read"):
            for k in reversed(range(len(getattr(program, part)))):
                kept = getattr(program, part)
                less = evolve(program, **{part: kept[:k] + kept[k + 1 :]})
                if fails(less):
                    program, changed = less, True
    return program


INPUTS = ("f8", "f8", "f8", "f8", "f4", "c16", "python", "f8 scalar", "f4 scalar")
CONSTANTS = ("f8", "f8", "f4", "c16", "python", "i8", "bool", "f8 scalar")


def _term(name: str, value: Any) -> str:
    term = f"np.sum(weights({name}) * {name})"
    return f"np.real({term})" if np.asarray(value).dtype.kind == "c" else term


def _numbers(rng: Random, shape: tuple[int, ...]) -> Any:
    return np.array([rng.uniform(-1.5, 1.5) for _ in range(math.prod(shape))]).reshape(shape)


def _value(rng: Random, kinds: tuple[str, ...]) -> Value:
    kind = rng.choice(kinds)
    if kind == "python":
        return Value(float(rng.uniform(-1.5, 1.5)))
    if kind.endswith("scalar"):
        return Value(np.dtype(kind[:2]).type(rng.uniform(-1.5, 1.5)))
    shape = rng.choice(SHAPES)
    array = np.asarray(_numbers(rng, shape))
    if kind in ("i8", "bool"):
        array = np.floor(2 * array) if kind == "i8" else array > 0
    elif kind == "c16":
        array = np.asarray(array + 1j * _numbers(rng, shape))
    layout = rng.choice(sorted(LAYOUTS))
    return Value(array.astype(kind), layout)


def _line(rng: Random, draft: Draft) -> None:
    """Draw one line, and keep it if it can be."""
    writes = rng.random() < 0.35
    if writes and draft.writable():
        line, _ = fill(rng, draft, rng.choice(WRITING))
        if not held_back(line, draft):
            draft.offer(line, None, traced=False)
        return
    template = rng.choice(GROUPS[rng.choice(sorted(GROUPS))])
    line, used = fill(rng, draft, template)
    again = rng.random() < 0.1  # bind a name anew
    numbers = [int(k[1:]) for k in draft.names if k[0] == "v" and k[1:].isdigit()]
    name = rng.choice(draft.known()) if again else f"v{max(numbers, default=-1) + 1}"
    traced = any(k in draft.traced for k in used) and not any(mark in template for mark in PLAIN)
    draft.offer(f"{name} = {line}", name, traced=traced)


def copies(names: dict[str, Any]) -> dict[str, Any]:
    """The values of a program's names at this moment, in memory of their own."""
    return {k: twin(v) for k, v in names.items() if k[0] in "xvc" and k[1:].isdigit()}
