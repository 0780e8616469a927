"""Who asks for a pickle: see ``tests/words/test_undocumented.py``."""

import copy
import pickle
import sys
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location

import cloudpickle

from pullback.words import undocumented


class _Asks:
    """Knows who has asked for its last pickle."""

    asking = None

    def __reduce_ex__(self, protocol):
        type(self).asking = undocumented.asking_pickler(sys._getframe(1))
        return _Asks, ()


def test_cloudpickle_is_known(monkeypatch):
    for dump in (pickle.dumps, pickle._dumps, copy.copy):
        dump(_Asks())
        assert _Asks.asking is None
    own = cloudpickle.cloudpickle
    copied = spec_from_file_location("another_library.externals.cloudpickle.cloudpickle", own.__file__)
    monkeypatch.setitem(sys.modules, copied.name, module_from_spec(copied))
    copied.loader.exec_module(sys.modules[copied.name])
    for one in (sys.modules[copied.name], own):
        one.dumps([_Asks()])
        assert _Asks.asking is one
        assert undocumented.is_by_value(_Asks.asking, "__main__")
        assert not undocumented.is_by_value(_Asks.asking, "pullback.words")
    own.register_pickle_by_value(import_module("pullback.words"))
    try:
        modules = ("pullback.words", "pullback.words.specs", "pullback.words_", "pullback")
        assert [undocumented.is_by_value(own, module) for module in modules] == [True, True, False, False]
    finally:
        own.unregister_pickle_by_value(import_module("pullback.words"))
