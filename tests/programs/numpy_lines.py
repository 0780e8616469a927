"""The lines that drawn NumPy programs are made of: templates with holes, in blocks that ``|`` and line ends part.

``{a}`` and ``{b}`` are values so far, ``{t}`` an array that is written to, ``{s}`` what is written; the other holes are
choices of :data:`HOLES`, whose ``{x}`` is ``{t}`` in a line that writes, else ``{a}``.
"""

from importlib.util import find_spec


def entries(text: str) -> tuple[str, ...]:
    """The templates of a block; a bar is not used in any."""
    return tuple(t.strip() for t in text.replace("\n", "|").split("|") if t.strip())


VALUES = {
    "elementwise": """
        np.sin({a})|np.cos({a})|np.tan(0.3 * {a})|np.arctan({a})|np.sinh({a})|np.cosh({a})|np.tanh({a})
        np.arcsinh({a})|np.exp({a})
        np.exp2({a})|np.expm1({a})|np.square({a})|np.negative({a})|np.positive({a})|np.abs({a})|np.fabs({a})
        np.conjugate({a})
        {a}.conj()|np.real({a})|{a}.real|np.imag({a})|{a}.imag|np.angle({a})|np.sinc({a})|np.i0({a})|np.cbrt({p})
        np.deg2rad({a})
        np.degrees({a})|np.nan_to_num({a})|np.modf({a})[0]|np.frexp({a})[0]|np.ldexp({a}, 2)|np.unwrap({a})
        np.real_if_close({a})
        np.spacing({a})|np.log({p})|np.log2({p})|np.log10({p})|np.log1p({p})|np.sqrt({p})|np.reciprocal({p})
        np.arccosh({p} + 1)
        np.emath.sqrt({a})|np.emath.log({p})|np.arcsin({u})|np.arccos({u})|np.arctanh({u})|np.sign({a})|np.floor({a})
        np.ceil({a})
        np.rint({a})|np.trunc({a})|np.round({a}, 1)|np.heaviside({a}, 0.5)|-{a}|+{a}|abs({a})|{a} ** 2|{a} ** 3
        {a} ** {n}|{p} ** {n}
        {n} ** {a}|{p} ** -0.5|np.exp({a}, dtype=np.float64)|np.multiply({a}, 2, dtype=np.complex128)|{a} * {a}
        {a} - {a}
        1 / (1 + np.exp(-{a}))
    """,
    "two": """
        {a} + {b}|{a} - {b}|{a} * {b}|{a} / {p}|{p} ** {b}|{a} % {p}|{a} // {p}|{a} + {n}|{n} - {a}|{n} * {a}
        {a} / {n}|{n} / {p}
        {a} % {n}|np.add({a}, {b})|np.subtract({a}, {b})|np.multiply({a}, {b})|np.divide({a}, {p})
        np.true_divide({b}, {p})
        np.power({p}, {b})|np.float_power({p}, {b})|np.maximum({a}, {b})|np.minimum({a}, {b})|np.fmax({a}, {b})
        np.fmin({a}, {b})
        np.logaddexp({a}, {b})|np.logaddexp2({a}, {b})|np.arctan2({a}, {b})|np.hypot({a}, {b})|np.remainder({b}, {p})
        np.mod({a}, {n})
        np.fmod({b}, {p})|np.copysign({a}, {b})|divmod({b}, {p})[1]|np.divmod({b}, {p})[1]|np.floor_divide({b}, {p})
        np.maximum({a}, {n})|np.minimum({n}, {a})|np.where({mask}, {a}, {b})|np.where({mask}, {a}, {n})
        np.where({mask}, {n}, {b})
        np.clip({a}, {n}, 1.2)|np.clip({a}, -0.7, None)|{a}.clip(-0.5, 0.5)|np.clip({a}, {b}, {b} + 1)
        np.clip({a}, min=-1)
        np.select([{mask}, {a} < 0.6], [{a}, {b}], {n})|np.select([{mask}, {b} > 0.5], [{b}, {a} * 2])
        np.choose(({mask}) * 1, [{a}, {b}])|np.piecewise({a}, [{a} > 0], [np.sin, {n}])
        np.add({a}, {b}, out=np.zeros_like({a} * {b}), where={mask})|np.multiply.outer({a}, {b})|np.add.outer({a}, {b})
        np.outer({a}, {b})|np.multiply({a}, {b}, out=np.ones_like({a} * {b}))|np.float32(1.5) * {a}|1j * {a}
        {a} * True|{a} * k0
        {a} + k0|{a} * m0|{a} * [0.5, 2, 1]|np.maximum({a}, [0.5, -0.5, 0.1])|k0 / {p}|m0 + {a}|np.where(m0, {a}, k0)
    """,
    "reductions": """
        np.sum({a})|{a}.sum()|np.sum({a}, axis={axis})|np.sum({a}, axis={axis}, keepdims={flag})
        {a}.sum(axis={axis}, keepdims={flag})
        np.sum({a}, axis={axis}, initial={n})|np.sum({a}, axis={axis}, where={mask})
        np.sum({a}, axis={axis}, dtype={real})
        np.mean({a}, axis={axis}, keepdims={flag})|{a}.mean({axis})|np.mean({a}, axis={axis}, where={mask})
        np.mean({a}, dtype={real})
        np.prod({a}, axis={axis}, keepdims={flag})|np.prod({a}, axis={axis}, initial={n}, where={mask})|{a}.prod()
        np.max({a}, axis={axis}, keepdims={flag})|np.max({a}, axis={axis}, initial={n})
        np.max({a}, axis={axis}, initial=-2, where={mask})|np.min({a}, axis={axis}, keepdims={flag})|{a}.min({axis})
        np.min({a}, axis={axis}, initial={n})|np.amax({a}, {axis})|{a}.max()|np.ptp({a}, axis={axis}, keepdims={flag})
        np.var({a}, axis={axis}, keepdims={flag})|np.var({a}, axis={axis}, ddof=1)
        np.std({a}, axis={axis}, keepdims={flag})
        np.std({a}, ddof=1)|{a}.std({axis})|{a}.var()|np.var({a}, axis={axis}, where={mask})
        np.average({a}, axis={axis})
        np.average({a}, weights={p})|np.average({a}, axis={one}, weights=np.abs({a}) + 0.1)
        np.add.reduce({a}, axis={axis})
        np.multiply.reduce({a}, axis={axis})|np.maximum.reduce({a}, axis={axis})|np.logaddexp.reduce({a}, axis={one})
        np.hypot.reduce({a}, axis={one})|np.subtract.reduce({a}, axis={one})|np.add.reduceat({a}, [0, 1], axis={one})
        np.multiply.reduceat({a}, [1, 0], axis={one})|np.argmax({a}, axis={one})|np.argmin({a})
        np.nansum({a}, axis={axis})
        np.nanmean({a}, axis={axis}, keepdims={flag})|np.nanmax({a}, axis={axis})|np.nanstd({a}, axis={axis})
        np.nanprod({a}, axis={axis})|np.any({a} > 0, axis={axis})|np.count_nonzero({a} > 0)|np.all({a} > -1)
        np.nanmin({a})
        np.prod({a}, axis={one}, dtype={real})|np.std({a}, axis={one}, dtype={real})|np.var({a}, dtype={real})
        np.nanprod({a}, axis={one}, dtype={real})|np.fmax.reduce({a}, axis={one}, dtype={real})
        np.divide.reduce({p}, axis={one}, dtype={real})|np.hypot.reduceat({a}, [0, 1], axis={one})
        np.multiply.reduceat({a}, [1, 0], axis={one}, dtype={real})
        np.trapezoid({a}, axis={one})|np.trapezoid({a}, dx=0.3)|np.cov({a})|np.corrcoef({a})
        np.bincount([0, 1, 0], weights={a})
    """,
    "scans": """
        np.cumsum({a})|np.cumsum({a}, axis={one})|{a}.cumsum({one})|np.cumprod({a})|np.cumprod({a}, axis={one})
        {a}.cumprod({one})
        np.cumprod({a}, axis={one}, dtype={real})|np.divide.accumulate({p}, axis={one}, dtype={real})
        np.cumulative_sum({a}, axis={one}, include_initial={flag})
        np.cumulative_prod({a}, axis={one}, include_initial={flag})
        np.add.accumulate({a}, axis={one})|np.multiply.accumulate({a})|np.maximum.accumulate({a}, axis={one})
        np.minimum.accumulate({a})
        np.logaddexp.accumulate({a}, axis={one})|np.nancumsum({a}, axis={one})|np.diff({a})|np.diff({a}, axis={one})
        np.diff({a}, n=2)
        np.diff({a}, prepend={n})|np.ediff1d({a})|np.gradient({a}, axis={one})
        np.gradient({a}, 0.5, axis={one}, edge_order=2)
        np.convolve({a}, {b})|np.convolve({a}, {b}, "same")|np.correlate({a}, {b}, "valid")
        np.correlate({a}, {b}, "full")
        np.interp({a}, [-1, 0, 1], [0.2, 0.9, 0.4])|np.interp({a}, np.arange({b}.size) - 1, {b})|np.polyval({a}, 0.7)
        np.polyval([1, -2, 3], {a})|np.subtract.accumulate({a}, axis={one})|np.cross({a}, {b})
    """,
    "sorting": """
        np.sort({a})|np.sort({a}, axis={one})|np.sort({a}, axis=None)|np.partition({a}, 1)
        np.partition({a}, -1, axis={one})
        np.median({a})|np.median({a}, axis={axis}, keepdims={flag})|np.quantile({a}, 0.3)
        np.quantile({a}, [0.25, 0.6], axis={axis})
        np.percentile({a}, 35, axis={axis}, keepdims={flag})|np.quantile({a}, 0.4, axis={one}, method={method})
        np.nanmedian({a}, axis={axis})|{a}[np.argsort({a})]
        np.take_along_axis({a}, np.argsort({a}, axis={one}), axis={one})
        np.sort_complex({a})|np.unique({a})|np.take_along_axis({a}, np.argmax({a}, axis={one}, keepdims=True), {one})
        np.argsort({a}, axis={one})|np.searchsorted([-1, 0, 1], {a})
        np.take_along_axis({a}, np.array([[0], [1]]), axis={one})
        {a}[np.argmax({a})]|np.nanquantile({a}, 0.3, axis={axis})|np.union1d({a}, {b})
        np.histogram([0.1, 0.5, 0.6], bins=2, weights={a})[0]|{a}[np.lexsort(({a},))]
    """,
    "shaping": """
        {a}.T|{a}.ravel()|{a}.ravel("F")|{a}.flatten()|{a}.reshape(-1)|{a}.reshape({shape})
        np.reshape({a}, {shape}, order="F")
        np.ravel({a}, "K")|np.transpose({a})|np.transpose({a}, {perm})|{a}.transpose({perm})|np.swapaxes({a}, 0, -1)
        {a}.swapaxes(-1, 0)
        np.moveaxis({a}, 0, -1)|np.rollaxis({a}, -1)|np.expand_dims({a}, {one})|np.expand_dims({a}, (0, -1))
        np.squeeze({a})
        {a}.squeeze()|np.atleast_2d({a})|np.atleast_1d({a})|np.atleast_3d({a})|np.broadcast_to({a}, (2, *np.shape({a})))
        np.broadcast_to({a}, (3, 3))|np.flip({a})|np.flip({a}, {one})|np.broadcast_arrays({a}, np.ones((2, 3)))[0] * 1
        np.fliplr({a})
        np.flipud({a})
        np.rot90({a})|np.rot90({a}, 3)|{a}.copy()|np.copy({a})|{a}.mT|{a}.astype({real})|{a}.astype(complex)
        {a}.astype(int)
        np.astype({a}, np.float64)|np.diagonal({a})|{a}.diagonal(1)|np.diag({a})|np.diag({a}, -1)|np.diagflat({a})
        np.tril({a})
        np.triu({a}, 1)|np.trace({a})|{a}.trace(1)|np.vander({a}, 3)|np.meshgrid([1.0, 2.0], {a})[1]
        np.squeeze({a}, axis={one})
        np.lib.stride_tricks.sliding_window_view({a}, 2, axis={one})|np.permute_dims({a}, {perm})
        np.matrix_transpose({a})
        np.zeros_like({a})|np.ones_like({a})|np.full_like({a}, {n})|np.zeros((2, 3), like={a})
    """,
    "joining": """
        np.concatenate([{a}, {b}])|np.concatenate([{a}, {b}], axis={one})|np.concatenate([{a}, {b}], axis=None)
        np.stack([{a}, {b}])
        np.stack([{a}, {b}, {a}], axis={one})|np.vstack([{a}, {b}])|np.hstack([{a}, {b}])|np.dstack([{a}, {b}])
        np.column_stack([{a}, {b}])|np.block([{a}, {b}])|np.block([[{a}, {a}], [{b}, {b}]])|np.append({a}, {b})
        np.append({a}, {n})
        np.insert({a}, 1, {n})|np.insert({a}, [0, 1], {n}, axis={one})|np.delete({a}, 0)
        np.delete({a}, [0, -1], axis={one})
        np.split({a}, 3)[1]|np.hsplit({a}, 3)[0]|np.array_split({a}, 2, axis={one})[1]|np.vsplit({a}, [1])[1]
        np.pad({a}, 1)
        np.pad({a}, 1, constant_values={n})|np.pad({a}, 1, mode={pad})|np.pad({a}, (1, 2), mode={pad})
        np.pad({a}, 1, mode="linear_ramp", end_values={n})|np.roll({a}, 1)|np.roll({a}, -1, axis={one})
        np.roll({a}, (1, 2), axis=(0, 1))|np.tile({a}, 2)|np.tile({a}, (2, 1))|np.repeat({a}, 2)
        np.repeat({a}, 2, axis={one})
        {a}.repeat(2, {one})|np.repeat({a}, [1, 0, 2], axis={one})|np.resize({a}, (2, 3))|np.trim_zeros({a})
        np.unstack({a})[0]
        np.stack([r * r for r in {a}])|sum(r * 0.5 for r in {a})|np.apply_along_axis(np.cumsum, {one}, {a})
        np.apply_over_axes(np.sum, {a}, (0, -1))|np.stack([{a}[0], {a}[-1]])
    """,
    "indexing": """
        {a}[{key}]|{a}[{key}]|{a}[{key}]|{a}[{view}]|{a}[{view}]|{a}[{view}]|{a}[{mask}]|{a}[:, m0]|{a}[0][0]
        {a}[1:][::-1]
        {a}.T[{view}]|np.take({a}, [0, -1, 0])|np.take({a}, [[0, 1], [1, 0]], axis={one})|{a}.take(1)
        np.take({a}, [0, 5], mode="clip")
        np.compress([True, False, True], {a})|np.compress([False, True], {a}, axis={one})|np.extract({mask}, {a})
        {a}.flat[1]|{a}.flat[1:3]|{a}.flat[...]|np.take({a}, 0, axis={one}, mode="wrap")|{a}.take(-1, 0, mode="clip")
        {a}.flat[[0, 0, 1]]|{a}.item(0)|{a}[k0]|{a}[..., k0]|{a}[np.nonzero({mask})]|{a}[np.where({a} > 0)]
        {a}[np.diag_indices(2)]
        {a}[np.ix_([0, 1], [1, 0])]|{a}[np.unravel_index(1, {a}.shape)]
    """,
    "likewise plain": """
        {a} > {b}|{a} > 0|{a} <= {n}|np.isfinite({a})|np.isclose({a}, {b})|np.shape({a})[0]|len({a})|{a}.ndim
        np.zeros((2, 3))
        np.arange(3)
    """,
}
LINALG = """
    {a} @ {b}|{a} @ {a}.T|np.matmul({a}, {b})|np.dot({a}, {b})|{a}.dot({b})|np.inner({a}, {b})|np.vdot({a}, {b})
    np.tensordot({a}, {b}, 1)|np.tensordot({a}, {b}, axes=([0], [0]))|np.kron({a}, {b})|np.einsum("ij,jk->ik", {a}, {b})
    np.einsum("i,i", {a}, {b})|np.einsum("ii", {a})|np.einsum("...i,...i->...", {a}, {b})|np.einsum("ij->j", {a})
    np.einsum("ij,kj->ik", {a}, {a})|np.einsum({a}, [0, 1], [1, 0])|np.linalg.solve({spd}, {b})|np.linalg.inv({spd})
    np.linalg.det({spd})|np.linalg.slogdet({spd})[1]|np.linalg.cholesky({psd})|np.linalg.norm({a})
    np.linalg.norm({a}, axis={one}, keepdims={flag})|np.linalg.norm({a}, ord={order})
    np.linalg.norm({a}, {order}, axis={one})
    np.linalg.eigvalsh({psd})|np.linalg.svd({a}, compute_uv=False)|np.linalg.pinv({spd})|np.linalg.matrix_power({a}, 2)
    np.vecdot({a}, {b})|np.linalg.multi_dot([{a}, {b}, {a}])|np.matvec({a}, {b})|np.linalg.lstsq({spd}, {b})[0]
    np.linalg.vector_norm({a})|np.linalg.det({a})
"""
FFT = """
    np.fft.fft({a})|np.fft.ifft({a}, axis={one})|np.fft.rfft({a})|np.fft.irfft({a})|np.fft.fft({a}, n=4, norm="ortho")
    np.fft.rfft({a}, n=2)|np.fft.fft2({a})|np.fft.irfft({a}, n=5, axis={one})|np.fft.rfft2({a})|np.fft.fftshift({a})
    np.fft.hfft({a})
    np.fft.ihfft({a})|np.fft.fftn({a})|np.fft.ifftshift({a}, axes={one})|np.fft.rfft({a}, norm="forward")
    np.fft.irfft2({a})
"""
WRITES = """
    {t}[{key}] = {s}|{t}[{key}] = {s}|{t}[{view}] = {s}|{t}[{view}] = {s}|{t}[{key}] += {s}|{t}[{key}] *= {s}
    {t}[{view}] -= {s}
    {t}[{view}] /= 2|{t}[{mask}] = {n}|{t}[{mask}] = {s}|{t}[{mask}] *= {n}|{t}[{t} > 0] = {t}[{t} > 0] * 0.5
    {t}[{view}] = {t}[{view}] * {n}|{t}[...] = {s}|{t} += {s}|{t} -= {s}|{t} *= {s}|{t} *= {n}|{t} /= 2|{t} **= 2
    {t} @= np.eye(3)
    {t}[{view}][{view}] = {s}|{t}[{view}][{view}] += {s}|np.add({a}, {s}, out={t})|np.multiply({t}, {s}, out={t})
    np.sin({s}, out={t})
    np.exp({t}, out={t})|np.subtract({s}, {t}, out={t}, where={mask})|np.sum({a}, axis={one}, out={t})
    np.cumsum({t}, axis={one}, out={t})
    np.clip({t}, -0.8, 0.8, out={t})|np.add({t}[{view}], {s}, out={t}[{view}])|np.add.at({t}, {keys}, {s})
    np.subtract.at({t}, {keys}, {s})|np.multiply.at({t}, {keys}, {n})|np.negative.at({t}, {keys})
    np.put({t}, [0, -1], {n})
    {t}.put([0, 1, 0], {s})|np.place({t}, {mask}, [0.3, -1.5])|np.putmask({t}, {mask}, {s})|np.put({t}, [0, 1], {s})
    np.put_along_axis({t}, np.argmax({t}, axis={one}, keepdims=True), {s}, axis={one})
    np.put_along_axis({t}, np.array([[0], [1]]), {n}, {one})|np.fill_diagonal({t}, {n})|np.fill_diagonal({t}, {s})
    np.copyto({t}, {s})
    np.copyto({t}, {s}, where={mask})|{t}.fill({n})|{t}.sort()|{t}.sort({one})|{t}.partition(1)|{t}.flat[0] = {n}
    {t}.flat[1:] = {s}
    {t}.flat = {s}|{t}.shape = {shape}|{t}.real = {s}|{t}.imag[...] = {n}
    {t}[0], {t}[-1] = {t}[-1].copy(), {t}[0].copy()
    {t}[[0, -1]] = {t}[[-1, 0]]|{t}[0], {t}[1] = {t}[1], {t}[0]|{t}[:, [0, 1]] = {t}[:, [1, 0]]|{t}.T[{view}] = {s}
    {t}.ravel()[1:] = {s}|{t}.reshape(-1)[::2] *= {n}|{t}[1:] += {t}[:-1]|{t}[1:] = {t}[:-1]|{t}[::-1] += {t}
    {t}[:] = {t}.T
    np.diagonal({t}).copy()[...] = {n}|np.put({t}, 1, {n})|del {t}|{t}[0] = {t}[-1] = {n}
    {t}[tuple(np.argwhere({t} == {t})[0])] = {n}
    np.maximum({t}, {s}, out={t})|np.fmin({t}, {n}, {t})|np.divide({t}, 2, out={t})|np.negative({t}, out={t}[::-1])
    np.nan_to_num({t}, copy=False)
"""

GROUPS = {name: entries(text) for name, text in VALUES.items()}
if find_spec("pullback_linalg"):
    GROUPS["linalg"] = entries(LINALG)
if find_spec("pullback_fft"):
    GROUPS["fft"] = entries(FFT)
WRITING = entries(WRITES)
PLAIN = entries(
    """
        np.sign(|np.floor(|np.ceil(|np.rint(|np.trunc(|np.round(|floor_divide(|//|np.spacing(|astype(int)
    """
)
"""Marks of the templates whose result has no derivative: a plain array."""

HOLES = {
    "n": entries("0.5|2|-1.5|3|0|np.float32(0.75)|np.float64(-0.25)|True|{a}.sum()"),
    "s": entries("{b}|{b}|{b}|0.5|{b}[0]|{b} * 2|{t}|np.sin({b})|np.sum({b})"),
    "p": entries("(np.abs({a}) + 0.3)|(np.square({a}) + 0.5)|np.exp(1.0 * {a})|({a} * {a} + 1)"),
    "u": entries("np.tanh(1.0 * {a})|np.sin(0.9 * {a})|({a} / (1 + np.abs({a})))"),
    "axis": entries("None|0|-1|1|(0, 1)|(-1, 0)|()|-2"),
    "one": entries("-1|0|1|-2"),
    "flag": entries("False|True"),
    "real": entries("np.float64|np.float32"),
    "method": entries('"lower"|"nearest"|"midpoint"|"hazen"|"higher"|"weibull"|"median_unbiased"'),
    "pad": entries('"edge"|"reflect"|"symmetric"|"wrap"|"mean"|"maximum"|"median"|"minimum"'),
    "shape": entries("(-1,)|(-1, 1)|(1, -1)|(3, -1)|(-1, 3)|(2, -1)|(-1, 2)|(2, 1, -1)"),
    "perm": entries("(1, 0)|(-1, 0)|(1, 2, 0)|(2, 0, 1)|(0, -1, 1)"),
    "order": entries('1|2|np.inf|-np.inf|3|"fro"|-1|"nuc"'),
    "spd": entries("({a} @ {a}.T + 2 * np.eye(len({a})))|({a} + {a}.T + 6 * np.eye(3))"),
    "psd": entries("({a} @ np.conj({a}.T) + 2 * np.eye(len({a})))"),
    "mask": entries(
        "{x} > 0.1|{x} < 0|np.abs({x}) > 0.5|np.arange(3) != 1|m0|True|[True, False, True]|{x} == {x}.max()"
    ),
    "view": entries("0|-1|1:|:-1|::2|::-1|...|..., 0|..., 1:|..., ::-1|None|:, None|1:, :-1|:, 1|()|1:1"),
    "key": entries(
        """
            [0, -1]|[0, 0, 1]|0, 1|..., [1, 0]|[1, 0], [0, 1]|[0, 1], :, [1, 0]|[[0], [1]], [0, 1]|0, [1, 0]|[1, 0], 0
            np.ix_([0, 1], [1, 0])|np.array(1)|[]|np.arange(len({x})) % 2 == 0|{x} > 0|k0|..., k0|[1, 0], None|True
            np.array([[0, 1], [1, 0]])|[0, 1], 1:|1:, [0, 0]|..., None, [1, 1]|m0|np.int64(1)|len({x}) - 1
            slice(1, None)
        """
    ),
    "keys": entries(
        "[0, 0, 1]|0|slice(1, None)|([0, 1], [1, 1])|(Ellipsis, [0, 0])|k0|Ellipsis|{x} > 0|(slice(None), [1, 1])"
    ),
}
CHOOSING = ("mask", "key", "keys", "view")
"""Holes whose values choose elements, and give none."""
