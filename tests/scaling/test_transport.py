"""What cannot be sent is named, with what to do; errors that would not come back are replaced by their text."""

import sys
import threading

import pytest

import pullback as pb
from pullback.scaling.transport import explained, sendable_error, unsendable


def test_what_cannot_be_sent_is_named_with_a_remedy(monkeypatch):
    monkeypatch.delitem(sys.modules, "cloudpickle", raising=False)
    sent = {"f": lambda x: x, "policy": threading.Lock(), "x": 1.0, "item 3": threading.Lock()}
    faults = unsendable(sent).split("; ")
    assert [fault.split(" cannot")[0] for fault in faults if "cannot be pickled" in fault] == ["f", "policy", "item 3"]
    assert unsendable({"x": 1.0}) == ""
    assert "what was sent away did not come back: OSError: lost" in str(explained(OSError("lost"), {"x": 1.0}))


def test_who_sends_by_value_refuses_less(monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")
    monkeypatch.setitem(sys.modules, "cloudpickle", cloudpickle)
    faults = unsendable({"f": lambda x: x, "item 3": threading.Lock()})
    assert faults.startswith("item 3 cannot")


def test_an_error_comes_back_or_is_told(monkeypatch):
    monkeypatch.delitem(sys.modules, "cloudpickle", raising=False)
    error = KeyError("mine")
    assert sendable_error(error) is error

    class LocalError(Exception):
        pass

    told = sendable_error(LocalError("text"))
    assert isinstance(told, pb.WorkerError)
    assert "LocalError: text; an error of that class does not come back" in str(told)
