"""A part as a file: in NumPy's ``.npy`` format, never pickled, with a checksum of all its bytes that is held in memory.

Whatever comes back is what was written, or an error that names the part: a file that is missing, too short or too long,
or has other bytes.
"""

from io import BytesIO
from typing import Any, NoReturn

import numpy as np
from attrs import define
from xxhash import xxh3_128

from pullback.stores.buffers import bytes_of
from pullback.stores.codecs import Array
from pullback.stores.figures import Figures
from pullback.stores.folders import Files
from pullback.words.errors import StoreError

_PLAIN = "biufcmMSU"


@define(eq=False)
class PartFile:
    """One buffer in a file. ``label`` says whose, for messages."""

    path: str
    label: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    turned: bool
    """Whether the buffer is in Fortran's order: its transpose is what is stored."""
    nbytes: int
    users: int = 1
    """How many entries it belongs to."""
    job: Any = None
    """What will tell that it is written."""
    key: int = 0
    """The id of the array that it was, where others may be stored as the same part."""
    header: bytes = b""
    stored_shape: tuple[int, ...] = ()
    stored_dtype: Any = np.uint8
    file_bytes: int = 0
    checksum: bytes = b""

    @classmethod
    def of(cls, root: Array, path: str, label: str) -> "PartFile":
        """The part for a dense buffer."""
        return cls(path, label, root.shape, root.dtype, not root.flags.c_contiguous, root.nbytes)

    def write(self, files: Files, codec: Any, root: Array, figures: Figures) -> None:
        """Write the file; raises :class:`StoreError` where that is refused."""
        dense = root.T if self.turned else root
        stored = dense if codec is None else np.ascontiguousarray(codec.encode(dense))
        if codec is not None and codec.lossy:
            figures.differs(dense, self._decoded(codec, stored))
        self.stored_shape, self.stored_dtype = stored.shape, stored.dtype
        data = bytes_of(stored)
        self.header = _header(stored if stored.dtype.kind in _PLAIN and not stored.dtype.metadata else data)
        check = xxh3_128(self.header)
        check.update(data.data)
        self.checksum, self.file_bytes = check.digest(), len(self.header) + data.nbytes
        try:
            with files.open(self.path, "wb") as file:
                file.write(self.header)
                file.write(data.data)
        except Exception as error:  # file systems behind URLs have errors of their own
            raise StoreError(
                f"{self.label} ({self.file_bytes:,} bytes) could not be written to {self.path}: {error}. Make room or "
                "allow writing there, name another directory, or take a policy that stores less",
                self.path,
            ) from error
        figures.wrote(root, self.file_bytes)

    def read(self, files: Files, codec: Any, figures: Figures) -> Array:
        """The buffer; raises :class:`StoreError` where the file is not what was written."""
        header, stored = np.empty(len(self.header), np.uint8), np.empty(self.stored_shape, self.stored_dtype)
        try:
            with files.open(self.path, "rb") as file:
                length = _fill(file, header) + _fill(file, bytes_of(stored))
                length += len(file.read(1)) if length == self.file_bytes else 0
        except FileNotFoundError as error:
            self._refuse("is missing", error)
        except Exception as error:  # noqa: BLE001 - as in write
            self._refuse(f"could not be read: {error}", error)
        if length != self.file_bytes:
            some = "more" if length > self.file_bytes else f"{length:,}"
            self._refuse(f"has {some} bytes where {self.file_bytes:,} were written")
        check = xxh3_128(header.data)
        check.update(bytes_of(stored).data)
        if check.digest() != self.checksum:
            self._refuse(f"has the checksum {check.hexdigest()} where {self.checksum.hex()} was written")
        figures.n_reads += 1
        dense = self._decoded(codec, stored)
        return dense.T if self.turned else dense

    def _decoded(self, codec: Any, stored: Array) -> Array:
        shape = self.shape[::-1] if self.turned else self.shape
        if codec is not None:
            found: Array = codec.decode(stored, shape, self.dtype)
            return found
        return stored

    def _refuse(self, what: str, error: Exception | None = None) -> NoReturn:
        raise StoreError(
            f"{self.label}: the file {self.path} {what}. It was changed or removed while the gradient was computed, or "
            "the disk is failing: compute the gradient again, in a directory that nobody else touches",
            self.path,
        ) from error


def _header(stored: Array) -> bytes:
    told = BytesIO()
    np.lib.format.write_array_header_1_0(told, np.lib.format.header_data_from_array_1_0(stored))
    return told.getvalue()


def _fill(file: Any, array: Array) -> int:
    """Read as many bytes as the array has, or as there are; how many."""
    view, n = array.data, 0
    while n < len(view):
        got = file.readinto(view[n:])
        if not got:
            break
        n += got
    return n
