"""What killed runs have left behind a URL, where no lock tells whether its run is alive."""

from datetime import UTC, datetime
from typing import Any

from pullback.stores.folders import PREFIX, file_system
from pullback.words.errors import PolicyError


def remove_orphans(directory: str, older_than_seconds: float, *, files: Any = None) -> list[str]:
    """Remove the folders of killed runs behind an fsspec URL: those of stores (``pullback-...``) directly in
    ``directory`` in which nothing was written for so long.

    A run may be alive and write nothing for as long as its reverse pass takes. So give more seconds than the longest
    run of those who share the directory takes. What runs on this machine have left in a local directory the next one
    removes by itself: there a lock tells.

    Parameters
    ----------
    directory
        The URL that was given as ``directory=``.
    older_than_seconds
        How long nothing was written, at least 0.
    files
        An object with the methods of an fsspec file system, where the stores were given one.

    Returns
    -------
    list of str
        The paths of what was removed.

    Raises
    ------
    PolicyError
        For a local directory without ``files``, and for other than a number of seconds.

    Example
    -------
    >>> from pullback.stores import remove_orphans
    >>> remove_orphans("memory://runs", 7 * 24 * 3600)
    []
    """
    if isinstance(older_than_seconds, bool) or not older_than_seconds >= 0:
        raise PolicyError(f"older_than_seconds= takes a number from 0 on, got {older_than_seconds!r}")
    if files is None:
        files, directory = file_system(directory)
        if getattr(files, "local_file", False):
            raise PolicyError(
                f"{directory} is a directory of this machine, where the next run removes what killed ones have left; "
                "give a URL"
            )
    around = directory.rstrip("/")
    newest: dict[str, datetime] = {}
    for path in files.find(around) if files.exists(around) else ():
        name = path.removeprefix("/").removeprefix(around.removeprefix("/")).strip("/").partition("/")[0]
        if name.startswith(PREFIX):
            written = files.modified(path)
            newest[name] = max(written, newest.get(name, written))
    now, removed = datetime.now(UTC), []
    for name, written in sorted(newest.items()):
        if (now - written).total_seconds() >= older_than_seconds:
            files.rm(f"{around}/{name}", recursive=True)
            removed.append(f"{around}/{name}")
    return removed
