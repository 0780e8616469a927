"""A folder with a model and its arrays, for whatever runs commands."""

from pathlib import Path

import numpy as np
import pytest

MODEL = """
import numpy as np
import pullback as pb

limit = 3

def misfit(c, data, n=12):
    u = pb.fori_loop(0, n, lambda k, u: u + 0.1 * np.sin(c * u), np.ones(c.shape))
    return np.sum((u - data)**2)
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a model and its arrays, which is where the commands run."""
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(MODEL, "utf-8")
    np.save("c.npy", np.linspace(0.5, 1.5, 8))
    np.save("data.npy", np.ones(8))
    np.save("words.npy", np.array(["one", "two"]))
    np.save("objects.npy", np.array([{}, None], dtype=object), allow_pickle=True)
    np.savez("several.npz", a=np.ones(2), b=np.ones(3))
    np.savez("words.npz", a=np.array(["one", "two"]))
    np.savez("pickled.npz", allow_pickle=True, a=np.array([{}, None], dtype=object))
    Path("text.npy").write_text("no array", "utf-8")
    Path("empty.npy").write_bytes(b"")
    return tmp_path
