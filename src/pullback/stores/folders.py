"""The folder of one store: its own, whoever else has one in the same directory; removed at the end, or by the next run.

Beside each folder lies a file that its process keeps locked. The system lets go of the lock when the process ends,
however it ends: a folder whose lock is free belongs to nobody.
"""

import os
import shutil
from contextlib import suppress
from io import FileIO
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Protocol
from uuid import uuid4

from attrs import define, field

from pullback.words.errors import StoreError
from pullback.words.optional_libraries import optional_library

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows: nobody's folders stay where they are
    flock = None  # type: ignore[assignment]

PREFIX, _LOCK = "pullback-", ".lock"


class Files(Protocol):
    """What is asked of a file system: methods of fsspec's, so that any of its file systems serves."""

    def open(self, path: str, mode: str) -> Any:
        """A binary file, to be written (``"wb"``) or read (``"rb"``)."""

    def makedirs(self, path: str, exist_ok: bool) -> None:
        """Make a folder, and those around it."""

    def rm_file(self, path: str) -> None:
        """Remove a file."""

    def rm(self, path: str, recursive: bool) -> None:
        """Remove a folder."""


class LocalFiles:
    """The files of this machine."""

    def open(self, path: str, mode: str) -> Any:
        """A binary file."""
        return open(path, mode)  # noqa: PTH123 - whoever asks closes it

    def makedirs(self, path: str, exist_ok: bool) -> None:
        """Make a folder that nobody else may look into."""
        os.makedirs(path, 0o700, exist_ok)  # noqa: PTH103

    def rm_file(self, path: str) -> None:
        """Remove a file."""
        os.remove(path)  # noqa: PTH107

    def rm(self, path: str, recursive: bool) -> None:  # noqa: ARG002 - it always is
        """Remove a folder with all that is in it."""
        shutil.rmtree(path)


@define(eq=False)
class Folder:
    """A folder of one store's own. ``path`` has no slash at its end."""

    files: Files
    path: str
    around: Path | None = None
    """The directory, where it is one of this machine."""
    lock: FileIO | None = field(default=None, init=False)
    owner: int = field(factory=os.getpid, init=False)

    @property
    def is_ours(self) -> bool:
        """Whether this is the process that made it, not one that was forked off."""
        return self.owner == os.getpid()

    def make(self) -> None:
        """Make it, and remove those that killed runs have left there; raises :class:`StoreError` where it cannot be
        made."""
        try:
            if self.around is None:
                self.files.makedirs(self.path, exist_ok=False)
                return
            self.around.mkdir(parents=True, exist_ok=True)
            _remove_orphans(self.around)
            self.lock = _locked(self._lock_path)
            Path(self.path).mkdir(0o700)
        except Exception as error:
            if self.around is not None and not isinstance(error, OSError):
                raise  # file systems behind URLs alone have errors of their own
            where = self.path.rpartition("/")[0] if self.around is None else self.around
            raise StoreError(
                f"no folder can be made in the directory {where}: {error}. Name one that can be written to, as "
                "directory=",
                str(where),
            ) from error

    def close(self) -> None:
        """Remove it."""
        if not self.is_ours:
            return
        with suppress(Exception):  # the error that may be under way counts more than a file that is left
            self.files.rm(self.path, recursive=True)
        if self.around is not None:
            shutil.rmtree(self.path, ignore_errors=True)  # where the error of a time limit has broken that off
            with suppress(OSError):
                if not Path(self.path).exists():  # else the next run removes it, which looks for the lock
                    self._lock_path.unlink()
            if self.lock is not None:
                lock, self.lock = self.lock, None
                lock.close()

    @property
    def _lock_path(self) -> Path:
        return Path(f"{self.path}{_LOCK}")


def file_system(url: str) -> tuple[Any, str]:
    """The file system behind an fsspec URL, and the path in it."""
    fsspec = optional_library("fsspec", f"the directory {url} is a URL, which needs fsspec", extra="fsspec")
    files, path = fsspec.core.url_to_fs(url)
    return files, path


def folder_in(directory: Any, files: Files | None, rank: str) -> Folder:
    """A folder in ``directory`` that is yet to be made: a path, an fsspec URL, or None for the system's temporary
    directory. Its name says the ``rank``, the process, and is like no other's."""
    where = gettempdir() if directory is None else os.fspath(directory)
    if files is None and "://" in where:
        files, where = file_system(where)
        files = None if getattr(files, "local_file", False) else files  # of this machine: with locks
    name = f"{PREFIX}{f'rank{rank}-' if rank else ''}{os.getpid()}-{uuid4().hex[:12]}"
    if files is not None:
        return Folder(files, f"{where.rstrip('/')}/{name}")
    around = Path(where).absolute()  # the program may go to another directory meanwhile
    return Folder(LocalFiles(), str(around / name), around)


def lock_file(path: Path) -> FileIO:
    """A file to be locked, for its user alone; made where there is none. It is closed, and the lock with it, when
    nobody holds this: an interrupt leaves no number of a file behind."""
    lock = FileIO(path, "a+")
    with suppress(FileNotFoundError):  # another run has taken it for an orphan
        path.chmod(0o600)  # no file of Python's is made so at once, without a number in between
    return lock


def is_at(lock: FileIO, path: Path) -> bool:
    """Whether this is the file that is there now: another run may have removed it, and made it again."""
    try:
        return path.stat().st_ino == os.fstat(lock.fileno()).st_ino
    except FileNotFoundError:
        return False


def _locked(path: Path) -> FileIO:
    """The lock file of a new folder. Another run may take it for an orphan in the moment before it is locked: then it
    is made again."""
    while True:
        lock = lock_file(path)
        if flock is None:
            return lock
        try:
            flock(lock, LOCK_EX)
        except OSError:  # a file system without locks
            return lock
        if is_at(lock, path):
            return lock
        lock.close()


def _remove_orphans(around: Path) -> None:
    """Remove what runs have left that ended without removing it."""
    if flock is None:
        return
    user = os.getuid()
    for lock_path in around.glob(f"{PREFIX}*{_LOCK}"):
        with suppress(OSError):  # somebody holds it, or has removed it just now
            if lock_path.lstat().st_uid != user:
                continue
            with FileIO(lock_path, "r+", opener=lambda name, _: os.open(name, os.O_RDWR | os.O_NOFOLLOW)) as lock:
                flock(lock, LOCK_EX | LOCK_NB)
                if is_at(lock, lock_path):
                    shutil.rmtree(lock_path.with_suffix(""), ignore_errors=True)
                    lock_path.unlink()
