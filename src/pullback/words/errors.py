"""Every exception and warning of pullback, and when each is raised.

All exceptions derive from :class:`PullbackError`; most also derive from the built-in class a NumPy user would expect
to catch (``TypeError`` for a wrong kind of argument, ``ValueError`` for a wrong value). A message says what happened,
with the values, and then what to do, and ends in the code of its class. It never prints a whole array.

A code is never given to another class, and a class never changes its code: PB0 general, PB1 functions and arguments,
PB2 tracing, PB3 primitives and plugins, PB4 policies, PB5 numbers, PB6 checkers and the command line, PB7 other
processes and machines. Its page is docs/errors/CODE.md.
"""

from typing import Any


class _Coded:
    """What errors and warnings share: the text ends in the code and the way to its page."""

    code = ""

    def __init_subclass__(cls, code: str = "") -> None:
        cls.code = code or cls.code
        if code:  # the pages hold the examples, which tests run
            cls.__doc__ = f"{cls.__doc__}\n\n    Examples and what to write instead: ``pullback explain {code}``.\n    "
        # Where users find it: tracebacks say so, and pickles keep their meaning when files move.
        cls.__module__ = "pullback"

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.code}: run pullback explain {self.code})"


class PullbackError(_Coded, Exception, code="PB001"):
    """Base of every error that pullback raises on purpose."""


def say_where(error: Exception, where: str) -> None:
    """Say in an error on its way out what the user's program was doing: in the text of our own errors, in a note of any
    other."""
    if isinstance(error, PullbackError) and error.args:
        error.args = (f"{error.args[0]} ({where})", *error.args[1:])
    else:
        error.add_note(f"pullback: {where}")


class NotDifferentiableError(PullbackError, TypeError, code="PB101"):
    """No derivative exists here: an argument of integer type, a non-scalar output of ``grad``, an operand declared
    non-differentiable."""


class UnknownFunctionError(PullbackError, TypeError, code="PB102"):
    """A NumPy function met a tracer and no registered primitive serves it."""


class PluginError(PullbackError, ImportError, code="PB305"):
    """A plugin could not be imported, handed over something that is no primitive, or is not installed."""


class RegistrationError(PullbackError, ValueError, code="PB304"):
    """A name or a NumPy function is already taken in a registry."""


class DeclarationError(PullbackError, ValueError, code="PB301"):
    """A primitive is declared wrongly: unknown names, reserved names, a rule that captures an array."""


class MissingRuleError(PullbackError, TypeError, code="PB302"):
    """An active operand has no VJP rule."""


class RuleError(PullbackError, ValueError, code="PB303"):
    """A forward or a VJP rule returned the wrong count, shape, dtype or ``None``, or wrote where it must not."""


class TracerError(PullbackError, RuntimeError, code="PB202"):
    """A tracer is used after its trace ended, in another thread, or in a trace it does not belong to."""


class ConversionError(PullbackError, TypeError, code="PB201"):
    """A tracer is about to become a plain number or array, which would drop the derivative."""


class WriteError(PullbackError, ValueError, code="PB203"):
    """A write that NumPy could do but whose derivative would be lost or wrong: a captured value, an overlapping
    argument, a read-only view."""


class ConstantChangedError(PullbackError, RuntimeError, code="PB204"):
    """A plain array that the reverse pass reads was changed after the forward pass read it."""


class AdoptionError(PullbackError, ImportError, code="PB205"):
    """A program cannot be adopted, or adopted code is given an object of the original."""


class ReplayError(PullbackError, RuntimeError, code="PB404"):
    """A re-run of a step did not reach the bytes that the first run reached."""


class StructureError(PullbackError, TypeError, code="PB103"):
    """A structure (dict, list, tuple, ...) is not the one expected: a loop carry that changes, a seed of another
    shape."""


class TravelError(PullbackError, TypeError, code="PB104"):
    """Something cannot go to another process by pickle: it holds what is in this one alone, or could not be found
    there."""


class PolicyError(PullbackError, ValueError, code="PB401"):
    """A policy is asked for the impossible: fewer than one snapshot, a negative number of steps."""


class ScheduleError(PullbackError, RuntimeError, code="PB402"):
    """An action does not fit the state of the schedule: a load of what was never saved, a reverse out of order."""


class BudgetError(PolicyError, code="PB403"):
    """A byte budget cannot be met. ``minimum_bytes`` is the least budget that can."""

    def __init__(self, message: str, minimum_bytes: int) -> None:
        super().__init__(message)
        self.minimum_bytes = minimum_bytes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.minimum_bytes), vars(self)  # from another process, with its notes


class StoreError(PullbackError, OSError, code="PB406"):
    """What a policy stored on disk, or elsewhere, could not be written, or did not come back as it was. ``part`` is the
    file."""

    def __init__(self, message: str, part: str = "") -> None:
        super().__init__(message)
        self.part = part

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.part), vars(self)


class ResumeError(PullbackError, RuntimeError, code="PB407"):
    """A run that was killed cannot be taken up where it stood: its journal is that of another call, was changed, or is
    in use; or the run is one that ``resume`` cannot take up at all."""


class ShapesOnlyError(PullbackError, TypeError, code="PB408"):
    """A program that is planned from shapes alone, ``pullback.spec(...)``, asks for a number."""


class NonFiniteError(PullbackError, FloatingPointError, code="PB501"):
    """A primitive produced the first NaN or infinity while a ``trap`` for it was in force, in the forward or the
    reverse pass."""


class ConvergenceError(PullbackError, ArithmeticError, code="PB502"):
    """An iteration did not reach its tolerance. ``residual`` is how far it was from it, ``n_steps`` how many steps
    it took, where known."""

    def __init__(self, message: str, residual: float, n_steps: int | None = None) -> None:
        super().__init__(message)
        self.residual = residual
        self.n_steps = n_steps

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.residual, self.n_steps), vars(self)


class CheckError(PullbackError, AssertionError, code="PB601"):
    """A checker of ``pullback.testing`` found faults; the message lists every one of them."""


class InputFileError(PullbackError, ValueError, code="PB602"):
    """A file named on the command line is missing, pickled, not numeric, or names no function."""


class WorkerError(PullbackError, RuntimeError, code="PB701"):
    """What was given to another thread, process or machine did not come back: it cannot be pickled, the worker died, or
    the pool or cluster is closed."""


class PolicyWarning(_Coded, UserWarning, code="PB405"):
    """A policy is in force and does not save what it promises; the text names the line and the rewrite."""


class RefusalWarning(_Coded, UserWarning, code="PB206"):
    """A conversion of a tracer was refused, and the program caught the error and went on: it may have gone another way
    than with plain numbers."""
