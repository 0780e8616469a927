"""Gradients of NumPy programs under a memory limit.

``grad``, ``value_and_grad`` and ``vjp`` differentiate ordinary NumPy code in reverse mode; ``policy=`` says, per call,
what is kept in memory between forward and reverse and what is computed again. The gradient has the same bits under
every policy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pullback.memory.in_force import using
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.primitives import CORE, rare
from pullback.recording.handles import value
from pullback.recording.traps import trap
from pullback.rules.catalogue import Registry, register, registry
from pullback.rules.declaration import Composite, Primitive, composite, primitive
from pullback.transforms.adjoint_fields import name
from pullback.transforms.reverse import grad, value_and_grad, vjp
from pullback.transforms.stepping import checkpoint, steps, stop_gradient
from pullback.words.errors import (
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

__version__ = "0.1.0"

registry.extend(CORE, later=rare)

if TYPE_CHECKING:
    from pullback import numpy as numpy
    from pullback import schedules, testing
    from pullback.inspect.depending import dependencies
    from pullback.inspect.looking import record, saved
    from pullback.inspect.planning import plan
    from pullback.inspect.profiling import profile
    from pullback.loops.loop_functions import fori_loop, scan, while_loop
    from pullback.policies.binomial import Binomial
    from pullback.policies.recompute import Recompute
    from pullback.solving.engine import custom_linear_solve
    from pullback.solving.implicit import custom_root, fixed_point
    from pullback.solving.ode import odeint
    from pullback.solving.vectors import fun_and_grad, ravel
    from pullback.sparsity.jacobian_by_colours import sparse_jacobian
    from pullback.transforms.derivatives import elementwise_grad, gauss_newton_product, hessian, hvp, jacobian
    from pullback.transforms.forward import jvp, linearize
else:
    # What few programs need is imported at its first use: it is a third of the import, for nothing in most programs
    # that run. Hidden from type checkers, which would take any name for one that exists.
    LATER = {
        "Binomial": "pullback.policies.binomial",
        "Recompute": "pullback.policies.recompute",
        "custom_linear_solve": "pullback.solving.engine",
        "custom_root": "pullback.solving.implicit",
        "dependencies": "pullback.inspect.depending",
        "elementwise_grad": "pullback.transforms.derivatives",
        "fixed_point": "pullback.solving.implicit",
        "fori_loop": "pullback.loops.loop_functions",
        "fun_and_grad": "pullback.solving.vectors",
        "gauss_newton_product": "pullback.transforms.derivatives",
        "hessian": "pullback.transforms.derivatives",
        "hvp": "pullback.transforms.derivatives",
        "jacobian": "pullback.transforms.derivatives",
        "jvp": "pullback.transforms.forward",
        "linearize": "pullback.transforms.forward",
        "numpy": "pullback.numpy",
        "odeint": "pullback.solving.ode",
        "plan": "pullback.inspect.planning",
        "profile": "pullback.inspect.profiling",
        "ravel": "pullback.solving.vectors",
        "record": "pullback.inspect.looking",
        "saved": "pullback.inspect.looking",
        "scan": "pullback.loops.loop_functions",
        "sparse_jacobian": "pullback.sparsity.jacobian_by_colours",
        "schedules": "pullback.schedules",
        "testing": "pullback.testing",
        "while_loop": "pullback.loops.loop_functions",
    }

    def __getattr__(name: str) -> Any:
        """A name of ``LATER``, imported; raises AttributeError for any other."""
        if name not in LATER:
            raise AttributeError(f"module 'pullback' has no attribute {name!r}")
        module = import_module(LATER[name])
        found = module if module.__name__ == f"pullback.{name}" else getattr(module, name)
        globals()[name] = found  # asked for once
        return found

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
