"""What is declared once, in another process: a primitive or composite is found there again, where it is registered or
where it stands in its module; cloudpickle takes one of ``__main__`` along.

A copy is known by its declaration, so that a worker to which it comes again and again has it once: records, generated
code and what is learned of it hang on it, and stay as long as the process.
"""

import sys
from collections.abc import Mapping
from importlib import import_module
from io import BytesIO
from threading import Lock
from types import FrameType
from typing import Any
from weakref import WeakValueDictionary

from attrs import fields
from xxhash import xxh3_128_hexdigest

from pullback.travelling.places import name_in, object_at
from pullback.words.errors import PullbackError, TravelError
from pullback.words.undocumented import asking_pickler, is_by_value

_DECLARING = "pullback.rules."
_COPIES: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Copies by the digest of the declaration. What was used is held by its forms for good."""
_LOCK = Lock()
_MADE = ("forms", "callers")
"""What is made of a declaration when it is used."""


def declaring_module() -> str:
    """The module whose line led here to a declaration."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", _DECLARING))  # that of the initializers of attrs is not there
        if not name.startswith((_DECLARING, __name__)):
            return name
        frame = frame.f_back
    return ""


def reduced(declaration: Any, kinds: tuple[type, ...], frame: FrameType) -> Any:
    """What ``__reduce_ex__`` gives where ``frame`` asks, for a declaration of one of these classes. Raises
    :class:`TravelError` where it could not be found in another process."""
    pickler = asking_pickler(frame)
    if pickler is None or not is_by_value(pickler, declaration.module):
        if import_module("pullback").registry.names.get(declaration.name) is declaration:
            return registered, (declaration.module, declaration.name)
        if name := name_in(declaration.module, declaration):
            return standing, (declaration.module, name)
    if pickler is None:
        raise TravelError(
            f"{declaration.name} cannot be pickled: it is neither registered nor bound to a name of its module, "
            f"{declaration.module}; bind it to one at the top level there, or hand it to pullback.register"
        )
    declared = _declared(declaration)
    digest = _digest(declaration, kinds, pickler)
    with _LOCK:
        _COPIES.setdefault(digest, declaration)
    return known, (type(declaration), digest), (digest, declared), None, None, fill


def registered(module: str, name: str) -> Any:
    """What is registered under a name; its module is imported first where it is not."""
    registry: Any = import_module("pullback").registry
    try:
        found = registry.named(name)
    except PullbackError:
        import_module(module)
        found = registry.named(name)
    if found.module.partition(".")[0] != module.partition(".")[0]:
        raise TravelError(
            f"{name} of {module} comes by pickle, and here {name} is registered by {found.module}; register one "
            "primitive under this name in all processes"
        )
    return found


def standing(module: str, name: str) -> Any:
    """What stands in a module, which is imported, under a name."""
    import_module(module)
    found = object_at(module, name)
    if found is None:
        raise TravelError(f"{module}.{name} comes by pickle, and is not here; have the same module in all processes")
    return found


def known(kind: Any, digest: str) -> Any:
    """The copy of that declaration; where there is none, an empty one, which :func:`fill` is given next."""
    found = _COPIES.get(digest)
    return kind.__new__(kind) if found is None else found


def fill(declaration: Any, state: tuple[str, Mapping[str, Any]]) -> None:
    """Fill a copy that is empty. It may stand in its own rules, so it is made before they are."""
    digest, declared = state
    with _LOCK:
        if _COPIES.get(digest) is declaration:
            return
        for one in fields(type(declaration)):
            object.__setattr__(declaration, one.name, declared.get(one.name, {}))
        _COPIES.setdefault(digest, declaration)


def _declared(declaration: Any) -> dict[str, Any]:
    """What was declared, and not what was made of it since."""
    return {one.name: getattr(declaration, one.name) for one in fields(type(declaration)) if one.name not in _MADE}


def _digest(declaration: Any, kinds: tuple[type, ...], pickler: Any) -> str:
    """What tells a declaration: all that its functions are made of and read from outside, as cloudpickle writes it;
    the same of each other declaration that they name and that goes along, each once."""
    met, parts = [declaration], list[bytes]()

    class Writer(pickler.Pickler):  # type: ignore[misc]  # whatever cloudpickle it is
        def persistent_id(self, x: Any) -> tuple[str, str] | None:
            if type(x) not in kinds:
                return None
            if is_by_value(pickler, x.module) and not any(x is other for other in met):
                met.append(x)
            return x.module, x.name

    for one in met:  # which grows
        stream = BytesIO()
        Writer(stream).dump(_declared(one))
        parts.append(stream.getvalue())
    return xxh3_128_hexdigest(b"".join(parts))
