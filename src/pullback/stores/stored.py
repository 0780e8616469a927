"""Any policy, with other places for what it stores."""

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from pullback.policies.base import MemoryPolicy
from pullback.policies.wrapping import Wrapping
from pullback.words.errors import PolicyError


def _as_policy(value: MemoryPolicy) -> MemoryPolicy:
    if not isinstance(value, MemoryPolicy):
        raise PolicyError(f"Stored takes a policy first, got {value!r}: as in Stored(Binomial(20), memory=Disk())")
    return value


@frozen(repr=False, init=False)
class Stored(Wrapping):
    """A policy whose tiers are other places: ``Stored(Binomial(20), memory=Disk("/scratch"))`` keeps its snapshots on
    disk, ``Stored(Binomial(20), memory=InMemory(AsType("f4")))`` in memory as float32.

    Its schedule is that of the policy. ``pullback.stores`` has the places.

    Parameters
    ----------
    policy
        What decides.
    **places
        By the name of a tier, where its entries go.

    Raises
    ------
    PolicyError
        Where ``policy`` is none, or a place is none.

    Example
    -------
    >>> import numpy as np
    >>> import pullback as pb
    >>> def f(x):
    ...     return np.sum(pb.fori_loop(0, 8, lambda k, u: np.sin(u), x))
    >>> x = np.linspace(0.0, 1.0, 100)
    >>> policy = Stored(pb.Binomial(3), memory=pb.stores.Disk())
    >>> bool(np.all(pb.grad(f, policy=policy)(x) == pb.grad(f)(x)))
    True
    """

    policy: MemoryPolicy = field(converter=_as_policy)
    places: tuple[tuple[str, Any], ...]

    def __init__(self, policy: MemoryPolicy, **places: Any) -> None:
        for tier, place in places.items():
            if isinstance(place, type) or not hasattr(place, "opened"):
                raise PolicyError(
                    f"Stored({tier}=...) takes a place of pullback.stores, got {place!r}; for example {tier}=Disk()"
                )
        self.__attrs_init__(policy, tuple(places.items()))

    @property
    def tiers(self) -> Mapping[str, Any]:
        """The tiers of the policy, and the places named here."""
        return {**self.policy.tiers, **dict(self.places)}

    def around(self, policy: MemoryPolicy) -> MemoryPolicy:
        """The same places around another policy."""
        return self if policy is self.policy else Stored(policy, **dict(self.places))

    def __repr__(self) -> str:
        return f"Stored({', '.join((repr(self.policy), *(f'{tier}={place!r}' for tier, place in self.places)))})"
