"""A script as the main program of adopted code: what stands under ``if __name__ == "__main__":`` runs, too."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from pullback.adopting.modules.importing import BESIDE, NAMES, OWN_BUILTINS, AdoptedLoader, AdoptedModule
from pullback.words.errors import AdoptionError


def run_script(path: str | Path, arguments: Sequence[str] = ()) -> ModuleType:
    """The module of a script that has been run as ``python FILE.py ARGUMENTS`` runs it, adopted; raises
    :class:`AdoptionError` where there is no such file."""
    file = Path(path).absolute()
    if not file.is_file() or file.suffix != ".py":
        raise AdoptionError(f"there is no Python file {path} to run; write the path to one")
    module = AdoptedModule("__main__")
    module.__dict__.update(NAMES)
    module.__dict__.update({"__builtins__": OWN_BUILTINS, "__file__": str(file), BESIDE: str(file.parent)})
    code = AdoptedLoader("__main__", str(file)).get_code("__main__")
    main, argv = sys.modules["__main__"], sys.argv
    sys.modules["__main__"], sys.argv = module, [str(path), *arguments]
    try:
        exec(code, module.__dict__)  # noqa: S102 - the user's own script, as python runs it
    finally:
        sys.modules["__main__"], sys.argv = main, argv
    return module
