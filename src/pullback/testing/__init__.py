"""Checkers: of a primitive's declaration, of a function's derivatives, of a gradient's Taylor rate, of a memory policy."""

from pullback.testing.faults import Fault as Fault
from pullback.testing.grad_check import check_grads as check_grads
from pullback.testing.policy_check import check_policy as check_policy
from pullback.testing.primitive_check import check_primitive as check_primitive
from pullback.testing.taylor import TaylorTest as TaylorTest
from pullback.testing.taylor import taylor_test as taylor_test
