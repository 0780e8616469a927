"""HIPS autograd's names over pullback: a program written for autograd runs after ``autograd`` is replaced by
``pullback_autograd`` in its imports.

docs/from-autograd.md says what each name is in pullback itself, what differs and what raises. Nothing here is needed by
new programs.
"""

from pullback_autograd.builtins import dict, isinstance, list, tuple, type
from pullback_autograd.differential_operators import (
    checkpoint,
    deriv,
    egrad,
    elementwise_grad,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_tensor_product,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
    vector_jacobian_product,
)
from pullback_autograd.drop_in import install, installed, uninstall
from pullback_autograd.extend import primitive

__all__ = [
    "checkpoint", "deriv", "dict", "egrad", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "install", "installed", "isinstance",
    "jacobian", "list", "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict",
    "primitive", "tensor_jacobian_product", "tuple", "type", "uninstall", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip
