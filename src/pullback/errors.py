"""Every exception and warning of pullback, and when each is raised.

All exceptions derive from :class:`PullbackError`; most also derive from the built-in class a NumPy user would expect
to catch (``TypeError`` for a wrong kind of argument, ``ValueError`` for a wrong value). A message says what happened,
with the values, and then what to do. It never prints a whole array.
"""


class PullbackError(Exception):
    """Base of every error that pullback raises on purpose."""


class NotDifferentiableError(PullbackError, TypeError):
    """No derivative exists here: an argument of integer type, a non-scalar output of ``grad``, an operand declared non-differentiable."""


class UnknownFunctionError(PullbackError, TypeError):
    """A NumPy function met a tracer and no registered primitive serves it."""


class PluginError(PullbackError, ImportError):
    """A plugin found through its entry point could not be imported or handed over something that is no primitive."""


class RegistrationError(PullbackError, ValueError):
    """A name or a NumPy function is already taken in a registry."""


class DeclarationError(PullbackError, ValueError):
    """A primitive is declared wrongly: unknown names, reserved names, a rule that captures an array."""


class MissingRuleError(PullbackError, TypeError):
    """An active operand has no VJP rule."""


class RuleError(PullbackError, ValueError):
    """A VJP rule returned the wrong count, shape, dtype or ``None``."""


class TracerError(PullbackError, RuntimeError):
    """A tracer is used after its trace ended, in another thread, or in a trace it does not belong to."""


class ConversionError(PullbackError, TypeError):
    """A tracer is about to become a plain number or array, which would drop the derivative."""


class WriteError(PullbackError, ValueError):
    """A write that NumPy could do but whose derivative would be lost or wrong: a captured value, an overlapping
    argument, a read-only view."""


class ConstantChangedError(PullbackError, RuntimeError):
    """A plain array that the reverse pass reads was changed after the forward pass read it."""


class ReplayError(PullbackError, RuntimeError):
    """A re-run of a step did not reach the bytes that the first run reached."""


class StructureError(PullbackError, TypeError):
    """A structure (dict, list, tuple, ...) is not the one expected: a loop carry that changes, a seed of another shape."""


class PolicyError(PullbackError, ValueError):
    """A policy is asked for the impossible: fewer than one snapshot, a negative number of steps."""


class ScheduleError(PullbackError, RuntimeError):
    """An action does not fit the state of the schedule: a load of what was never saved, a reverse out of order."""


class BudgetError(PolicyError):
    """A byte budget cannot be met. ``minimum_bytes`` is the least budget that can."""

    def __init__(self, message: str, minimum_bytes: int) -> None:
        super().__init__(message)
        self.minimum_bytes = minimum_bytes


class CheckError(PullbackError, AssertionError):
    """A checker of ``pullback.testing`` found faults; the message lists every one of them."""


class InputFileError(PullbackError, ValueError):
    """A file named on the command line is missing, pickled, not numeric, or names no function."""


class PolicyWarning(UserWarning):
    """A policy is in force and does not save what it promises; the text names the line and the rewrite."""
