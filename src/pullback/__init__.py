"""Gradients of NumPy programs under a memory limit.

``grad``, ``value_and_grad`` and ``vjp`` differentiate ordinary NumPy code in reverse mode; ``policy=`` says, per call,
what is kept in memory between forward and reverse and what is computed again. The gradient has the same bits under
every policy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pullback.marks.stopped_gradients import stop_gradient
from pullback.memory.in_force import using
from pullback.policies.base import MemoryPolicy
from pullback.policies.save_all import SaveAll
from pullback.primitives import CORE, late_families
from pullback.recording.handles import value
from pullback.recording.traps import trap
from pullback.rules.authoring import primitive
from pullback.rules.catalogue import Registry, register, registry
from pullback.rules.declaration import Composite, Primitive, composite
from pullback.tracing.tracer import Tracer
from pullback.transforms.reverse import grad, value_and_grad, vjp
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
    from pullback.adopting.adoption import adopt
    from pullback.bodies.effect_functions import effect
    from pullback.choosing.agreement import Agreement
    from pullback.choosing.budget_pool import BudgetPool
    from pullback.inspect.dependency_table import dependencies
    from pullback.inspect.graph_of_tape import record
    from pullback.inspect.saved_values import saved
    from pullback.inspect.stage_texts import explain_stage
    from pullback.loops.loop_functions import fori_loop, scan, while_loop
    from pullback.marks.checkpoints import checkpoint
    from pullback.marks.named_values import name
    from pullback.marks.step_marks import steps
    from pullback.planning.measured_curves import pareto
    from pullback.planning.plans import plan
    from pullback.policies.binomial import Binomial
    from pullback.policies.budget import Budget
    from pullback.policies.keep import Keep
    from pullback.policies.mixed import Mixed
    from pullback.policies.periodic import Periodic
    from pullback.policies.recompute import Recompute
    from pullback.policies.tiered import Tiered
    from pullback.profiling.profile_runs import profile
    from pullback.resuming.sessions import resume
    from pullback.scaling.executors import over_executor
    from pullback.shapes_only.hollow_arrays import spec
    from pullback.solving.implicit_derivative import custom_linear_solve
    from pullback.solving.ode_solver import odeint
    from pullback.solving.roots_and_fixed_points import custom_root, fixed_point
    from pullback.solving.structures_as_vectors import fun_and_grad, ravel
    from pullback.sparsity.sparse_jacobians import sparse_jacobian
    from pullback.staged_functions.staged_functions import staged
    from pullback.transforms.elementwise_derivative import elementwise_grad
    from pullback.transforms.forward import jvp, linearize
    from pullback.transforms.jacobian_hessian_hvp import gauss_newton_product, hessian, hvp, jacobian
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
        "adopt": "pullback.adopting.adoption",
        "backends": "pullback.backends",
        "checkpoint": "pullback.marks.checkpoints",
        "custom_linear_solve": "pullback.solving.implicit_derivative",
        "custom_root": "pullback.solving.roots_and_fixed_points",
        "dependencies": "pullback.inspect.dependency_table",
        "effect": "pullback.bodies.effect_functions",
        "elementwise_grad": "pullback.transforms.elementwise_derivative",
        "explain_stage": "pullback.inspect.stage_texts",
        "fixed_point": "pullback.solving.roots_and_fixed_points",
        "fori_loop": "pullback.loops.loop_functions",
        "fun_and_grad": "pullback.solving.structures_as_vectors",
        "gauss_newton_product": "pullback.transforms.jacobian_hessian_hvp",
        "hessian": "pullback.transforms.jacobian_hessian_hvp",
        "hvp": "pullback.transforms.jacobian_hessian_hvp",
        "jacobian": "pullback.transforms.jacobian_hessian_hvp",
        "jvp": "pullback.transforms.forward",
        "linearize": "pullback.transforms.forward",
        "name": "pullback.marks.named_values",
        "numpy": "pullback.numpy",
        "odeint": "pullback.solving.ode_solver",
        "over_executor": "pullback.scaling.executors",
        "pareto": "pullback.planning.measured_curves",
        "plan": "pullback.planning.plans",
        "profile": "pullback.profiling.profile_runs",
        "ravel": "pullback.solving.structures_as_vectors",
        "record": "pullback.inspect.graph_of_tape",
        "resume": "pullback.resuming.sessions",
        "saved": "pullback.inspect.saved_values",
        "scaling": "pullback.scaling",
        "scan": "pullback.loops.loop_functions",
        "sparse_jacobian": "pullback.sparsity.sparse_jacobians",
        "schedules": "pullback.schedules",
        "spec": "pullback.shapes_only.hollow_arrays",
        "staged": "pullback.staged_functions.staged_functions",
        "steps": "pullback.marks.step_marks",
        "stores": "pullback.stores",
        "testing": "pullback.testing",
        "while_loop": "pullback.loops.loop_functions",
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
