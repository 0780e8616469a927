"""Values that are known to have the same spec: what is known of one is known of all."""

from typing import Any

from pullback.words.specs import ArraySpec


class SpecSolver:
    """Values known to have the same spec, as classes (union-find). A class has a spec as soon as one of its values
    does."""

    def __init__(self, n: int) -> None:
        self.parent = list(range(n))
        self.known: dict[int, ArraySpec] = {}

    def find(self, i: int) -> int:
        """The representative of the class of value ``i``."""
        parent = self.parent
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    def learn(self, i: int, spec: Any) -> None:
        """Value ``i`` has this spec; anything but a spec is ignored."""
        if isinstance(spec, ArraySpec):
            self.known.setdefault(self.find(i), spec)

    def same(self, i: int, j: int) -> None:
        """Two values have one spec."""
        a, b = self.find(i), self.find(j)
        if a != b:
            self.parent[b] = a
            spec = self.known.pop(b, None)
            if spec is not None:
                self.known.setdefault(a, spec)

    def spec(self, i: int) -> ArraySpec | None:
        """The spec of value ``i`` as far as it is known."""
        return self.known.get(self.find(i))
