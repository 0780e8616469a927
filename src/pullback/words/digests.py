"""Digests: a few bytes that tell whether an array still holds what it held. Not cryptographic; made to be cheap at
memory speed."""

from typing import Any

import numpy as np

_ROW = 512
_LONG = np.dtype(np.longdouble)
_LONG_BYTES = 10 if np.finfo(_LONG).nmant == 63 else _LONG.itemsize
"""The bytes of a long double that hold its value; what pads an 80-bit one to 16 bytes is arbitrary."""


def digest(value: Any) -> bytes:
    """The 512 column sums of the bits of an array, modulo 2**64, hashed; the shape and dtype are part of it.

    Any change of a single element changes it, and so do two elements of one row of 512 changing places.
    """
    if not isinstance(value, np.ndarray):
        if not isinstance(value, np.generic):
            return repr(value).encode()
        return value.tobytes() if value.dtype.char not in "gG" else digest(np.asarray(value))
    flat = value.reshape(-1) if value.flags.c_contiguous else np.ascontiguousarray(value).reshape(-1)
    head = f"{value.shape}{value.dtype.str}".encode()
    raw = flat.view(np.uint8)
    if value.dtype.char in "gG":
        raw = np.ascontiguousarray(raw.reshape(-1, _LONG.itemsize)[:, :_LONG_BYTES]).reshape(-1)
    words = raw[: raw.size // 8 * 8].view(np.uint64)
    rest = raw[words.size * 8 :].tobytes()
    whole = words.size // _ROW * _ROW
    sums = np.add.reduce(words[:whole].reshape(-1, _ROW), axis=0).tobytes() if whole else b""
    return head + hash((sums, words[whole:].tobytes(), rest)).to_bytes(9, "little", signed=True)
