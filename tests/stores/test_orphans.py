"""What killed runs have left behind a URL is removed by its age."""

import pytest

import pullback as pb
from pullback.stores import remove_orphans

fsspec = pytest.importorskip("fsspec", reason="fsspec is missing")


def test_folders_in_which_nothing_was_written_for_long_go():
    files = fsspec.filesystem("memory")
    for path in ("/orphans/pullback-1-a/x.npy", "/orphans/deeper/pullback-2-b/x.npy", "/orphans/pullback.txt"):
        files.pipe_file(path, b"bytes")
    try:
        assert remove_orphans("memory://orphans", 3600) == []
        assert [path.strip("/") for path in remove_orphans("memory://orphans/", 0)] == ["orphans/pullback-1-a"]
        assert sorted(files.find("/orphans")) == ["/orphans/deeper/pullback-2-b/x.npy", "/orphans/pullback.txt"]
        assert remove_orphans("memory://nothing", 0) == []
    finally:
        files.rm("/orphans", recursive=True)


@pytest.mark.parametrize("seconds", [-1, True, float("nan")])
def test_seconds_are_a_number(seconds):
    with pytest.raises(pb.PolicyError, match="older_than_seconds= takes a number from 0 on"):
        remove_orphans("memory://orphans", seconds)


def test_a_directory_of_this_machine_has_locks(tmp_path):
    with pytest.raises(pb.PolicyError, match="a directory of this machine, where the next run removes"):
        remove_orphans(f"file://{tmp_path}", 0)
