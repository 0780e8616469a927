"""The tier on disk, or behind any fsspec URL: entries go there in the background and come back ahead of their use.

At most ``queue`` entries are in memory on their way, and these are booked (reason ``queue``). An entry takes its place
when it is stored, and gives it up when that of a later one is needed, when it is handed out, or when it is deleted:
never at the moment at which the disk happens to be ready. So the figures are the same in every run, and in a plan.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar
from weakref import finalize, ref

from attrs import define, field, frozen

from pullback.stores.background import Background, Job
from pullback.stores.buffers import Window, packed, unpacked
from pullback.stores.codecs import Array, as_codec
from pullback.stores.figures import Figures
from pullback.stores.folders import Files, Folder, folder_in
from pullback.stores.part_files import PartFile
from pullback.words.errors import PolicyError


def _as_queue(value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise PolicyError(f"queue= takes how many entries may be in memory on their way, at least 1, got {value!r}")
    return value


def _as_rank(value: int | str | None) -> str:
    is_number = hasattr(value, "__index__") and not isinstance(value, bool)
    if value is not None and not (is_number or (isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.]+", value))):
        raise PolicyError(f"rank= takes a number, or a name of letters, digits, dots and underlines, got {value!r}")
    return "" if value is None else str(value)


def _as_directory(value: str | os.PathLike[str] | None) -> str | None:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise PolicyError(f"directory= takes a path or a URL, got {value!r}; leave it out for a temporary folder")
    return None if value is None else os.fspath(value)


@frozen
class Disk:
    """Entries as ``.npy`` files in a folder of their own in ``directory`` (a path or an fsspec URL; None: the system's
    temporary directory). The folder is removed when the gradient is done; those of killed runs by the next.

    ``codec`` says in which form. ``queue`` is how many entries may be in memory on their way there and back. ``files``
    is an object with the methods of an fsspec file system, to be used for ``directory``. ``rank`` is the number or name
    of this process among several that share the directory: it stands in the name of the folder, and so in every path,
    key and message, ``pullback-rank3-...``.

    Parameters
    ----------
    directory
        A path or an fsspec URL.
    codec
        The form of what is written; None: as it is.
    queue
        Entries that may be in memory on their way, at least 1.
    files
        An object with the methods of an fsspec file system.
    rank
        The number or name of this process.

    Raises
    ------
    PolicyError
        Where an argument is of another kind.
    StoreError
        With ``part``, the path or key, where something cannot be written, or does not come back as it was.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 8, lambda k, u: np.sin(u), x))
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> policy = pb.stores.Stored(pb.Binomial(3), memory=Disk())
    >>> bool(np.all(pb.grad(f, policy=policy)(x) == pb.grad(f)(x)))
    True
    """

    directory: str | None = field(default=None, converter=_as_directory)
    codec: Any = field(default=None, kw_only=True, converter=as_codec)
    queue: int = field(default=2, kw_only=True, converter=_as_queue)
    files: Any = field(default=None, kw_only=True)
    rank: str = field(default=None, kw_only=True, converter=_as_rank)
    name: ClassVar[str] = "disk"

    @property
    def lossy(self) -> bool:
        """Whether other bits may come back."""
        return self.codec is not None and bool(self.codec.lossy)

    def opened(self, ledger: Any, tier: str) -> "OnDisk":
        """The tier, which books in the ledger."""
        return OnDisk(self, ledger, Figures(tier, self.codec), Disk.folder)

    def planned(self, ledger: Any, tier: str) -> "OnDisk":
        """A tier for names of buffers, which books the same and stores nothing."""
        return OnDisk(self, ledger, Figures(tier, self.codec), None)

    def folder(self) -> Folder:
        """A new folder."""
        return folder_in(self.directory, self.files, self.rank)


@define(eq=False)
class Stored:
    """An entry that is stored: what stays of it in memory, and where the rest is."""

    shell: Any
    serial: int
    nbytes: int
    """Bytes of its arrays, with their whole buffers: as every entry is booked, and known to a plan."""
    windows: Sequence[Window] = ()
    parts: Sequence[PartFile] = ()
    items: Sequence[Any] = ()
    """What is booked while it has a place in memory."""
    roots: list[Array] | None = None
    """Its arrays while they are in memory."""
    names: Any = None
    """The entry itself, in a plan."""
    n_parts: int = 0
    """The number of files that it would take, in a plan."""
    job: Any = None
    """What reads it."""
    was_far: bool = False
    """Whether it has been read: then its arrays are others."""


@define(eq=False)
class OnDisk:
    """The tier. Without ``make_folder`` it is that of a plan."""

    place: Disk
    ledger: Any
    figures: Figures
    make_folder: Any
    in_memory: ClassVar[bool] = False
    takes_apart: ClassVar[bool] = True
    folder: Folder | None = field(default=None, init=False)
    worker: Any = field(default=None, init=False)
    closing: Any = field(default=None, init=False)
    serial: int = field(default=0, init=False)
    stored: dict[int, Stored] = field(factory=dict, init=False)
    """All that is stored, by serial number."""
    near: dict[int, Stored] = field(factory=dict, init=False)
    """The entries with a place in memory, the oldest first."""
    written: dict[int, tuple[Any, PartFile]] = field(factory=dict, init=False)
    """A weak reference to each array that is alive, and the part that it is stored as, by its id."""
    n_parts: int = field(default=0, init=False)

    # The verbs of a tier.
    def prepare(self) -> None:
        """Make room for an entry that is about to be made."""
        self._make_room(())

    def take(self, entry: Any, label: str) -> Any:
        """Store an entry; one that cannot be taken apart stays as it is."""
        if not hasattr(entry, "split"):
            return entry
        self._require_written()
        items = entry.items
        shell, arrays = entry.split()
        kept = {key for key, _, _ in shell.items}
        items = [item for item in items if item[0] not in kept]
        stored = Stored(shell, self.serial, sum(nbytes for _, nbytes, _ in items))
        self._enter(stored, items)
        if self.make_folder is None:
            stored.names, stored.n_parts = entry, len(items)
            self.figures.n_writes += len(items)
            self.figures.given_bytes += stored.nbytes
            return stored
        stored.roots, stored.windows = packed(arrays)
        self._open()
        never = getattr(entry, "never_changes", False)
        stored.parts = [self._part(root, f"array {k} of the {label}", never) for k, root in enumerate(stored.roots)]
        return stored

    def taken_up(self, shell: Any, windows: Sequence[Window], parts: Sequence[PartFile]) -> Stored:
        """What is stored for an entry whose parts another process has written, later than those taken up before."""
        self._open()
        stored = Stored(shell, self.serial, sum(part.nbytes for part in parts), windows, parts)
        self.serial += 1
        self.stored[stored.serial] = stored
        return stored

    def give(self, stored: Any) -> Any:
        """The entry, which gives up its place in memory; the one stored before it is read meanwhile."""
        if type(stored) is not Stored:
            return stored
        if stored.serial not in self.near:
            self._read(stored, ())
        if stored.job is not None:
            stored.job.wait()
            self._require_written()  # why there is nothing to read
            try:
                stored.roots = stored.job.result()
            except BaseException:
                self._leave(stored)  # whoever asks again has it read again
                raise
        roots = stored.roots
        self._leave(stored)
        before = max((serial for serial in self.stored if serial < stored.serial), default=None)
        if before is not None and before not in self.near:
            self._read(self.stored[before], (before,))
        if self.make_folder is None:
            return stored.names.twin() if stored.was_far else stored.names
        return stored.shell.joined(unpacked(roots or (), stored.windows))

    def look(self, stored: Any) -> Any:
        """What is in memory of the entry."""
        return stored.shell if type(stored) is Stored else stored

    def drop(self, stored: Any) -> None:
        """Its files are removed."""
        if type(stored) is not Stored:
            return
        del self.stored[stored.serial]
        for part in stored.parts:
            part.users -= 1
            if part.users or self.folder is None:
                continue
            self.written.pop(part.key, None)
            if not part.job.cancel() and self.folder.is_ours:
                self._asked(_remove, self.folder.files, part.path)
        self._leave(stored)

    def close(self) -> None:
        """Remove the folder, and end the thread."""
        if self.folder is not None:
            _close(self.worker, self.folder)
        if self.closing is not None:
            self.closing.detach()
        for stored in list(self.near.values()):
            self._leave(stored)
        self.folder, self.worker, self.closing = None, None, None
        self.stored.clear()
        self.written.clear()
        self.figures.jobs.clear()

    # Places in memory.
    def _enter(self, stored: Stored, items: Sequence[Any]) -> Stored:
        self._make_room(())
        self.serial += 1
        self.stored[stored.serial] = self.near[stored.serial] = stored
        stored.items = [(key, nbytes, "queue") for key, nbytes, _ in items]
        self.ledger.hold(stored.items)
        return stored

    def _make_room(self, wanted: Sequence[int]) -> None:
        while len(self.near) >= self.place.queue:
            self._leave(next((s for serial, s in self.near.items() if serial not in wanted)))

    def _leave(self, stored: Stored) -> None:
        """Give up the place, once the arrays are not read or written any more."""
        if self.near.pop(stored.serial, None) is None:
            return
        for job in (*(part.job for part in stored.parts), stored.job):
            if job is not None and (self.folder is None or self.folder.is_ours):
                job.wait()
        stored.roots, stored.job = None, None
        self.ledger.release(stored.items)
        stored.items = ()

    def _read(self, stored: Stored, wanted: Sequence[int]) -> None:
        """Begin to read an entry, in a place of its own."""
        self._make_room(wanted)
        stored.was_far = True
        self.near[stored.serial] = stored
        stored.items = [((id(self), stored.serial), stored.nbytes, "queue")]
        self.ledger.hold(stored.items)
        self.figures.n_reads += stored.n_parts
        if self.make_folder is not None:
            assert self.folder is not None  # something is stored there
            if not self.folder.is_ours:  # of what was to be written when the process was forked off
                for part in stored.parts:
                    part.job.wait()
            stored.job = self._asked(_read_all, stored.parts, self.folder.files, self.place.codec, self.figures)

    # Files.
    def _open(self) -> None:
        if self.folder is None:
            self.folder, self.worker = self.make_folder(self.place), Background()
            self.closing = finalize(self, _close, self.worker, self.folder)
            self.folder.make()  # last: it is removed, wherever an interrupt comes

    def _part(self, root: Array, label: str, never: bool) -> PartFile:
        """The part for a buffer; that which it is stored as already, if its entries ``never`` change."""
        known = self.written.get(id(root))
        if known is not None and known[0]() is root and known[1].users:
            known[1].users += 1
            return known[1]
        folder = self.folder
        assert folder is not None  # _open
        self.n_parts += 1
        part = PartFile.of(root, f"{folder.path}/{self.n_parts}.npy", label)
        part.job = self._asked(part.write, folder.files, self.place.codec, root, self.figures)
        self.figures.jobs.append(part.job)
        if never:
            part.key = id(root)
            self.written[part.key] = ref(root), part
        return part

    def _asked(self, function: Any, *args: Any) -> Any:
        """What tells that this is done, in the background if there still is one: not in a process that was forked off,
        nor when the program ends."""
        if self.folder is not None and self.folder.is_ours:
            with suppress(RuntimeError):
                return self.worker.do(function, *args)
        job = Job(partial(function, *args))
        job.run()
        return job

    def _require_written(self) -> None:
        """Raise the error of a write that has failed."""
        jobs = self.figures.jobs
        done = [job for job in jobs if job.done]
        jobs[:] = [job for job in jobs if not job.done]
        for job in done:
            job.result()


def _read_all(parts: Sequence[PartFile], files: Files, codec: Any, figures: Figures) -> list[Array]:
    return [part.read(files, codec, figures) for part in parts]


def _remove(files: Files, path: str) -> None:
    with suppress(Exception):  # the folder goes in the end
        files.rm_file(path)


def _close(worker: Background, folder: Folder) -> None:
    try:
        _end(worker, folder)
    except BaseException:  # an interrupt: what it has broken off is done again
        _end(worker, folder)
        raise


def _end(worker: Background, folder: Folder) -> None:
    if folder.is_ours:
        worker.close()
        folder.close()
