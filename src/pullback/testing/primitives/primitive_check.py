"""check_primitive: every fault of a declaration, found on operands that the author chooses."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from pullback.rules.declaration import Primitive
from pullback.testing.comparing.faults import Fault, raise_faults
from pullback.testing.primitives.calls import PrimitiveCall, make_call
from pullback.testing.primitives.kept_checks import kept_results
from pullback.testing.primitives.purity_checks import (
    memory_layouts,
    mutated_cotangents,
    mutated_inputs,
    mutated_parameters,
    nondeterminism,
    read_only_operands,
    undeclared_aliases,
)
from pullback.testing.primitives.reach_check import wrong_reach
from pullback.testing.primitives.read_checks import undeclared_reads, unneeded_values
from pullback.testing.primitives.result_checks import (
    differing_alternatives,
    failing_rules,
    missing_rules,
    wrong_kinds,
    wrong_values,
)
from pullback.testing.primitives.second_order import wrong_second_order
from pullback.words.call_sites import public
from pullback.words.errors import RuleError

Check = Callable[[PrimitiveCall], Iterable[Fault]]

FIRST_ORDER: Final[tuple[Check, ...]] = (
    missing_rules, failing_rules, wrong_kinds, wrong_values, mutated_inputs, mutated_cotangents, mutated_parameters,
    undeclared_aliases, kept_results, nondeterminism, read_only_operands, memory_layouts, undeclared_reads,
    unneeded_values, differing_alternatives, wrong_reach,
)  # fmt: skip
"""A new check is a function ``PrimitiveCall -> faults`` and a line here."""

SECOND_ORDER: Final[tuple[Check, ...]] = (wrong_second_order,)
"""Checks that run when the first order has no fault: they would find the same faults again, in other words."""

NUMERIC: Final = (wrong_values, wrong_second_order)
"""Checks that compare with differences, which of a collective primitive are those of a sum over all ranks."""


@public
def check_primitive(primitive: Primitive, *operands: Any, **params: Any) -> None:
    """Nothing, if the primitive is declared rightly at these operands.

    Call it once for each kind of operand that is to work: another dtype, a broadcast shape, another axis. Rules are
    compared with the complex step where the forward takes complex numbers, else with central differences, to 1e-8
    relative in float64 and 3e-4 in float32; at a kink or a tie there is no derivative to compare with, so stay off
    them.

    What is checked, each with its own message: missing rule; wrong count, None, wrong shape, dtype, value; inputs and
    cotangent not written, parameters neither; no alias of an input unless ``view=True``; no result that the forward or
    a rule keeps; determinism; read-only, strided, reversed, Fortran-ordered and broadcast arrays; nothing read but what
    is declared, and all of that needed; alternatives of one rule equal bit for bit; ``reach`` and ``elementwise`` as
    declared; the rule's own derivative (second order), unless an opaque residual or output says that there is none.
    Opaque operands and outputs have no numeric derivative: check the function that uses them, with ``check_grads``. A
    ``collective`` primitive is checked on all ranks at once, with operands of the same shapes and dtypes; its
    derivative is not compared, since it is that of the sum over all ranks.

    Parameters
    ----------
    primitive
        A :class:`Primitive`.
    *operands
        Arrays or numbers as the primitive takes them: any shape (0-d and empty included), strides and flags, of
        floating, complex or integer dtype; they are not written.
    **params
        The primitive's own.

    Returns
    -------
    None.

    Raises
    ------
    CheckError
        Listing every fault found.

    Example
    -------
    >>> import numpy as np, pullback as pb
    >>> square = pb.primitive(lambda x: x * x, name="square", elementwise=True)
    >>> _ = square.vjp("x")(lambda ct, x: ct * x)  # it should read 2 * x
    >>> pb.testing.check_primitive(square, np.array([1.0, 2.0]))
    Traceback (most recent call last):
    ...
    pullback.CheckError: ...
    """
    if not isinstance(primitive, Primitive):
        raise TypeError(
            f"check_primitive takes a Primitive, got {type(primitive).__name__}; make one with "
            "pullback.primitive, or call check_grads"
        )
    with np.errstate(all="ignore"):  # rules meet NaN here on purpose
        try:
            call = make_call(primitive, operands, params)
        except RuleError as error:  # its forward does not return what it declares
            raise_faults(f"check_primitive({primitive.name})", [Fault("wrong result", str(error.args[0]))])
        left_out = NUMERIC if primitive.collective else ()
        faults = [fault for check in FIRST_ORDER if check not in left_out for fault in check(call)]
        if not faults:
            faults = [fault for check in SECOND_ORDER if check not in left_out for fault in check(call)]
    raise_faults(f"check_primitive({primitive.name})", faults)
