"""What lies beside the text of one journal, in a folder of its own: arrays as parts, and rows."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from attrs import define, field

from pullback.memory.entry_parts import Taken, put_in
from pullback.resuming.journal_files import (
    KeptFolder,
    Rows,
    part_told,
    told_part,
    told_windows,
    windows_told,
    write_text,
)
from pullback.resuming.plain_values import decoded, encoded
from pullback.stores.buffers import packed, unpacked
from pullback.stores.figures import Figures
from pullback.stores.part_files import PartFile
from pullback.words.errors import ResumeError, StoreError


@define(eq=False)
class PartsBeside:
    """The text at ``text_path`` and the folder beside it."""

    text_path: Path
    folder: KeptFolder
    n_parts: int = 0
    rows: dict[str, Rows] = field(factory=dict)

    def put(self, values: Any, label: str) -> dict[str, Any]:
        """Write a structure of lists and arrays; what the text has to say of it."""
        taken = Taken()
        shell = taken.out(values)
        roots, windows = packed(taken.arrays)
        parts = []
        for root in roots:
            self.n_parts += 1
            part = PartFile.of(root, f"{self.folder.path}/{self.n_parts}.npy", f"{label} of the journal")
            part.write(self.folder.files, None, root, Figures("journal", None))
            parts.append(told_part(part))
        return {"shell": encoded(shell), "windows": told_windows(windows), "parts": parts}

    def get(self, told: dict[str, Any]) -> Any:
        """The structure again; raises :class:`ResumeError` where a file is not what was written."""
        try:
            parts = [part_told(part, self.folder.path) for part in told["parts"]]
            roots = [part.read(self.folder.files, None, Figures("journal", None)) for part in parts]
        except StoreError as error:
            raise ResumeError(
                f"the run cannot be taken up: {error.args[0]}. Or remove the directory of the journal, to begin anew"
            ) from error
        return put_in(decoded(told["shell"]), unpacked(roots, windows_told(told["windows"])))

    def extend(
        self, name: str, array: np.ndarray[Any, Any], n_done: int, *, n_rows: int | None = None, downward: bool = False
    ) -> None:
        """Write the rows of an array that are done by now, and were not; ``n_rows`` is how many there will be."""
        rows = self.rows.get(name)
        if rows is None:
            shape = (len(array) if n_rows is None else n_rows, *array.shape[1:])
            rows = self.rows[name] = Rows(Path(self.folder.path) / f"{name}.npy", shape, array.dtype, downward)
        rows.extend(array, n_done)

    def read_rows(self, told: dict[str, Any]) -> Iterator[tuple[str, Rows, np.ndarray[Any, Any]]]:
        """The rows that the text names: each as an array, zero where it is not filled."""
        for name, each in told["rows"].items():
            rows = self.rows[name] = Rows.taken_up(Path(self.folder.path) / f"{name}.npy", each)
            array = np.zeros(rows.shape, rows.dtype)
            rows.read(array, each[-1])
            yield name, rows, array

    def write(self, told: dict[str, Any], others: Iterable[KeptFolder]) -> None:
        """Write the text, and remove what it does not name any more, here and in other folders."""
        told["n_parts"] = self.n_parts
        told["rows"] = {name: rows.told() for name, rows in self.rows.items()}
        write_text(self.text_path, told)
        for folder in others:
            folder.files.remove_doomed()
        self.folder.keep_only(self.named(told))

    def named(self, told: dict[str, Any]) -> set[str]:
        """The names of the files here that a text names."""
        given = [*told.get("passes", ()), *([told["results"][0]] if "results" in told else [])]
        parts = {part["name"] for each in given for part in each["parts"]}
        return parts | {f"{name}.npy" for name in told["rows"]}
