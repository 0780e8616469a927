"""A policy around another one: all questions go to the inner policy, but for those that a subclass answers itself."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve, frozen

from pullback.policies.base import MemoryPolicy
from pullback.scheduling.machine.schedule import Schedule


@frozen(repr=False)
class Wrapping(MemoryPolicy):
    """Whatever is asked, ``policy`` answers."""

    policy: MemoryPolicy

    @property
    def tiers(self) -> Mapping[str, Any]:
        """The policy's."""
        return self.policy.tiers

    @property
    def needs_sizes(self) -> bool:
        """As the policy says."""
        return self.policy.needs_sizes

    @property
    def counts_states(self) -> bool:
        """As the policy says."""
        return self.policy.counts_states

    @property
    def counts_bytes(self) -> bool:
        """As the policy says."""
        return self.policy.counts_bytes

    def affords(self, nbytes: int, least: int) -> bool:
        """As the policy says."""
        return self.policy.affords(nbytes, least)

    def begin(self, n: int | None, *, state_bytes: int, tape_bytes: int) -> Schedule:
        """The schedule of the policy."""
        return self.policy.begin(n, state_bytes=state_bytes, tape_bytes=tape_bytes)

    def around(self, policy: MemoryPolicy) -> MemoryPolicy:
        """The same class around another policy."""
        return evolve(self, policy=policy)

    def reserving(self, nbytes: int, *, start_held: bool = False, digests: int = 0) -> MemoryPolicy:
        """The same class around the policy that keeps these bytes free."""
        return self.around(self.policy.reserving(nbytes, start_held=start_held, digests=digests))

    def at_call(self) -> MemoryPolicy:
        """The same class around the policy for what is free now."""
        return self.around(self.policy.at_call())

    def common(self, least: Callable[[int], int]) -> MemoryPolicy:
        """The same class around the policy that all ranks take."""
        return self.around(self.policy.common(least))

    def decided(self, loop: Any, ledger: Any) -> tuple[MemoryPolicy, Any]:
        """The same class around what the policy decides."""
        policy, share = self.policy.decided(loop, ledger)
        return self.around(policy), share

    @property
    def looks(self) -> bool:
        """Whether the policy looks at what recorded steps hold."""
        return self.policy.looks

    @property
    def within(self) -> Any:
        """As the policy says."""
        return self.policy.within

    @property
    def between(self) -> MemoryPolicy:
        """As the policy says, where it decides within steps."""
        return self if self.within is None else self.policy.between

    def measuring(self, n: int | None, gauge: Any) -> Schedule:
        """The policy's own schedule where it looks: its sizes show as it goes."""
        return self.policy.measuring(n, gauge) if self.looks else self.schedule(n)

    def __repr__(self) -> str:
        return repr(self.policy)
