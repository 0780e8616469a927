"""What looks at the memory of its operand, and what is a copy: as in NumPy, for whoever writes to it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pullback as pb

CALLS = """
    x.flat[1:3]|x.flat[...]|x.flat[[0, 1]]|x.flat[()]|x.flatten()|x.ravel()|x.ravel("F")|x.T.ravel()|x.T.ravel("K")
    np.take(x, 0, axis=0)|np.take(x, -1, axis=0, mode="wrap")|np.take(x, np.int64(9), axis=1, mode="clip")
    x.take(0, axis=0)|x.take([0], axis=0)|x.take(-1, 0, mode="wrap")|np.take(x, np.array(0), axis=0, mode="wrap")
    x.reshape(-1)|x.T.reshape(-1)|np.reshape(x, -1, copy=True)|x.astype(x.dtype)|x.astype(x.dtype, copy=False)
    x.real|np.real(x)|x.imag|z.real|z.imag|np.imag(z)|x.conj()|np.conj(x)|z.conj()|+x|x * 1|x.T|np.transpose(x)
    np.swapaxes(x, 0, 1)|np.moveaxis(x, 0, 1)|np.rollaxis(x, 1)|x.squeeze()|np.squeeze(x[:1])|np.expand_dims(x, 0)
    x[None]|x[...]|x[:]|x[()]|x[0]|x[np.int64(0)]|x[np.array(0)]|x[[0]]|x[x > 0]|x[True]|x[0, [0]]|x[np.array(0), :]
    x.diagonal()|np.diag(x)|np.diag(x[0])|np.atleast_1d(x)|np.atleast_3d(x)|np.broadcast_to(x, x.shape)
    np.broadcast_arrays(x, x)[0]|np.split(x, 2)[0]|np.vsplit(x, 2)[0]|np.unstack(x)[0]|np.flip(x)|np.rot90(x)
    np.rot90(x, 4)|np.roll(x, 0)|np.copy(x)|np.concatenate([x])|np.stack([x])|np.vstack([x])|np.hstack([x])
    np.column_stack([x])|np.block([x])|np.tile(x, 1)|np.repeat(x, 1)|np.resize(x, x.shape)|np.pad(x, 0)
    np.insert(x, [], 0)|np.delete(x, [])|np.append(x, [])|np.trim_zeros(x[0])|np.meshgrid(x[0], x[0])[0]
    np.meshgrid(x[0], x[0], sparse=True)[0]|np.meshgrid(x[0], copy=False)[0]|np.tril(x)|np.where(True, x, x)
    np.choose(0, [x, x])|np.compress([True, True], x, axis=0)|np.sort(x[:1, :1])|np.partition(x, 0)|np.nan_to_num(x)
    np.nan_to_num(x, copy=False)|np.real_if_close(x)|np.clip(x, None, 9)|np.round(x, 3)|np.sum(x, axis=())
    np.max(x, axis=())|np.mean(x, axis=())|np.maximum.reduce(x, axis=())|np.cumsum(x[:, :1], axis=1)|np.diff(x, n=0)
    np.unwrap(x)|np.apply_over_axes(np.sum, x, [])|np.polyadd(x[0], 0)|np.polyder(x[0], 0)|x.view()|x.repeat(1)
    np.lib.stride_tricks.sliding_window_view(x, 1, axis=0)|np.select([True], [x])|np.sort_complex(z)|x ** 1
"""


def entries(text: str) -> list[str]:
    return [call.strip() for call in text.replace("\n", "|").split("|") if call.strip()]


def seen(call: str, x: Any, z: Any, value: Callable[[Any], Any]) -> tuple[bool, bool, bool]:
    """Whether the result can be written; whether the operand shows what is written there, and the other way round."""
    operand = z if "z." in call or "(z" in call else x
    result = eval(call, {"np": np, "x": x, "z": z})  # noqa: S307 - from the table
    before, writable = np.array(value(operand)), True
    try:
        result[...] = 7.0
    except ValueError:
        writable = False
    forth = not np.array_equal(before, value(operand))
    before = np.array(value(result))
    operand[...] = 5.0
    return writable, forth, not np.array_equal(before, value(result))


@pytest.mark.parametrize("call", entries(CALLS))
def test_a_copy_is_a_copy_and_a_view_a_view(call):
    x = np.array([[0.5, -1.0], [2.0, 0.25]])
    found = []

    def f(x, z):
        found.append(seen(call, x, z, pb.value))
        return np.sum(x) + np.sum(z.real)

    pb.grad(f, argnums=(0, 1))(x.copy(), x + 1j * x)
    assert found == [seen(call, x.copy(), x + 1j * x, lambda x: x)]
