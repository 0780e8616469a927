"""How text becomes a function: what the hot path runs is generated on first use from the declaration of a primitive.

Pulls are written in ``generated_pulls``, callers in ``recording.generated_callers``. The sources are put into
``linecache``, so a traceback shows them.
"""

import linecache
import re
from collections.abc import Callable
from itertools import count
from typing import Any
from weakref import finalize

from pullback.rules.declaration import Primitive

_serial = count()


def compile_function(name: str, source: str, namespace: dict[str, Any]) -> Callable[..., Any]:
    """The function ``name`` of ``source``, whose lines tracebacks can show."""
    filename = f"<pullback {name} {next(_serial)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), namespace)  # noqa: S102 - generated from declarations, never from user text
    function: Any = namespace[name]
    finalize(function.__code__, linecache.cache.pop, filename, None).atexit = False  # no line is shown of what is gone
    return function  # type: ignore[no-any-return]  # it was compiled above


def identifier(prim: Primitive) -> str:
    """The primitive's name as a Python identifier."""
    return re.sub(r"\W", "_", prim.name)
