"""How much recorded steps have held so far: for policies that decide while the steps run."""

from typing import Any

from attrs import define, field

from pullback.choosing.agreement import agreed
from pullback.memory.ledger import Ledger, value_items
from pullback.plain_programs.first_steps import agrees, told_of
from pullback.recording.tape import Tape
from pullback.words.call_sites import site_here, site_text


@define(eq=False)
class Gauge:
    """The :class:`pullback.choosing.auto.Gauge` of one chain of steps of plain code."""

    name: str
    site: int
    ledger: Ledger
    before: int
    """Bytes that the program saved before the chain."""
    counted: bool
    """Whether the ledger counted before: now it does, for the bytes are needed."""
    chain: Any = None
    share: Any = None
    """What a pool has given; None where it is no pool."""
    limit: int = 0
    saves_all: bool = False
    fits: str = ""
    """Why all is kept, as far as it is known."""
    told: bool = field(default=False, init=False)

    def held(self) -> int:
        """All bytes that are booked now, and what the program saved before."""
        return self._of_all(self.held_here)

    @property
    def held_here(self) -> int:
        """The bytes that are held now, of this rank alone."""
        return self.ledger.total + self.before

    def limit_of(self, nbytes: int) -> int:
        """The bytes that there are to hold all, on the rank that has fewest."""
        return -self._of_all(-nbytes)

    def _of_all(self, nbytes: int) -> int:
        """What is largest over all ranks, where they run the steps together. Raises :class:`PolicyError` for those of a
        pool."""
        if not agrees(self.chain):
            return nbytes
        self.chain.agreed = True
        if self.share is not None:
            self.chain.policy.common(int)
        return agreed(self.chain.tape.agreement, told_of(self.chain), (nbytes,))[0]

    def state_bytes(self, step: int) -> int:
        """Bytes of the saved state before ``step``, without what was made before the first step."""
        first, values = self.chain.cuts[0], self.chain.store.found("state", step).values
        own = [values[i] for i in values if i >= first]
        return self._of_all(sum(nbytes for _, nbytes, _ in value_items(own, "snapshot")))

    def tape_bytes(self, step: int) -> int:
        """Bytes of the tape of ``step``, without what that of the step before holds."""
        items = self.chain.work_items
        before = {key for key, _, _ in items.get(step - 1, ())}
        return self._of_all(sum(nbytes for key, nbytes, _ in items[step] if key not in before))

    def tell(self, choice: Any) -> None:
        """Note the choice for the report, once: another reverse pass decides in the same way."""
        if not self.told:
            self.told = True
            told = choice.loop, choice.policy, choice.site
            if all((known.loop, known.policy, known.site) != told for known in self.ledger.choices):
                self.ledger.choices.append(choice)

    def keep(self, nbytes: int) -> None:
        """Give back what a pool has given beyond this."""
        if self.share is not None:
            self.share.keep(nbytes)

    def ended(self) -> None:
        """The chain has ended, and all was kept where nothing else was told."""
        if self.fits:
            from pullback.choosing.auto import Choice  # noqa: PLC0415 - for those who use it
            from pullback.policies.save_all import SaveAll  # noqa: PLC0415 - as the above

            self.tell(Choice(self.name, SaveAll(), self.fits, self.site))


def gauge_of(policy: Any, name: str, ledger: Ledger, tape: Tape) -> Gauge | None:
    """The gauge of a chain that begins now; None for a policy that asks for none."""
    if not policy.looks:
        return None
    site = site_here()
    gauge = Gauge(
        f"{name} at {site_text(site)}", site, ledger, sum(ledger.plain_bytes(tape.records).values()), ledger.counted
    )
    ledger.counted = True
    return gauge
