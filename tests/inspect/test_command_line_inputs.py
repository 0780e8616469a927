"""Files that hold no array are refused by name."""

from pathlib import Path

import numpy as np
import pytest

from pullback.inspect.command_line_inputs import load_array
from pullback.words.errors import InputFileError


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: None, r"there is no file .*a\.npy; write the path.*numpy\.save"),
        (
            lambda p: np.save(p, np.array([{"a": 1}], dtype=object), allow_pickle=True),
            r"a\.npy holds pickled Python objects.*numeric array",
        ),
        (lambda p: np.save(p, np.array(["text"])), r"a\.npy holds dtype <U4, which is not numeric"),
        (lambda p: Path(p).write_bytes(b"not an array"), r"a\.npy is no \.npy file|a\.npy holds pickled"),
    ],
)
def test_a_bad_npy_file(tmp_path, write, message):
    path = tmp_path / "a.npy"
    write(path)
    with pytest.raises(InputFileError, match=message):
        load_array(str(path))
