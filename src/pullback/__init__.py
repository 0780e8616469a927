"""Gradients of NumPy programs under a memory limit.

``grad``, ``value_and_grad`` and ``vjp`` differentiate ordinary NumPy code in reverse mode; ``policy=`` says, per call, what is kept in
memory between forward and reverse and what is computed again. The gradient has the same bits under every policy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pullback.catalogue import Registry, register, registry
from pullback.context import using
from pullback.declare import Composite, Primitive, composite, primitive
from pullback.errors import (
    BudgetError,
    CheckError,
    ConstantChangedError,
    ConvergenceError,
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
from pullback.marks import checkpoint, steps, stop_gradient
from pullback.naming import name
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.primitives import CORE, rare
from pullback.reverse import grad, value_and_grad, vjp
from pullback.sentinels import trap
from pullback.tracer import value

__version__ = "0.1.0"

registry.extend(CORE, later=rare)

if TYPE_CHECKING:
    from pullback import numpy as numpy
    from pullback import schedules, testing
    from pullback.derivatives import elementwise_grad, gauss_newton_product, hessian, hvp, jacobian
    from pullback.forward import jvp, linearize
    from pullback.implicit import custom_root, fixed_point
    from pullback.inspect.depending import dependencies
    from pullback.inspect.looking import record, saved
    from pullback.inspect.planning import plan
    from pullback.inspect.profiling import profile
    from pullback.integrate import odeint
    from pullback.loops import fori_loop, scan, while_loop
    from pullback.policies.binomial import Binomial
    from pullback.policies.recompute import Recompute
    from pullback.ravelling import fun_and_grad, ravel
    from pullback.solutions import custom_linear_solve
    from pullback.sparse import sparse_jacobian
else:
    # What few programs need is imported at its first use: it is a third of the import, for nothing in most programs that run. Hidden from
    # type checkers, which would take any name for one that exists.
    LATER = {
        "Binomial": "pullback.policies.binomial",
        "Recompute": "pullback.policies.recompute",
        "custom_linear_solve": "pullback.solutions",
        "custom_root": "pullback.implicit",
        "dependencies": "pullback.inspect.depending",
        "elementwise_grad": "pullback.derivatives",
        "fixed_point": "pullback.implicit",
        "fori_loop": "pullback.loops",
        "fun_and_grad": "pullback.ravelling",
        "gauss_newton_product": "pullback.derivatives",
        "hessian": "pullback.derivatives",
        "hvp": "pullback.derivatives",
        "jacobian": "pullback.derivatives",
        "jvp": "pullback.forward",
        "linearize": "pullback.forward",
        "numpy": "pullback.numpy",
        "odeint": "pullback.integrate",
        "plan": "pullback.inspect.planning",
        "profile": "pullback.inspect.profiling",
        "ravel": "pullback.ravelling",
        "record": "pullback.inspect.looking",
        "saved": "pullback.inspect.looking",
        "scan": "pullback.loops",
        "sparse_jacobian": "pullback.sparse",
        "schedules": "pullback.schedules",
        "testing": "pullback.testing",
        "while_loop": "pullback.loops",
    }

    def __getattr__(name: str) -> Any:
        """A name of ``LATER``, imported; raises AttributeError for any other."""
        if name not in LATER:
            raise AttributeError(f"module 'pullback' has no attribute {name!r}")
        module = import_module(LATER[name])
        return module if module.__name__ == f"pullback.{name}" else getattr(module, name)

    def __dir__() -> list[str]:
        """The public names, those of ``LATER`` too."""
        return __all__


__all__ = [
    "Binomial",
    "BudgetError",
    "CheckError",
    "Composite",
    "ConstantChangedError",
    "ConvergenceError",
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
    "custom_linear_solve",
    "custom_root",
    "dependencies",
    "elementwise_grad",
    "fixed_point",
    "fori_loop",
    "fun_and_grad",
    "gauss_newton_product",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "name",
    "odeint",
    "plan",
    "primitive",
    "profile",
    "ravel",
    "record",
    "register",
    "registry",
    "saved",
    "scan",
    "schedules",
    "sparse_jacobian",
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
