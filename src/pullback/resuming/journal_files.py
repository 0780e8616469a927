"""The files of a journal: a text that is replaced at once, arrays beside it, rows that are added to as they come.

Every one has a checksum. What the newest text does not name is nobody's: a run that was killed may have left it.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BufferedWriter, BytesIO, FileIO
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field
from xxhash import xxh3_128, xxh3_128_hexdigest

from pullback.resuming.plain_values import dtype_text
from pullback.stores.background import Job
from pullback.stores.buffers import Window
from pullback.stores.folders import LocalFiles
from pullback.stores.part_files import PartFile
from pullback.words.errors import ResumeError, StoreError


@contextmanager
def named(what: str) -> Iterator[None]:
    """An error of the file system within the block is a :class:`StoreError` that says ``what`` could not be done, and
    at which path."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{what}: {error}. Make room or allow reading and writing there, or name another directory",
            str(error.filename or ""),
        ) from error


def write_text(path: Path, told: Any) -> None:
    """Replace a file by ``told`` as JSON: whoever reads it finds the old text or the new one, whole. Raises
    :class:`StoreError` where it cannot be written."""
    text = json.dumps(told).encode()
    new = path.with_suffix(".new")
    try:
        with new.open("wb") as file:
            file.write(xxh3_128_hexdigest(text).encode() + b"\n" + text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        sync(path.parent)
    except OSError as error:
        raise StoreError(
            f"the journal {path} could not be written: {error}. Make room or allow writing there; the run goes on from "
            "the last journal when the call is made again",
            str(path),
        ) from error


def read_text(path: Path) -> Any:
    """What was written; None where there is no file. Raises :class:`ResumeError` where it holds other bytes."""
    try:
        check, _, text = path.read_bytes().partition(b"\n")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResumeError(
            f"the journal {path} could not be read: {error}. Allow reading it, or remove its directory to begin anew"
        ) from error
    found = xxh3_128_hexdigest(text)
    if check != found.encode():
        raise ResumeError(
            f"the journal {path} has the checksum {found} where {check[:32]!r} was written: it was changed, or the "
            "disk is failing. Remove its directory to begin anew"
        )
    return json.loads(text)


def sync(path: Any) -> None:
    """Which names are in a folder is on the disk now; Windows has no call for that."""
    if os.name == "nt":
        return
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


class _Synced(FileIO):
    """A file that is on the disk when it is closed."""

    def close(self) -> None:
        if not self.closed:
            os.fsync(self.fileno())
        super().close()


@define(eq=False)
class KeptFiles(LocalFiles):
    """Files of this machine that are removed when the journal that names them has been replaced, no sooner."""

    doomed: list[str] = field(factory=list)

    def open(self, path: str, mode: str) -> Any:
        """A binary file; what is written is on the disk when it is closed."""
        return BufferedWriter(_Synced(path, mode)) if mode == "wb" else super().open(path, mode)

    def rm_file(self, path: str) -> None:
        """It will be removed."""
        self.doomed.append(path)

    def remove_doomed(self) -> None:
        """A journal that names none of them has been written."""
        doomed, self.doomed = self.doomed, []
        with named("what the journal needs no more could not be removed"):
            for path in doomed:
                Path(path).unlink(missing_ok=True)


@define(eq=False)
class KeptFolder:
    """A folder that stays when its process ends: that of one tier of one loop."""

    path: str
    files: KeptFiles = field(factory=KeptFiles)
    owner: int = field(factory=os.getpid, init=False)

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that made it, not one that was forked off."""
        return self.owner == os.getpid()

    def make(self) -> None:
        """Make it, where it is not there already; raises :class:`StoreError` where it cannot be made."""
        try:
            Path(self.path).mkdir(0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {self.path} cannot be made: {error}. Name a directory that can be written to", self.path
            ) from error

    def close(self) -> None:
        """It stays, until the journal is removed."""

    def remove(self) -> None:
        """The journal needs it no more."""
        shutil.rmtree(self.path, ignore_errors=True)

    def keep_only(self, names: set[str]) -> None:
        """Remove what a killed run has left that no journal names."""
        with named("what no journal names could not be removed"):
            for path in Path(self.path).iterdir() if Path(self.path).is_dir() else ():
                if path.name not in names and not path.is_dir():  # a folder is nothing of ours
                    path.unlink(missing_ok=True)


# --------------------------------------------------------------------------------------------------- parts, as text
def told_part(part: PartFile) -> dict[str, Any]:
    """A part that has been written, for the text of a journal."""
    return {
        "name": Path(part.path).name,
        "label": part.label,
        "shape": part.shape,
        "dtype": dtype_text(part.dtype),
        "turned": part.turned,
        "nbytes": part.nbytes,
        "header": part.header.hex(),
        "stored": [part.stored_shape, np.dtype(part.stored_dtype).str],
        "file_bytes": part.file_bytes,
        "checksum": part.checksum.hex(),
    }


def part_told(told: dict[str, Any], folder: str) -> PartFile:
    """The part again. Raises :class:`ResumeError` where its file is gone or has another length."""
    path = Path(folder) / told["name"]
    length = path.stat().st_size if path.exists() else None
    if length != told["file_bytes"]:
        raise ResumeError(
            f"{told['label']}: the file {path} {'is missing' if length is None else f'has {length:,} bytes'} where "
            f"{told['file_bytes']:,} were written, and the run cannot be taken up without it. Remove the directory of "
            "the journal to begin anew"
        )
    done = Job(None)
    done.run()  # it is written: so that it is removed when it is dropped
    part = PartFile(
        str(path), told["label"], tuple(told["shape"]), np.dtype(told["dtype"]), told["turned"], told["nbytes"]
    )
    part.job, part.header, part.checksum = done, bytes.fromhex(told["header"]), bytes.fromhex(told["checksum"])
    part.stored_shape, part.stored_dtype = tuple(told["stored"][0]), np.dtype(told["stored"][1])
    part.file_bytes = told["file_bytes"]
    return part


def told_windows(windows: Sequence[Window]) -> list[Any]:
    """How arrays look at buffers, for the text of a journal."""
    return [
        [w.root, w.offset, w.shape, w.strides, dtype_text(w.dtype), w.writeable, w.whole] for w in windows
    ]  # fmt: skip


def windows_told(told: list[Any]) -> list[Window]:
    """Windows, of what a journal says of them."""
    return [Window(r, o, tuple(shape), tuple(st), np.dtype(d), wr, whole) for r, o, shape, st, d, wr, whole in told]


# ----------------------------------------------------------------------------------------------------------------- rows
@define(eq=False)
class Rows:
    """An array that is filled row by row, as a file that is filled so too: from the first row on, or ``downward``."""

    path: Path
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    downward: bool
    n_done: int = 0
    check: Any = field(factory=xxh3_128)

    @classmethod
    def taken_up(cls, path: Path, told: list[Any]) -> "Rows":
        """As a journal says; :meth:`read` has to come next."""
        shape, dtype, downward, n_done, _ = told
        return cls(path, tuple(shape), np.dtype(dtype), downward, n_done)

    def told(self) -> list[Any]:
        """What it says for the text of a journal."""
        return [self.shape, dtype_text(self.dtype), self.downward, self.n_done, self.check.hexdigest()]

    def extend(self, array: np.ndarray[Any, Any], n_done: int) -> None:
        """Write the rows that are done by now, and were not; ``array`` holds them at their places."""
        if n_done <= self.n_done:
            return
        n = self.shape[0]
        low, high = (n - n_done, n - self.n_done) if self.downward else (self.n_done, n_done)
        rows = np.ascontiguousarray(array[low:high])
        try:
            with self.path.open("r+b" if self.n_done else "w+b") as file:
                header = self._header()
                if not self.n_done:
                    file.write(header)
                file.seek(len(header) + low * self._row_bytes)
                file.write(rows.tobytes())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise StoreError(
                f"rows of the journal could not be written to {self.path}: {error}. Make room or allow writing there",
                str(self.path),
            ) from error
        self._note(rows)
        self.n_done = n_done

    def read(self, into: np.ndarray[Any, Any], checksum: str) -> None:
        """Put the rows where they were; raises :class:`ResumeError` where the file holds other ones."""
        n = self.shape[0]
        low, high = (n - self.n_done, n) if self.downward else (0, self.n_done)
        wanted = (high - low) * self._row_bytes
        try:
            with self.path.open("rb") as file:
                file.seek(len(self._header()) + low * self._row_bytes)
                content = file.read(wanted)
        except OSError as error:
            raise ResumeError(
                f"the rows {self.path} could not be read: {error}. Remove the directory of the journal to begin anew"
            ) from error
        if len(content) == wanted:
            rows = np.ndarray((high - low, *self.shape[1:]), self.dtype, content)
            self._note(rows)
        if len(content) != wanted or self.check.hexdigest() != checksum:
            raise ResumeError(
                f"the rows {self.path} are not those that were written: the file was changed, or the disk is failing. "
                "Remove the directory of the journal to begin anew"
            )
        into[low:high] = rows

    def _note(self, rows: np.ndarray[Any, Any]) -> None:
        """Rows one after the other as they came, however many at once."""
        self.check.update((rows[::-1] if self.downward else rows).tobytes())

    @property
    def _row_bytes(self) -> int:
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def _header(self) -> bytes:
        told = BytesIO()
        description = {"descr": self.dtype.str, "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(told, description)
        return told.getvalue()
