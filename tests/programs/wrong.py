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
    kinds = kind if type(kind) is tuple else (kind,)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one is asked below
        pb.grad(program)(X)
    error = caught.value
    text = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if not isinstance(error, kinds):  # C goes on after the error, and what it raises in the end carries a note
        assert "the program caught an error of pullback, and went on" in text
    assert re.search(said, text, re.DOTALL), text
    if isinstance(error, pb.ConversionError | pb.UnknownFunctionError):
        assert f"{program.__code__.co_filename}:" in text
    if instead is not None:
        np.testing.assert_allclose(pb.grad(instead)(X), gradient, rtol=1e-6)
