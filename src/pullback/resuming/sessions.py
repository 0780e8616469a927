"""``resume``: the block in which loops keep journals, one for each pass, in the order in which they come."""

import os
import shutil
from contextlib import suppress
from functools import cache
from io import FileIO
from itertools import count, islice
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from attrs import define, field, frozen
from xxhash import xxh3_64_hexdigest

from pullback.memory.in_force import RESUMED, depth, resumed
from pullback.memory.store import TemporaryFolder
from pullback.recording.tape import REPLAYABLE
from pullback.resuming.journal_files import KeptFolder, named, read_text
from pullback.resuming.journals import LoopJournal
from pullback.resuming.parts_beside import PartsBeside
from pullback.resuming.run_keys import key_of, require_same
from pullback.scheduling.machine.actions import Save
from pullback.stores.disk import Disk, OnDisk
from pullback.stores.figures import Figures
from pullback.stores.folders import is_at, lock_file
from pullback.words.errors import PullbackError, ResumeError, StoreError, say_where

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows: nobody is kept out
    flock = None  # type: ignore[assignment]

_REMEDY = "give the loop a policy that keeps snapshots on disk, as policy=pullback.Tiered(4, 20)"
_NAME, _LOCK = "pullback-loop-", "pullback.lock"
_OPEN: "set[Session]" = set()
_LOOKED_AT = 1_000
"""Actions of a schedule that are looked through for a snapshot on disk."""


def resume(directory: Any) -> "Session":
    """Within the block, loop functions under a policy with snapshots on disk write down how far they are; after the
    process was killed, the same block with the same directory goes on from there, with the same bits.

    Of each loop at most what lies between two snapshots on disk is done twice. The program is run again up to its first
    loop, and between loops; the steps of loops are not, but for the first of each. Effects (:func:`effect`) are not
    called again for steps that are not. What is given to a loop, the code of its body and what that reads are compared
    by digests; nothing is pickled.

    Parameters
    ----------
    directory
        Where the journal is. When the block ends without an error it is removed, so that the next one begins anew.

    Returns
    -------
    A context manager.

    Raises
    ------
    ResumeError
        Where the journal is that of another call, was changed, or is in use by another process; and, before its first
        step, for a loop that cannot be taken up: one whose policy stores nothing on a local disk, of unknown length
        (``while_loop``), within another derivative; and for ``pullback.steps`` under a policy. For a URL.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> from tempfile import mkdtemp
    >>> def loss(x):
    ...     return np.sum(pb.fori_loop(0, 100, lambda k, u: u + 0.1 * np.sin(u), x, policy=pb.Tiered(2, 5)))
    >>> x = np.array([0.1, 0.2])
    >>> with pb.resume(mkdtemp()):
    ...     g = pb.grad(loss)(x)
    >>> bool(np.all(g == pb.grad(loss)(x)))
    True
    """
    path = os.fsdecode(directory)
    if "://" in path:
        raise ResumeError(
            f"the journal of resume lies in a directory of this machine, and {path!r} is a URL; name a directory, on a "
            "disk that stays when the process is killed"
        )
    return Session(Path(path).absolute())


@frozen
class KeptPlace:
    """The place of a policy on disk, in a folder that stays."""

    disk: Disk
    folder: KeptFolder
    lossy: bool = False

    def opened(self, ledger: Any, tier: str) -> OnDisk:
        """The tier."""
        return OnDisk(self.disk, ledger, Figures(tier, self.disk.codec), lambda _: self.folder)

    def planned(self, ledger: Any, tier: str) -> OnDisk:
        """A tier for names of buffers."""
        return self.disk.planned(ledger, tier)


@define(eq=False)
class Session:
    """The block of :func:`resume`, in ``directory``."""

    directory: Path
    n_loops: int = field(default=0, init=False)
    numbers: "count[int]" = field(factory=count, init=False)
    lock: FileIO | None = field(default=None, init=False)
    token: Any = field(default=None, init=False)
    folders: list[KeptFolder] = field(factory=list, init=False)
    """The folders that were made, wherever they are."""

    def __enter__(self) -> None:
        if resumed() is not None or self.lock is not None:
            raise ResumeError("pullback.resume is in force already; leave the block around this one first")
        _tell_forked()
        with named(f"no journal can be written in {self.directory}"):
            self.directory.mkdir(0o700, parents=True, exist_ok=True)
            self.lock, self.n_loops, self.numbers = _locked(self.directory / _LOCK), 0, count()
        _OPEN.add(self)
        self.token = RESUMED.set(self)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        lock, self.lock = self.lock, None
        RESUMED.reset(self.token)
        try:
            if lock is None:
                return  # forked off: files and error are those of a program that is in no block
            if kind is None:
                self._remove()
            elif isinstance(error, StoreError):
                say_where(error, f"the run goes on when the call is made again; to begin anew, remove {self.directory}")
        finally:
            if lock is not None:
                lock.close()
                _OPEN.discard(self)

    def require_open(self) -> None:
        """Raise :class:`ResumeError` where the block has ended, and its journals with it, and in a process that was
        forked off within the block."""
        if self.lock is None:
            raise ResumeError(
                "a loop that began within pullback.resume goes on after the block, which has removed its snapshots, or "
                "in a process that was forked off, whose steps are not for the journal; call the pull within the block "
                "and in its process"
            )

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise :class:`ResumeError` for a program that cannot be taken up."""
        raise ResumeError(f"within pullback.resume: {what}; {remedy}, or leave the block")

    def begun(self, record: Any) -> Any:
        """The journal of a loop that begins, or goes on where a killed run has left it; None for a loop within a step
        of another one, whose journal serves. Raises :class:`ResumeError` where it cannot be taken up."""
        enclosing = record.chain.steps.enclosing
        if enclosing.captures is not None:
            return None
        self.require_open()
        self._require_resumable(record, enclosing)
        number = next(self.numbers)  # threads that were given the context do not get the same one
        self.n_loops = number + 1
        own = KeptFolder(str(self.directory / f"{_NAME}{number}"))
        text_path = self.directory / f"{_NAME}{number}.json"
        told, key = read_text(text_path), key_of(record)
        places = self._places(record, number, own)
        folders = {tier: place.folder for tier, place in places.items()}
        if told is None:
            for folder in (own, *folders.values()):
                folder.remove()
            told = {"key": key}
        else:
            require_same(key, told["key"], f"the journal {text_path}")
        beside = PartsBeside(text_path, own, told.get("n_parts", 0))
        if "n_parts" in told:  # it has been written
            own.keep_only(beside.named(told))
            for tier, folder in folders.items():
                folder.keep_only({p["name"] for x in told["entries"] if x["tier"] == tier for p in x["parts"]})
        own.make()
        self.folders += folders.values()
        record.chain.store.tiers = {**record.chain.store.tiers, **places}
        journal = LoopJournal(self, record, beside, folders, told)
        journal.begin()
        return journal

    def _require_resumable(self, record: Any, enclosing: Any) -> None:
        name = f"the {record.name}"
        if depth() > 1:
            self.refuse(f"{name} is differentiated more than once", "take the derivative of a derivative without it")
        if enclosing.mode == REPLAYABLE and enclosing.governor.replays:
            self.refuse(f"{name} is within steps or a checkpoint, which is run again", "give the loop its own policy")
        if record.n is None:
            self.refuse(f"the length of {name} is not known", "write it as a fori_loop of as many steps as it may take")
        if not _stores(record.policy, record.n, _disks(record)):
            self.refuse(f"{name} runs under {record.policy!r}, which stores nothing on disk", _REMEDY)

    def _places(self, record: Any, number: int, own: KeptFolder) -> dict[str, KeptPlace]:
        """The tiers on disk, each in a folder that stays: in the directory that the policy names, or in ours."""
        places = {}
        for k, (tier, disk) in enumerate(_disks(record).items()):
            if disk.files is not None or "://" in (disk.directory or ""):
                self.refuse(f"{record.policy!r} stores in {disk!r}", "name a directory of this machine")
            if disk.lossy:
                self.refuse(f"{record.policy!r} stores by {disk.codec!r}, which loses bits", "take a lossless codec")
            path = f"{own.path}-{k}"
            if disk.directory is not None:
                name = f"pullback-resumed-{xxh3_64_hexdigest(str(self.directory).encode())}-{number}-{k}"
                path = str(Path(disk.directory).absolute() / name)
            places[tier] = KeptPlace(disk, KeptFolder(path))
        return places

    def _remove(self) -> None:
        """Everything that was written: the texts first, so that nothing is named that is not there."""
        with named("the journal could not be removed"):
            for path in self.directory.glob(f"{_NAME}*.json"):
                path.unlink()
        for path in self.directory.glob(f"{_NAME}*"):
            shutil.rmtree(path, ignore_errors=True)
        for folder in self.folders:
            folder.remove()
        self.folders.clear()
        with suppress(OSError):
            (self.directory / _LOCK).unlink()


@cache
def _tell_forked() -> None:
    """Processes that are forked off are in no block, and do not hold its lock when this process has ended."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_leave)


def _leave() -> None:
    while _OPEN:
        session = _OPEN.pop()
        lock, session.lock = session.lock, None
        if lock is not None:
            lock.close()


def _disks(record: Any) -> dict[str, Disk]:
    """The tiers of a loop that are on disk."""
    found = {}
    for tier, place in record.chain.store.tiers.items():
        kept = place.disk if isinstance(place, KeptPlace) else place
        disk = Disk(kept.directory) if isinstance(kept, TemporaryFolder) else kept
        if isinstance(disk, Disk):
            found[tier] = disk
    return found


def _stores(policy: Any, n: int, disks: dict[str, Disk]) -> bool:
    """Whether a policy stores something in these tiers: it names one, or it would soon."""
    if getattr(policy, "disk_snapshots", 0) != 0 or not disks.keys().isdisjoint(policy.tiers):
        return True
    with suppress(PullbackError):  # a policy that counts bytes, which are not known yet
        actions = islice(policy.schedule(max(n, _LOOKED_AT)), _LOOKED_AT)
        return any(type(action) is Save and action.tier in disks for action in actions)
    return False


def _locked(path: Path) -> FileIO:
    """The lock file, locked, with our number in it. Raises :class:`ResumeError` where another process holds it."""
    while True:
        lock = lock_file(path)
        if flock is None:
            return lock
        try:
            flock(lock, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read(20).decode(errors="replace").strip() or "unknown"
            lock.close()
            raise ResumeError(
                f"the directory {path.parent} is in use by process {holder}. Wait until it has ended, or name another "
                "directory"
            ) from error
        except OSError:  # a file system without locks: nobody is kept out
            return lock
        if is_at(lock, path):
            lock.truncate(0)
            lock.write(str(os.getpid()).encode())
            return lock
        lock.close()
