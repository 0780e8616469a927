"""What can go wrong with a part: each is an error that names it, never another number."""

import errno
import os

import numpy as np
import pytest

import pullback as pb
from pullback.stores import Disk, Zlib
from pullback.stores.folders import LocalFiles

X = np.linspace(0.1, 0.9, 500)
SIZE = X.nbytes + 128
"""Of a part: the header takes 128 bytes."""


def loop(x):
    return pb.fori_loop(0, 40, lambda k, u: np.sin(u) * x, x)


def marked(x):
    u = x
    for _ in pb.steps(40):
        u = np.sin(u) * x
    return u


class Failing(LocalFiles):
    """The files of this machine, with room for so many bytes."""

    def __init__(self, room, code):
        self.room, self.code = room, code

    def open(self, path, mode):
        return Counted(super().open(path, mode), self)


class Counted:
    def __init__(self, file, files):
        self.file, self.files = file, files

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()

    def write(self, data):
        n = len(data)
        fits = min(n, self.files.room)
        self.file.write(data[:fits])
        self.files.room -= fits
        if fits < n:
            raise OSError(self.files.code, os.strerror(self.files.code))
        return n

    def __getattr__(self, name):
        return getattr(self.file, name)


@pytest.mark.parametrize("f", [loop, marked])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES])
@pytest.mark.parametrize("parts", [0, 0.01, 0.5, 1, 3.9, 6, 7.99])
def test_a_disk_that_is_full_or_refuses(f, code, parts, tmp_path):
    policy = pb.Periodic(4, tier=Disk(tmp_path, files=Failing(int(parts * SIZE), code)))
    told = f"array 0 of the state of step .* could not be written to .*{os.strerror(code)}"
    with pytest.raises(pb.StoreError, match=told) as e:
        pb.grad(lambda x: np.sum(f(x)), policy=policy)(X)
    assert e.value.part.startswith(str(tmp_path))
    assert isinstance(e.value, OSError)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_with_just_enough_room(tmp_path):
    policy = pb.Periodic(4, tier=Disk(tmp_path, files=Failing(10 * SIZE, errno.ENOSPC)))
    found, expected = (pb.grad(lambda x: np.sum(loop(x)), policy=one)(X) for one in (policy, pb.SaveAll()))
    assert found.tobytes() == expected.tobytes()


def truncated(path):
    path.write_bytes(path.read_bytes()[:-8])


def emptied(path):
    path.write_bytes(b"")


def lengthened(path):
    path.write_bytes(path.read_bytes() + b"x")


def flipped(at):
    def change(path):
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(bytes(data))

    return change


def forbidden(path):
    path.unlink()
    path.mkdir()


def exchanged(path):
    """A part of the same shape, written well, of another step."""
    path.write_bytes((path.parent / "1.npy").read_bytes())


DAMAGES = {
    "truncated": (truncated, f"has {SIZE - 8:,} bytes where {SIZE:,} were written"),
    "emptied": (emptied, f"has 0 bytes where {SIZE:,} were written"),
    "lengthened": (lengthened, f"has more bytes where {SIZE:,} were written"),
    "a bit of the data": (flipped(-1), "has the checksum [0-9a-f]{32} where [0-9a-f]{32} was written"),
    "a bit of the header": (flipped(20), "has the checksum"),
    "missing": (lambda path: path.unlink(), "is missing"),
    "no file": (forbidden, "could not be read: .*Is a directory"),
    "exchanged": (exchanged, "has the checksum"),
}


@pytest.mark.parametrize("f", [loop, marked])
@pytest.mark.parametrize("codec", [None, Zlib()], ids=repr)
@pytest.mark.parametrize("name", DAMAGES)
def test_a_part_that_is_not_what_was_written(f, codec, name, tmp_path):
    damage, message = DAMAGES[name]
    out, pull = pb.vjp(f, X, policy=pb.Periodic(4, tier=Disk(tmp_path, codec=codec)))
    assert pull.report.stores  # waits until all is written
    parts = sorted(tmp_path.glob("*/*.npy"), key=lambda path: int(path.stem))
    damage(parts[4])
    if codec is not None:
        message = "(is missing|could not be read|has (the checksum|more|[0-9,]+ bytes))"
    with pytest.raises(pb.StoreError, match=f"array 0 of the state of step .*: the file .*5.npy {message}") as e:
        pull(np.ones_like(out))
    assert e.value.part == str(parts[4])
    pull.close()
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(pb.StoreError, match=r"no folder can be made in the directory .*file/inner"):
        pb.vjp(loop, X, policy=pb.Periodic(4, tier=Disk(tmp_path / "file" / "inner")))


def test_the_error_comes_back_from_another_process():
    import pickle  # noqa: PLC0415

    error = pickle.loads(pickle.dumps(pb.StoreError("text", "part")))  # noqa: S301 - our own bytes
    assert (str(error), error.part) == ("text (PB406: run pullback explain PB406)", "part")
