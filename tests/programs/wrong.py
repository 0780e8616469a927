"""Wrong programs as lines of a table: the program, its error, words of that, what the words tell to write, and the
gradient of that."""

import re

import numpy as np
import pytest

import pullback as pb

X = np.array([1.0, 2.0, 3.0])
ONE = np.ones(3)
VALUE = r"pullback\.value\(x\)"


def require_told(case):
    """Pass if the program raises its error, with its words, and what is to be written instead has its gradient."""
    program, kind, said, instead, gradient = case
    with pytest.raises(kind) as caught:
        pb.grad(program)(X)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert re.search(said, text, re.DOTALL), text
    if isinstance(caught.value, pb.ConversionError | pb.UnknownFunctionError):
        assert f"{program.__code__.co_filename}:" in text
    if instead is not None:
        np.testing.assert_allclose(pb.grad(instead)(X), gradient, rtol=1e-6)
