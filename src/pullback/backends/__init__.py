"""The plan of a generated function, and the kernels by which a backend computes parts of it.

A backend is a function ``arrange(plan)``, found through the entry-point group ``pullback.backends`` under the name that
``staging=`` takes. It gets a :class:`Plan` and returns the order in which the function does its work: places of calls,
which are made as NumPy makes them, and :class:`Kernel` objects, each in the place of several calls.
docs/backends.md shows one.

May import: nothing of the package.
"""

from pullback.backends.plans import Backend as Backend
from pullback.backends.plans import Call as Call
from pullback.backends.plans import Kernel as Kernel
from pullback.backends.plans import Plan as Plan
from pullback.backends.plans import Ref as Ref
from pullback.backends.plans import Value as Value
from pullback.backends.plans import Write as Write
from pullback.backends.threads import side_by_side as side_by_side
