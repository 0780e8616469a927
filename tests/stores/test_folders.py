"""Folders by URL, through fsspec."""

import sys

import numpy as np
import pytest

import pullback as pb
from pullback.stores import Disk, Zlib

X = np.linspace(0.1, 0.9, 50)
FSSPEC = "fsspec, which serves URLs, is an optional extra"


def loop(x):
    return pb.fori_loop(0, 30, lambda k, u: np.sin(u) * x + u, x)


def pulled(policy):
    out, pull = pb.vjp(loop, X, policy=policy)
    return pull(np.ones_like(out))[0].tobytes()


@pytest.mark.parametrize("codec", [None, Zlib()], ids=repr)
def test_a_url(codec):
    fsspec = pytest.importorskip("fsspec", reason=FSSPEC)
    files = fsspec.filesystem("memory")
    out, pull = pb.vjp(loop, X, policy=pb.Periodic(4, tier=Disk("memory://shared/here", codec=codec)))
    assert pull.report.stores
    assert len(files.find("/shared/here")) == 7
    assert pull(np.ones_like(out))[0].tobytes() == pulled(pb.SaveAll())
    pull.close()
    assert files.find("/shared/here") == []


def test_a_url_of_this_machine(tmp_path):
    pytest.importorskip("fsspec", reason=FSSPEC)
    assert pulled(pb.Periodic(4, tier=Disk(f"file://{tmp_path}"))) == pulled(pb.SaveAll())
    assert list(tmp_path.iterdir()) == []


def test_a_url_of_this_machine_is_a_directory_with_locks(tmp_path):
    """So what a killed run has left there is removed."""
    pytest.importorskip("fsspec", reason=FSSPEC)
    left = tmp_path / "pullback-1-abc"
    left.mkdir()
    (tmp_path / "pullback-1-abc.lock").touch()
    pulled(pb.Periodic(4, tier=Disk(f"file://{tmp_path}")))
    assert list(tmp_path.iterdir()) == []


def test_a_part_behind_a_url_that_was_changed():
    fsspec = pytest.importorskip("fsspec", reason=FSSPEC)
    files = fsspec.filesystem("memory")
    out, pull = pb.vjp(loop, X, policy=pb.Periodic(4, tier=Disk("memory://changed")))
    assert pull.report.stores
    first, second, *_ = sorted(files.find("/changed"))
    files.rm_file(first)
    with files.open(second, "wb") as file:
        file.write(b"short")
    with pytest.raises(pb.StoreError, match="has 5 bytes where 528 were written"):
        pull(np.ones_like(out))
    assert pull(np.ones_like(out))[0].tobytes() == pulled(pb.SaveAll())  # begins again, and writes again
    pull.close()


def test_a_url_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(pb.PullbackError, match=r"shared is a URL, which needs fsspec.* install pullback\[fsspec\]"):
        pulled(pb.Periodic(4, tier=Disk("memory://shared")))
