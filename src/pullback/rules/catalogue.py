"""The registry: which primitive a name or a NumPy function means. Refuses duplicates; a scoped copy leaves the
original alone."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

from attrs import define, field

from pullback.rules.declaration import Composite, Primitive
from pullback.travelling.declared import standing
from pullback.words import plugins
from pullback.words.errors import RegistrationError, TravelError, UnknownFunctionError

PLUGIN_OF = {
    "pullback-linalg": (
        "matmul dot inner outer vdot vecdot matvec vecmat tensordot einsum kron trace cross multi_dot matrix_power "
        "solve tensorsolve inv tensorinv pinv lstsq det slogdet norm vector_norm matrix_norm cond matrix_rank "
        "cholesky qr svd svdvals eig eigh eigvals eigvalsh"
    ).split(),
    "pullback-fft": (
        "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft fftshift ifftshift"
    ).split(),
}
"""Which plugin to install for a function that the core does not serve; used for the error message only."""


OPERATORS = {f"operator_{name}": name for name in ("add", "subtract", "multiply", "divide", "power", "negative")}
"""Names of the primitives that are Python operators, and their slots."""


@define(eq=False)
class Operators:
    """The callers of the primitives that have an operator of their own: a slot each, None until first used. They are
    the hottest of all."""

    add: Any = None
    subtract: Any = None
    multiply: Any = None
    divide: Any = None
    power: Any = None
    negative: Any = None


@define(eq=False)
class Registry:
    """Names and NumPy functions to primitives and composites. What comes later is looked up once, at the first name not
    found here: first the families of ``later``, then the plugins.

    Parameters
    ----------
    names, functions
        The declarations by name, and by the NumPy function that they serve; by default none.
    later
        What gives the families that are imported at the first name not found.
    plugins
        Whether entry points are searched when a function is not found.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> pb.registry.find(np.sin).name
    'sin'
    """

    names: dict[str, Primitive | Composite] = field(factory=dict, repr=False)
    functions: dict[Callable[..., Any], Primitive | Composite] = field(factory=dict, repr=False)
    later: list[Callable[[], Iterable[Primitive | Composite]]] = field(factory=list, repr=False)
    plugins: bool = False
    searched: bool = field(default=False, init=False)
    begun: set[tuple[int, Any]] = field(factory=set, init=False, repr=False)
    """The searches under way, by thread and family; None for the plugins. What a thread imports may ask for more."""
    callers: dict[Any, Callable[..., Any]] = field(factory=dict, init=False, repr=False)
    """Generated fast ways to call, by name or ufunc; emptied when a declaration is added or replaced."""
    operators: Operators = field(factory=Operators, init=False, repr=False)

    def add(self, declared: Primitive | Composite, *serves: Callable[..., Any]) -> Primitive | Composite:
        """Register a primitive under its name and the NumPy functions it serves; raises :class:`RegistrationError`
        where one is taken."""
        if not isinstance(declared, Primitive | Composite):
            raise RegistrationError(
                f"{_qualified(declared)} is no primitive; make one of it, pullback.primitive(function, vjps=...)"
            )
        taken = self.names.get(declared.name)
        if taken is not None and taken is not declared:
            raise RegistrationError(
                f"a primitive named {declared.name!r} is already registered; choose another name, or work in a "
                "scoped copy: registry.scoped()"
            )
        functions = (*declared.serves, *serves)
        for function in functions:
            owner = self.functions.get(function)
            if owner is not None and owner is not declared:
                raise RegistrationError(
                    f"{_qualified(function)} is already served by {owner.name!r}; {declared.name!r} cannot serve it "
                    "too. Use registry.scoped() to replace it"
                )
        self.names[declared.name] = declared
        self.functions |= dict.fromkeys(functions, declared)
        self._forget_callers()
        return declared

    def extend(
        self,
        declarations: Iterable[Primitive | Composite],
        *,
        later: Callable[[], Iterable[Primitive | Composite]] | None = None,
    ) -> None:
        """Register several; ``later`` gives more of them at the first name not found."""
        for declared in declarations:
            self.add(declared)
        if later is not None:
            self.later.append(later)

    def find(self, function: Callable[..., Any]) -> Primitive | Composite:
        """What a NumPy function means on tracers; raises :class:`UnknownFunctionError` naming the function and the
        plugin to install."""
        found = self.functions.get(function)
        while found is None and self._search():
            found = self.functions.get(function)
        found = found or self.functions.get(function)  # another thread may have brought it meanwhile
        if found is None:
            raise UnknownFunctionError(_unknown(function))
        return found

    def named(self, name: str) -> Primitive | Composite:
        """The primitive of a name, plugins included; raises :class:`UnknownFunctionError`."""
        found = self.names.get(name)
        while found is None and self._search():
            found = self.names.get(name)
        found = found or self.names.get(name)
        if found is None:
            raise UnknownFunctionError(_missing(f"numpy.{name}", name))
        return found

    def scoped(self) -> "Registry":
        """A copy to which one may add without touching this one."""
        copy = Registry(dict(self.names), dict(self.functions), later=list(self.later), plugins=self.plugins)
        copy.searched = self.searched
        return copy

    @contextmanager
    def replaced(self, declared: Primitive | Composite, *serves: Callable[..., Any]) -> Iterator["Registry"]:
        """Within the block ``declared`` takes the place of whatever had its name or functions; afterwards all is as
        before."""
        before = dict(self.names), dict(self.functions)
        try:
            self.names[declared.name] = declared
            self.functions |= dict.fromkeys((*declared.serves, *serves), declared)
            self._forget_callers()
            yield self
        finally:
            self.names, self.functions = before
            self._forget_callers()

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self is not registry:
            raise TravelError(
                "a registry of your own cannot be pickled, since what it serves is found in the one of each process; "
                "make it there, by pullback.registry.scoped() and add"
            )
        return standing, ("pullback", "registry")

    def _forget_callers(self) -> None:
        self.callers.clear()
        slots = self.operators
        slots.add = slots.subtract = slots.multiply = slots.divide = slots.power = slots.negative = None

    def complete(self) -> "Registry":
        """The registry itself, with all that comes later in it: for whoever lists what there is."""
        while self._search():
            pass
        return self

    def _search(self) -> bool:
        """Import what comes next: the later families, then the plugins. True when there was something to import."""
        me = get_ident()
        for family in self.later:
            if (me, family) not in self.begun:
                with self._begun(me, family):
                    self.extend(family())
                self.later = [each for each in self.later if each is not family]
                return True
        if not self.plugins or self.searched or (me, None) in self.begun:
            return False
        with self._begun(me, None):  # an error is told again at the next look-up
            for point in plugins.entry_points(plugins.PRIMITIVES):
                with plugins.loading(point):
                    self.extend(point.load())
        self.searched = True
        return True

    @contextmanager
    def _begun(self, thread: int, family: Any) -> Iterator[None]:
        self.begun.add((thread, family))
        try:
            yield
        finally:
            self.begun.discard((thread, family))


def _qualified(function: Callable[..., Any]) -> str:
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{getattr(function, '__name__', function)}"


def _missing(qualified: str, name: str) -> str:
    for plugin, names in PLUGIN_OF.items():
        if name in names:
            return f"no primitive for {qualified}: install {plugin}"
    if name.startswith("save"):
        return f"no primitive for {qualified}: a file keeps no derivative; write pullback.value(x)"
    return (
        f"no primitive for {qualified}; write it with functions that have one, declare it with pullback.primitive, "
        "or drop the derivative on purpose with pullback.value(x)"
    )


def _unknown(function: Callable[..., Any]) -> str:
    return _missing(_qualified(function), str(getattr(function, "__name__", "")))


registry = Registry(plugins=True)
"""The default registry: the core's primitives and, at first need, those of installed plugins."""


def register(
    declared: Primitive | Composite, *serves: Callable[..., Any], into: Registry | None = None
) -> Primitive | Composite:
    """Hand a primitive to a registry, with the NumPy functions it serves besides those it declares.

    Parameters
    ----------
    declared
        A :class:`Primitive` or a :class:`Composite`.
    *serves
        NumPy functions that mean it on tracers.
    into
        A registry of your own; by default that of the process.

    Returns
    -------
    The declaration.

    Raises
    ------
    RegistrationError
        For what is no declaration, and where a name or a function is served by another one.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> mine = pb.Registry()
    >>> double = pb.register(pb.primitive(lambda x: 2 * x, name="double", linear=("x",)), into=mine)
    >>> mine.named("double") is double
    True
    """
    return (registry if into is None else into).add(declared, *serves)
