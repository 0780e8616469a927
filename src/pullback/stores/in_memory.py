"""Memory as a tier of its own: by reference, or in the form that a codec gives."""

from collections.abc import Sequence
from typing import Any, ClassVar

from attrs import define, field, frozen

from pullback.stores.buffers import Window, packed, unpacked
from pullback.stores.codecs import Array, as_codec
from pullback.stores.figures import Figures


@frozen
class InMemory:
    """Entries in memory, their arrays in the form that ``codec`` gives. What a plan forecasts for it is what they take
    without one.

    Parameters
    ----------
    codec
        The form of the arrays; None: as they are.

    Raises
    ------
    PolicyError
        Where ``codec`` is none.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 8, lambda k, u: np.sin(u), x))
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> policy = pb.stores.Stored(pb.Binomial(3), memory=InMemory(pb.stores.Zlib()))
    >>> bool(np.all(pb.grad(f, policy=policy)(x) == pb.grad(f)(x)))
    True
    """

    codec: Any = field(default=None, converter=as_codec)
    name: ClassVar[str] = "memory"

    @property
    def lossy(self) -> bool:
        """Whether other bits may come back."""
        return self.codec is not None and bool(self.codec.lossy)

    def opened(self, ledger: Any, tier: str) -> "Encoded":
        """The tier, which books in the ledger."""
        return Encoded(self.codec, ledger, Figures(tier, self.codec))

    def planned(self, ledger: Any, tier: str) -> Any:  # noqa: ARG002 - as in Disk
        """None: as memory by reference is planned."""
        return None


@define(eq=False)
class EncodedEntry:
    """An entry that is stored: each buffer with its order, shape and dtype, and in the form of the codec."""

    shell: Any
    windows: Sequence[Window]
    roots: list[tuple[bool, tuple[int, ...], Any, Array]]
    items: list[Any]


@define(eq=False)
class Encoded:
    """The tier."""

    codec: Any
    ledger: Any
    figures: Figures
    in_memory: ClassVar[bool] = False
    takes_apart: ClassVar[bool] = True

    def take(self, entry: Any, label: str) -> Any:  # noqa: ARG002 - it needs no name
        """Store an entry; one that cannot be taken apart stays as it is."""
        if self.codec is None or not hasattr(entry, "split"):
            return entry
        shell, arrays = entry.split()
        roots, windows = packed(arrays)
        held = EncodedEntry(shell, windows, [self._encoded(root) for root in roots], [])
        reason = entry.items[0][2] if entry.items else "snapshot"
        held.items = [(id(form), form.nbytes, reason) for _, _, _, form in held.roots]
        self.ledger.hold(held.items)
        return held

    def prepare(self) -> None:
        """There is room."""

    def _encoded(self, root: Array) -> tuple[bool, tuple[int, ...], Any, Array]:
        turned = not root.flags.c_contiguous
        dense = root.T if turned else root
        form = self.codec.encode(dense)
        if form is dense or form.base is dense:
            form = form.copy()
        self.figures.wrote(root, form.nbytes)
        if self.codec.lossy:
            self.figures.differs(dense, self.codec.decode(form, dense.shape, dense.dtype))
        return turned, dense.shape, dense.dtype, form

    def give(self, stored: Any) -> Any:
        """The entry."""
        if type(stored) is not EncodedEntry:
            return stored
        roots = []
        for turned, shape, dtype, form in stored.roots:
            self.figures.n_reads += 1
            dense = self.codec.decode(form, shape, dtype)
            dense = dense.copy() if dense is form or dense.base is form else dense
            roots.append(dense.T if turned else dense)
        return stored.shell.joined(unpacked(roots, stored.windows))

    def look(self, stored: Any) -> Any:
        """What of the entry is not in another form."""
        return stored.shell if type(stored) is EncodedEntry else stored

    def drop(self, stored: Any) -> None:
        """Its memory goes with the last reference."""
        if type(stored) is EncodedEntry:
            self.ledger.release(stored.items)

    def close(self) -> None:
        """Nothing is left."""
