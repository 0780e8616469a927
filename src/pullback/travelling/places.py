"""Where an object stands in a module, as ``pickle`` looks for functions and classes."""

import sys
from typing import Any


def object_at(module: Any, name: Any) -> Any:
    """What stands in an imported module under a name, which may be one of a class in it (``Model.step``); None where
    nothing does."""
    found: Any = sys.modules.get(module) if isinstance(module, str) else None
    if found is None or not isinstance(name, str):
        return None
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def name_in(module: str, wanted: Any) -> str:
    """The name of an object in an imported module; empty where it has none."""
    names = vars(sys.modules[module]) if module in sys.modules else {}
    return next((name for name, value in list(names.items()) if value is wanted), "")
