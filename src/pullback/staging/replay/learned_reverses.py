"""The reverse functions of a pattern: made when one of its steps has been swept, and used once they give the same."""

from collections.abc import Sequence
from typing import Any

from attrs import define

from pullback.memory.reverse_sweep import Sweep
from pullback.recording.copies import faithful
from pullback.staging.generated.generated import Generated
from pullback.staging.generated.recorded_steps import require_equal
from pullback.staging.generated.stages import with_kernels
from pullback.staging.generated.workspaces import Workspace
from pullback.staging.replay.pattern_stages import PatternStage, Seeded, reverse_of_pattern
from pullback.words.undocumented import quiet


@define(eq=False)
class Learning:
    """A step that is swept, of whose reverse a function is to be made."""

    patterns: Any
    """The :class:`~pullback.staging.replay.staged_patterns.StagedPatterns` of the chain."""
    step: int
    stage: PatternStage
    slots: Sequence[Any]
    key: Seeded
    seeds: list[Any]

    def swept(self, sweep: Sweep) -> None:
        """The step was swept: the function is kept if it gives the same."""
        stage, patterns = self.stage, self.patterns
        known = patterns.known_of(self.step)
        made, stage.made, patterns.learning = stage.made, None, None
        if made is None:
            return
        try:
            reverse, drafts = reverse_of_pattern(stage, made, self.key, self.seeds)
            swept = [(k, sweep.cts[patterns.ident(k, self.step)]) for k in stage.entering]
            require_equal(reverse.gives, [k for k, ct in swept if ct is not None], "what gets a cotangent")
            wanted = [ct for _, ct in swept if ct is not None]
            self._require(reverse.generated, self.seeds, wanted, Workspace())
            if reverse.own is not None:
                copies = list(map(faithful, self.seeds))
                self._require(reverse.own, copies, wanted, patterns.work(stage))
            if patterns.backend is not None:
                given = self.slots, self.seeds
                reverse.generated, why = with_kernels(drafts[0], reverse.generated, patterns.backend, given)
                stage.notes += [why] if why else []
                if reverse.own is not None:
                    reverse.own, _ = with_kernels(drafts[1], reverse.own, patterns.backend, given)
        except Exception as error:  # noqa: BLE001 - as in learning the forward
            known.failed(error, made.program, stage)
            return
        finally:
            made.program.samples.clear()  # the records of the stage hold its symbols
        stage.reverses[self.key] = reverse
        known.wanting = False

    def _require(self, generated: Generated, seeds: list[Any], wanted: list[Any], work: Workspace) -> None:
        """Raise :class:`NotStageableError` where a function gives other cotangents than those of the sweep."""
        with quiet():
            (cts,) = generated.function(self.slots, seeds, *work.of(generated))
        require_equal(cts, wanted, "the cotangents")
