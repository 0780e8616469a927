"""Gradients of NumPy programs under a memory limit.

``grad``, ``value_and_grad`` and ``vjp`` differentiate ordinary NumPy code in reverse mode; ``policy=`` says, per call, what is kept in
memory between forward and reverse and what is computed again. The gradient has the same bits under every policy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pullback import schedules
from pullback.catalogue import Registry, register, registry
from pullback.context import using
from pullback.declare import Composite, Primitive, composite, primitive
from pullback.errors import (
    BudgetError,
    CheckError,
    ConstantChangedError,
    ConversionError,
    DeclarationError,
    InputFileError,
    MissingRuleError,
    NonFiniteError,
    NotDifferentiableError,
    PluginError,
    PolicyError,
    PolicyWarning,
    PullbackError,
    RegistrationError,
    ReplayError,
    RuleError,
    ScheduleError,
    StructureError,
    TracerError,
    UnknownFunctionError,
    WriteError,
)
from pullback.forward import jvp, linearize
from pullback.loops import fori_loop, scan, while_loop
from pullback.marks import checkpoint, steps, stop_gradient
from pullback.policies.base import MemoryPolicy
from pullback.policies.binomial import Binomial
from pullback.policies.recompute import Recompute
from pullback.policies.save_all import SaveAll
from pullback.primitives import CORE, rare
from pullback.reverse import grad, value_and_grad, vjp
from pullback.sentinels import trap
from pullback.tracer import value

__version__ = "0.1.0"

registry.extend(CORE, later=rare)

if TYPE_CHECKING:
    from pullback import testing
    from pullback.inspect.looking import record, saved
    from pullback.inspect.planning import plan
    from pullback.inspect.profiling import profile
else:
    # What only a person looking at a program needs is imported at its first use: it is a quarter of the import, for nothing in a program
    # that runs. Hidden from type checkers, which would take any name for one that exists.
    LATER = {
        "plan": "pullback.inspect.planning",
        "profile": "pullback.inspect.profiling",
        "record": "pullback.inspect.looking",
        "saved": "pullback.inspect.looking",
        "testing": "pullback.testing",
    }

    def __getattr__(name: str) -> Any:
        """A name of ``LATER``, imported; raises AttributeError for any other."""
        if name not in LATER:
            raise AttributeError(f"module 'pullback' has no attribute {name!r}")
        module = import_module(LATER[name])
        return module if name == "testing" else getattr(module, name)

    def __dir__() -> list[str]:
        """The public names, those of ``LATER`` too."""
        return __all__


__all__ = [
    "Binomial",
    "BudgetError",
    "CheckError",
    "Composite",
    "ConstantChangedError",
    "ConversionError",
    "DeclarationError",
    "InputFileError",
    "MemoryPolicy",
    "MissingRuleError",
    "NonFiniteError",
    "NotDifferentiableError",
    "PluginError",
    "PolicyError",
    "PolicyWarning",
    "Primitive",
    "PullbackError",
    "Recompute",
    "RegistrationError",
    "Registry",
    "ReplayError",
    "RuleError",
    "SaveAll",
    "ScheduleError",
    "StructureError",
    "TracerError",
    "UnknownFunctionError",
    "WriteError",
    "checkpoint",
    "composite",
    "fori_loop",
    "grad",
    "jvp",
    "linearize",
    "plan",
    "primitive",
    "profile",
    "record",
    "register",
    "registry",
    "saved",
    "scan",
    "schedules",
    "steps",
    "stop_gradient",
    "testing",
    "trap",
    "using",
    "value",
    "value_and_grad",
    "vjp",
    "while_loop",
]
