"""Sums over items, computed by several threads, processes or machines, whose bits no engine decides.

``pullback.over_executor`` uses any executor of the standard library's form. What else divides such a sum takes its
parts from here: :func:`tree_sum` decides the bits, :class:`Term` computes one item as the caller would have.

May import: words, policies, memory, transforms.derivatives.
"""

from pullback.scaling.executors import over_executor as over_executor
from pullback.scaling.in_order import in_order as in_order
from pullback.scaling.terms import Term as Term
from pullback.scaling.terms import plus as plus
from pullback.scaling.transport import explained as explained
from pullback.scaling.transport import sendable_error as sendable_error
from pullback.scaling.transport import unsendable as unsendable
from pullback.scaling.trees import tree_sum as tree_sum
