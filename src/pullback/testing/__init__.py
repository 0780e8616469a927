"""The checkers that users call: primitives, gradients, policies, Taylor tests.

May import: the rooms in it.
"""

from pullback.testing.comparing.faults import Fault as Fault
from pullback.testing.gradients.adjoint_comparison import AdjointComparison as AdjointComparison
from pullback.testing.gradients.adjoint_comparison import compare_adjoint as compare_adjoint
from pullback.testing.gradients.grad_check import check_grads as check_grads
from pullback.testing.gradients.taylor import TaylorTest as TaylorTest
from pullback.testing.gradients.taylor import taylor_test as taylor_test
from pullback.testing.policies.policy_check import check_policy as check_policy
from pullback.testing.primitives.primitive_check import check_primitive as check_primitive
