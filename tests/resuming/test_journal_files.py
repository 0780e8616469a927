"""The files of a journal: whole or refused, whatever has become of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb
from pullback.resuming.journal_files import KeptFiles, KeptFolder, Rows, read_text, write_text
from pullback.resuming.parts_beside import PartsBeside


def test_a_text_is_replaced(tmp_path, synced):
    path = tmp_path / "loop-0.json"
    synced.clear()
    assert read_text(path) is None
    for told in ({"a": [1, None]}, {"b": "x" * 1000}):
        write_text(path, told)
        assert read_text(path) == told
    assert [each.name for each in tmp_path.iterdir()] == ["loop-0.json"]
    assert len(synced) == 4, "each time the file, and the folder"


def test_a_part_is_synchronised(tmp_path, synced):
    synced.clear()
    with KeptFiles().open(str(tmp_path / "1.npy"), "wb") as file:
        file.write(b"part")
        assert not synced
    assert len(synced) == 1
    assert (tmp_path / "1.npy").read_bytes() == b"part"


@pytest.mark.parametrize("where", [0, 40, -1])
def test_a_flipped_bit_of_a_text_is_refused(tmp_path, where):
    path = tmp_path / "loop-0.json"
    write_text(path, {"a": list(range(50))})
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    path.write_bytes(content)
    with pytest.raises(pb.ResumeError, match=r"loop-0\.json has the checksum"):
        read_text(path)


def test_a_text_that_cannot_be_written_is_a_named_error(tmp_path):
    with pytest.raises(pb.StoreError, match="could not be written") as caught:
        write_text(tmp_path / "gone" / "loop-0.json", {})
    assert caught.value.part.endswith("loop-0.json")


@settings(max_examples=30)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.booleans(), st.sampled_from(["f8", "c8", "u8"]))
def test_rows_come_back_however_they_were_added(tmp_path_factory, stops, downward, dtype):
    path = tmp_path_factory.mktemp("rows") / "y0.npy"
    array = np.arange(7 * 3).reshape(7, 3).astype(dtype)
    rows = Rows(path, array.shape, array.dtype, downward)
    for n_done in stops:
        rows.extend(array, n_done)
    told, found = rows.told(), np.zeros_like(array)
    again = Rows.taken_up(path, told)
    if again.n_done:
        again.read(found, told[-1])
    done = slice(7 - max(stops), 7) if downward else slice(0, max(stops))
    assert found[done].tobytes() == array[done].tobytes()
    assert not np.delete(found, np.r_[done], 0).any()
    again.extend(array, 7)
    assert np.load(path).tobytes() == array.tobytes()
    assert again.told() == Rows.taken_up(path, again.told()).told()[:4] + again.told()[4:]


@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_harmed_rows_are_refused(tmp_path, harm):
    rows = Rows(tmp_path / "y0.npy", (5, 2), np.dtype("f8"), downward=False)
    rows.extend(np.ones((5, 2)), 4)
    do_harm(tmp_path / "y0.npy", harm, -10)
    with pytest.raises(pb.ResumeError, match=r"y0\.npy .*Remove the directory"):
        Rows.taken_up(tmp_path / "y0.npy", rows.told()).read(np.ones((5, 2)), rows.told()[-1])


@pytest.mark.parametrize("harm", ["flip", "cut", "remove"])
def test_harmed_parts_are_refused(tmp_path, harm):
    folder = KeptFolder(str(tmp_path / "loop-0"))
    folder.make()
    beside = PartsBeside(tmp_path / "loop-0.json", folder)
    told = beside.put([np.ones(4), None, [np.zeros(3)]], "cotangents")
    values = beside.get(told)
    assert values[0].tolist() == [1] * 4
    assert values[2][0].tolist() == [0] * 3
    do_harm(tmp_path / "loop-0" / "2.npy", harm, -10)
    with pytest.raises(pb.ResumeError, match=r"cotangents of the journal.*2\.npy.* begin anew"):
        beside.get(told)


def do_harm(path, harm, where):
    content = bytearray(path.read_bytes())
    content[where] ^= 1
    if harm == "flip":
        path.write_bytes(content)
    elif harm == "cut":
        path.write_bytes(content[:-1])
    else:
        path.unlink()
