"""Every row of every table of cases, the plugins' too, as one kind of thing: a function of the arrays that carry a
derivative."""

import warnings
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from attrs import frozen
from tests.primitives.tables import TABLES

from pullback.words.specs import carries_derivative
from pullback.words.structures import flatten, unflatten

ROOT = Path(__file__).parents[2]
PLUGIN_TABLES = (
    ("pullback-linalg/tests/test_functions.py", "FUNCTIONS"),
    ("pullback-linalg/tests/test_matrix_functions.py", "FUNCTIONS"),
    ("pullback-linalg/tests/test_norms.py", "FUNCTIONS"),
    ("pullback-linalg/tests/test_decompositions.py", "ROWS"),
    ("pullback-fft/tests/test_functions.py", "FUNCTIONS"),
)


@frozen(eq=False)
class Row:
    """``fn(*args)`` is NumPy's; ``rough`` says why differences say nothing, in a word of :data:`ROUGH`."""

    name: str
    fn: Callable[..., Any]
    args: tuple[Any, ...]
    rough: str = ""
    covers: tuple[str, ...] = ()
    """The primitives of the core that it exercises, or the function of a plugin."""

    @property
    def arrays(self) -> tuple[Any, ...]:
        """The leaves of the arguments that carry a derivative."""
        return tuple(leaf for leaf in flatten(self.args)[0] if is_operand(leaf))

    def called(self, *xs: Any) -> Any:
        """What NumPy returns of these arrays in the places of the row's own."""
        leaves, definition = flatten(self.args)
        given = iter(xs)
        leaves = [next(given) if is_operand(leaf) else leaf for leaf in leaves]
        with np.errstate(all="ignore"):
            return self.fn(*unflatten(definition, leaves))

    def outputs(self, *xs: Any) -> tuple[Any, ...]:
        """The results that carry a derivative. Silent: what is not finite is compared."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = self.called(*xs)
        return tuple(leaf for leaf in flatten(whole)[0] if carries_derivative(leaf))


def is_operand(leaf: Any) -> bool:
    """True for arrays and NumPy scalars of floating or complex dtype."""
    return isinstance(leaf, np.ndarray | np.inexact) and leaf.dtype.kind in "fc"


def rows() -> Iterator[Row]:
    """Those of the core first."""
    for table_of_room, cases in TABLES.items():
        room = table_of_room.partition(".")[0]
        for case in cases:
            yield Row(f"{room}: {case.name}", case.fn, case.args, case.rough, case.covers)
    for path, table in PLUGIN_TABLES:
        module = _load(ROOT / "plugins" / path)
        rough = getattr(module, "ROUGH_ROWS", {})
        for name, (fn, *args) in getattr(module, table).items():
            whole = f"{path.split('/')[0].removeprefix('pullback-')}: {name}"
            yield Row(whole, fn, tuple(args), rough.get(name, ""), tuple(name.split()[:1]))


def _load(path: Path) -> ModuleType:
    """The module at a path: the plugins' tests are no package of ours."""
    spec = spec_from_file_location(f"rows_of_{path.parent.parent.name}_{path.stem}".replace("-", "_"), path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
