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
from pullback.primitives import CORE, late_families
from pullback.programs.marks.stopped_gradients import stop_gradient
from pullback.recording.handles import value
from pullback.recording.traps import trap
from pullback.rules.authoring import primitive
from pullback.rules.catalogue import Registry, register, registry
from pullback.rules.declaration import Composite, Primitive, composite
from pullback.tracing.tracer import Tracer
from pullback.transforms.derivatives.reverse import grad, value_and_grad, vjp
from pullback.words.errors import (
    AdoptionError,
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
    RefusalWarning,
    RegistrationError,
    ReplayError,
    ResumeError,
    RuleError,
    ScheduleError,
    ShapesOnlyError,
    StoreError,
    StructureError,
    TracerError,
    TravelError,
    UnknownFunctionError,
    WorkerError,
    WriteError,
)
from pullback.words.structures import map_leaves

__version__ = "0.1.0"

registry.extend(CORE, later=late_families)

if TYPE_CHECKING:
    from pullback import backends, scaling, schedules, stores, testing
    from pullback import numpy as numpy
    from pullback.adopting.modules.adoption import adopt
    from pullback.choosing.agreement import Agreement
    from pullback.choosing.budget_pool import BudgetPool
    from pullback.instruments.inspect.dependency_table import dependencies
    from pullback.instruments.inspect.graph_of_tape import record
    from pullback.instruments.inspect.saved_values import saved
    from pullback.instruments.inspect.stage_texts import explain_stage
    from pullback.instruments.planning.measured_curves import pareto
    from pullback.instruments.planning.plans import plan
    from pullback.instruments.profiling.profile_runs import profile
    from pullback.loops.bodies.effect_functions import effect
    from pullback.loops.functions.loop_functions import fori_loop, scan, while_loop
    from pullback.policies.binomial import Binomial
    from pullback.policies.budget import Budget
    from pullback.policies.keep import Keep
    from pullback.policies.mixed import Mixed
    from pullback.policies.periodic import Periodic
    from pullback.policies.recompute import Recompute
    from pullback.policies.tiered import Tiered
    from pullback.programs.marks.checkpoints import checkpoint
    from pullback.programs.marks.named_values import name
    from pullback.programs.marks.step_marks import steps
    from pullback.resuming.sessions import resume
    from pullback.scaling.executors import over_executor
    from pullback.shapes_only.hollow_arrays import spec
    from pullback.solving.implicit_derivative import custom_linear_solve
    from pullback.solving.ode_solver import odeint
    from pullback.solving.roots_and_fixed_points import custom_root, fixed_point
    from pullback.solving.structures_as_vectors import fun_and_grad, ravel
    from pullback.staging.calls.staged_functions import staged
    from pullback.transforms.derivatives.elementwise_derivative import elementwise_grad
    from pullback.transforms.derivatives.forward import jvp, linearize
    from pullback.transforms.derivatives.jacobian_hessian_hvp import gauss_newton_product, hessian, hvp, jacobian
    from pullback.transforms.sparsity.sparse_jacobians import sparse_jacobian
else:
    # What few programs need is imported at its first use: it is a third of the import, for nothing in most programs
    # that run. Hidden from type checkers, which would take any name for one that exists.
    LATER = {
        "Agreement": "pullback.choosing.agreement",
        "Binomial": "pullback.policies.binomial",
        "Budget": "pullback.policies.budget",
        "BudgetPool": "pullback.choosing.budget_pool",
        "Keep": "pullback.policies.keep",
        "Mixed": "pullback.policies.mixed",
        "Periodic": "pullback.policies.periodic",
        "Recompute": "pullback.policies.recompute",
        "Tiered": "pullback.policies.tiered",
        "adopt": "pullback.adopting.modules.adoption",
        "backends": "pullback.backends",
        "checkpoint": "pullback.programs.marks.checkpoints",
        "custom_linear_solve": "pullback.solving.implicit_derivative",
        "custom_root": "pullback.solving.roots_and_fixed_points",
        "dependencies": "pullback.instruments.inspect.dependency_table",
        "effect": "pullback.loops.bodies.effect_functions",
        "elementwise_grad": "pullback.transforms.derivatives.elementwise_derivative",
        "explain_stage": "pullback.instruments.inspect.stage_texts",
        "fixed_point": "pullback.solving.roots_and_fixed_points",
        "fori_loop": "pullback.loops.functions.loop_functions",
        "fun_and_grad": "pullback.solving.structures_as_vectors",
        "gauss_newton_product": "pullback.transforms.derivatives.jacobian_hessian_hvp",
        "hessian": "pullback.transforms.derivatives.jacobian_hessian_hvp",
        "hvp": "pullback.transforms.derivatives.jacobian_hessian_hvp",
        "jacobian": "pullback.transforms.derivatives.jacobian_hessian_hvp",
        "jvp": "pullback.transforms.derivatives.forward",
        "linearize": "pullback.transforms.derivatives.forward",
        "name": "pullback.programs.marks.named_values",
        "numpy": "pullback.numpy",
        "odeint": "pullback.solving.ode_solver",
        "over_executor": "pullback.scaling.executors",
        "pareto": "pullback.instruments.planning.measured_curves",
        "plan": "pullback.instruments.planning.plans",
        "profile": "pullback.instruments.profiling.profile_runs",
        "ravel": "pullback.solving.structures_as_vectors",
        "record": "pullback.instruments.inspect.graph_of_tape",
        "resume": "pullback.resuming.sessions",
        "saved": "pullback.instruments.inspect.saved_values",
        "scaling": "pullback.scaling",
        "scan": "pullback.loops.functions.loop_functions",
        "sparse_jacobian": "pullback.transforms.sparsity.sparse_jacobians",
        "schedules": "pullback.schedules",
        "spec": "pullback.shapes_only.hollow_arrays",
        "staged": "pullback.staging.calls.staged_functions",
        "steps": "pullback.programs.marks.step_marks",
        "stores": "pullback.stores",
        "testing": "pullback.testing",
        "while_loop": "pullback.loops.functions.loop_functions",
    }

    def __getattr__(name: str) -> Any:
        """A name of ``LATER``, imported; raises AttributeError for any other."""
        if name not in LATER:
            raise AttributeError(f"module 'pullback' has no attribute {name!r}")
        module = import_module(LATER[name])
        found = module if module.__name__ == f"pullback.{name}" else getattr(module, name)
        globals()[name] = found  # from now on an attribute like the others
        return found

    def __dir__() -> list[str]:
        """The public names, those of ``LATER`` too."""
        return __all__


__all__ = [
    "AdoptionError", "Agreement", "Binomial", "Budget", "BudgetError", "BudgetPool", "CheckError", "Composite",
    "ConstantChangedError", "ConvergenceError", "ConversionError", "DeclarationError", "InputFileError", "Keep",
    "MemoryPolicy", "MissingRuleError", "Mixed", "NonFiniteError", "NotDifferentiableError", "Periodic", "PluginError",
    "PolicyError", "PolicyWarning", "Primitive", "PullbackError", "Recompute", "RefusalWarning", "RegistrationError",
    "Registry", "ReplayError", "ResumeError", "RuleError", "SaveAll", "ScheduleError", "ShapesOnlyError", "StoreError",
    "StructureError", "Tiered", "Tracer", "TracerError", "TravelError", "UnknownFunctionError", "WorkerError",
    "WriteError", "adopt", "backends", "checkpoint", "composite", "custom_linear_solve", "custom_root", "dependencies",
    "effect", "elementwise_grad", "explain_stage", "fixed_point", "fori_loop", "fun_and_grad", "gauss_newton_product",
    "grad", "hessian", "hvp", "jacobian", "jvp", "linearize", "map_leaves", "name", "odeint", "over_executor", "pareto",
    "plan", "primitive", "profile", "ravel", "record", "register", "registry", "resume", "saved", "scaling", "scan",
    "schedules", "sparse_jacobian", "spec", "staged", "steps", "stop_gradient", "stores", "testing", "trap", "using",
    "value", "value_and_grad", "vjp", "while_loop",
]  # fmt: skip
