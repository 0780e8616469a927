"""``autograd`` as a name of this package, for programs that are run without a changed line.

:func:`install` puts the modules of this package into ``sys.modules`` under autograd's names; nothing else of the
process is touched, and :func:`uninstall` takes them away again.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pkgutil import walk_packages
from types import ModuleType

import pullback as pb

OURS, THEIRS = "pullback_autograd", "autograd"


def _modules() -> dict[str, ModuleType]:
    """The modules of this package by autograd's names; the parts that need SciPy are left out where there is none."""
    package = import_module(OURS)
    names = [OURS, *(found.name for found in walk_packages(package.__path__, f"{OURS}."))]
    if find_spec("scipy") is None:
        names = [name for name in names if not name.startswith(f"{OURS}.scipy")]
    names.remove(f"{OURS}.__main__")
    return {THEIRS + name.removeprefix(OURS): import_module(name) for name in names}


def install() -> None:
    """Let ``import autograd`` and ``from autograd.scipy.stats import norm`` give this package from now on.

    Call it before the first module that imports autograd. A second call does nothing.

    Returns
    -------
    Nothing; ``sys.modules`` has the modules.

    Raises
    ------
    PluginError
        Where HIPS autograd itself has been imported in this process: its arrays are not ours.

    Example
    -------
    >>> import pullback_autograd
    >>> pullback_autograd.install()
    >>> import autograd.numpy as np
    >>> from autograd import grad
    >>> grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    array([2., 4.])
    >>> pullback_autograd.uninstall()
    """
    ours = _modules()
    foreign = sorted(
        name
        for name, module in sys.modules.items()
        if (name == THEIRS or name.startswith(f"{THEIRS}.")) and module is not ours.get(name)
    )
    if foreign:
        where = getattr(sys.modules[foreign[0]], "__file__", None) or "a module without a file"
        message = (
            f"pullback_autograd.install() cannot stand for autograd: {foreign[0]} has been imported already, from "
            f"{where}; call install() before the first module that imports autograd, or in a process of its own "
            "(python -m pullback_autograd program.py)"
        )
        raise pb.PluginError(message)
    sys.modules.update(ours)


def uninstall() -> None:
    """Takes away what :func:`install` has put into ``sys.modules``; modules that have imported it keep what they have.

    Without an :func:`install` before, nothing happens; an autograd of somebody else's stays.

    Returns
    -------
    Nothing.

    Raises
    ------
    Nothing.

    Example
    -------
    >>> import pullback_autograd
    >>> pullback_autograd.uninstall()
    """
    for name, module in _modules().items():
        if sys.modules.get(name) is module:
            del sys.modules[name]


@contextmanager
def installed() -> Iterator[None]:
    """:func:`install` for the time of a ``with`` block.

    Returns
    -------
    A context manager, which gives nothing.

    Raises
    ------
    PluginError
        As :func:`install` does.

    Example
    -------
    >>> import pullback_autograd
    >>> with pullback_autograd.installed():
    ...     from autograd import grad
    >>> grad(lambda x: x * x)(3.0)
    np.float64(6.0)
    """
    before = THEIRS in sys.modules
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


__all__ = ["install", "installed", "uninstall"]
