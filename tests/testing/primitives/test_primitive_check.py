"""check_primitive: right declarations pass on every kind of operand, and each planted fault is found under its own
name."""

import functools
import itertools

import numpy as np
import pytest

from pullback.rules.declaration import Primitive, elementwise, primitive
from pullback.testing import check_primitive
from pullback.words.errors import CheckError, DeclarationError

X = np.array([0.1, 0.5, -2.0])
Y = np.array([[1.5], [-0.7]])


def cos_rule(ct, x):
    return ct * np.cos(x)


def sine(rule, name="sine") -> Primitive:
    """sin with a rule under test."""
    return primitive(np.sin, name=name, operands=("x",), vjps={"x": rule})


SIN = elementwise(np.sin, x=cos_rule)
MUL = elementwise(np.multiply, symbol="*", x=lambda ct, y: ct * y, y=lambda ct, x: ct * x)
EXP = elementwise(np.exp, x=(lambda ct, out: ct * out, lambda ct, x: ct * np.exp(x)))


# ----------------------------------------------------------------------------------------------------------- right ones

OPERANDS = {
    "1-d": X,
    "2-d": np.arange(6.0).reshape(2, 3),
    "many elements": np.linspace(-1.0, 1.0, 200),
    "0-d": np.array(0.3),
    "NumPy scalar": np.float64(0.3),
    "Python float": 0.3,
    "Python complex": 0.3 + 0.1j,
    "list": [0.1, 0.2],
    "empty": np.zeros((0, 3)),
    "strided": np.linspace(0.0, 1.0, 7)[::2],
    "negative strides": X[::-1],
    "Fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "stride 0": np.broadcast_to(X, (4, 3)),
    "float16": X.astype(np.float16),
    "float32": X.astype(np.float32),
    "longdouble": X.astype(np.longdouble),
    "complex64": (X + 0.2j).astype(np.complex64),
    "complex128": X + 0.2j,
}


@pytest.mark.parametrize("kind", OPERANDS)
def test_a_right_rule_passes(kind):
    check_primitive(SIN, OPERANDS[kind])


def test_a_right_rule_passes_on_read_only_operands():
    x = X.copy()
    x.flags.writeable = False
    check_primitive(SIN, x)
    assert not x.flags.writeable


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X, Y),
        (X, 2.0),
        (2.0, X),
        (X, np.float32(3)),
        (X.astype("f"), Y),
        (X.astype("f"), Y.astype("f")),
        (X, np.arange(3)),
        (X + 1j, X),
        (X, Y + 1j),
        (X, np.zeros((0, 1))),
    ],
    ids=[
        "2-d",
        "scalar",
        "scalar first",
        "float32 scalar",
        "mixed",
        "float32",
        "integer",
        "complex real",
        "real complex",
        "empty",
    ],
)
def test_a_right_rule_passes_when_operands_broadcast(x, y):
    check_primitive(MUL, x, y)


def test_right_alternatives_pass():
    check_primitive(EXP, X)


def test_right_joint_rule_residual_params_and_family_pass():
    @primitive(residuals=("s",))
    def scaled(x, y, *, power=2):
        s = np.sin(x)
        return s * y**power, {"s": s}

    @scaled.vjp("x", "y")
    def _(ct, x, y, s, power, needed):
        assert needed <= {"x", "y"}
        return ct * np.cos(x) * y**power, ct * s * power * y ** (power - 1)

    check_primitive(scaled, X, X + 3)
    check_primitive(scaled, X, X + 3, power=3)

    @primitive
    def side_by_side(*arrays, axis=0):
        return np.concatenate(arrays, axis=axis)

    @side_by_side.vjp("arrays")
    def _(ct, index, arrays_spec, axis):
        start = sum(spec.shape[axis] for spec in arrays_spec[:index])
        return ct[(slice(None),) * axis + (slice(start, start + arrays_spec[index].shape[axis]),)]

    check_primitive(side_by_side, X, X[:2], np.ones(1))
    check_primitive(side_by_side, np.ones((2, 1)), np.ones((2, 3)), axis=1)


def test_right_rules_of_several_outputs_pass():
    @primitive(outputs=("c", "s"))
    def on_circle(x):
        return np.cos(x), np.sin(x)

    @on_circle.vjp("x")
    def _(ct, c, s):
        from_c = 0.0 if ct[0] is None else -ct[0] * s
        return from_c if ct[1] is None else from_c + ct[1] * c

    check_primitive(on_circle, X)


def test_a_declared_view_passes():
    back = lambda ct: np.transpose(ct)  # noqa: E731, PLW0108 - np.transpose has a parameter more
    turn = primitive(np.transpose, name="turn", operands=("x",), view=True, vjps={"x": back})
    check_primitive(turn, np.arange(6.0).reshape(2, 3))


def test_operands_are_left_as_they_were():
    x = X.copy()
    with pytest.raises(CheckError, match="mutated input"):
        check_primitive(primitive(writes_its_operand, vjps={"x": lambda ct: ct}), x)
    assert x.tobytes() == X.tobytes()


# --------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    "x",
    [X, X.astype("f"), X + 1j, np.array(0.4), 0.4, np.linspace(0, 1, 99)],
    ids=["f8", "f4", "c16", "0-d", "float", "many"],
)
def test_wrong_value(x):
    with pytest.raises(CheckError, match=r"wrong value: the rule of sine for 'x' gives .* of 'x' .*, expected .*"):
        check_primitive(sine(lambda ct, x: -ct * np.cos(x)), x)


def test_wrong_value_by_a_missing_factor_in_few_digits():
    with pytest.raises(CheckError, match=r"wrong value: .* by complex step"):
        check_primitive(sine(lambda ct, x: 1.0000001 * ct * np.cos(x)), X)


def test_wrong_value_of_a_conjugate():
    with pytest.raises(CheckError, match="wrong value"):
        check_primitive(sine(lambda ct, x: ct * np.conj(np.cos(x))), X + 0.5j)


def test_wrong_value_where_the_complex_step_misleads():
    check_primitive(elementwise(np.absolute, name="size", x=lambda ct, x: ct * np.sign(x)), X)
    with pytest.raises(CheckError, match=r"wrong value: .* by central differences"):
        check_primitive(elementwise(np.absolute, name="size", x=lambda ct, x: ct + 0 * x), X)


def test_wrong_shape():
    with pytest.raises(
        CheckError,
        match=r"wrong shape: the rule of sine for 'x' returned shape \(2,\) for 'x' \(float64\[3\]\), expected \(3,\)",
    ):
        check_primitive(sine(lambda ct, x: (ct * np.cos(x))[:2]), X)


@pytest.mark.parametrize(
    ("x", "dtype", "reason"),
    [
        (X, np.float32, "digits are lost"),
        (X.astype("f"), np.float64, "twice the bytes"),
        (X, np.int64, "floating or complex"),
        (X, bool, "floating or complex"),
    ],
)
def test_wrong_dtype(x, dtype, reason):
    name = np.dtype(dtype).name
    with pytest.raises(
        CheckError,
        match=rf"wrong dtype: the rule of sine for 'x' returned {name} for 'x' .*, expected {x.dtype.name}.*{reason}",
    ):
        check_primitive(sine(lambda ct, x: (ct * np.cos(x)).astype(dtype)), x)


def test_wrong_count_of_a_joint_rule():
    prim = primitive(np.multiply, name="times", operands=("x", "y"))
    prim.vjp("x", "y", fn=lambda ct, x, y: (ct * y, ct * x, ct))
    with pytest.raises(
        CheckError, match=r"wrong count: the rule of times for 'x', 'y' returned 3 cotangents, expected a tuple of 2"
    ):
        check_primitive(prim, X, X)


def test_wrong_count_of_a_single_rule():
    with pytest.raises(CheckError, match="wrong count: the rule of sine for 'x' returned 2 cotangents, expected one"):
        check_primitive(sine(lambda ct, x: (ct * np.cos(x), None)), X)


def test_none():
    with pytest.raises(CheckError, match="None returned: the rule of sine for 'x' returned None for 'x' "):
        check_primitive(sine(lambda ct: None), X)


def test_missing_rule():
    prim = primitive(np.multiply, name="times", operands=("x", "y"), vjps={"x": lambda ct, y: ct * y})
    with pytest.raises(CheckError, match=r"missing rule: operand 'y' \(float64\[3\]\) of times .*@times.vjp\('y'\)"):
        check_primitive(prim, X, X)
    check_primitive(prim, X, np.arange(3))  # not active: no rule is needed


def test_a_rule_that_raises():
    with pytest.raises(CheckError, match="rule raised: the rule of sine for 'x' raised ZeroDivisionError"):
        check_primitive(sine(lambda ct: ct / (1 // 0)), X)


def writes_its_operand(x):
    x += 1
    return x * 1.0


def test_mutated_input():
    with pytest.raises(
        CheckError,
        match=r"mutated input: the forward of writes_its_operand wrote into its operand 'x' \(float64\[3\]\)",
    ):
        check_primitive(primitive(writes_its_operand, vjps={"x": lambda ct: ct * 1.0}), X)


def test_saved_value_mutated_by_the_rule():
    def rule(ct, x):
        np.cos(x, out=x)
        return ct * x

    with pytest.raises(CheckError, match="mutated input: the rule of sine for 'x' wrote into 'x'"):
        check_primitive(sine(rule), X)


def test_mutated_cotangent():
    def rule(ct, x):
        ct *= np.cos(x)
        return ct

    with pytest.raises(CheckError, match="mutated cotangent: the rule of sine for 'x' wrote into ct"):
        check_primitive(sine(rule), X)


def test_undeclared_alias():
    same = primitive(lambda x: x[...], name="same", vjps={"x": lambda ct: ct})
    with pytest.raises(
        CheckError, match=r"undeclared alias: the output of same shares memory with the operand 'x' .* while view=False"
    ):
        check_primitive(same, X)


def test_undeclared_alias_of_a_residual():
    prim = primitive(
        lambda x: (np.sin(x), {"r": x}), name="kept", residuals=("r",), vjps={"x": lambda ct, r: ct * np.cos(r)}
    )
    with pytest.raises(CheckError, match="undeclared alias: r of kept shares memory"):
        check_primitive(prim, X)


def test_alternatives_that_differ():
    rules = (lambda ct, out: ct * out, lambda ct, x: ct / np.exp(-x))
    with pytest.raises(CheckError, match=r"differing alternatives: .* reads \(x\) and the one that reads \(out\)"):
        check_primitive(elementwise(np.exp, name="e", x=rules), X)


def test_not_deterministic_rule():
    counter = itertools.count(1)
    with pytest.raises(CheckError, match="not deterministic: the rule of sine for 'x' gave other bits"):
        check_primitive(sine(lambda ct, x: ct * np.cos(x) * (1 + 1e-15 * next(counter))), X)


def test_not_deterministic_forward():
    counter = itertools.count(1)
    prim = primitive(lambda x: x + next(counter), name="drift", vjps={"x": lambda ct: ct * 1.0})
    with pytest.raises(CheckError, match="not deterministic: the forward of drift gave other bits"):
        check_primitive(prim, X)


def test_read_only_refused():
    def forward(x):
        memoryview(x).cast("B")[0:0] = b""  # asks for a writable buffer and writes nothing
        return np.sin(x)

    with pytest.raises(CheckError, match="read-only refused: the forward of forward raised TypeError"):
        check_primitive(primitive(forward, vjps={"x": cos_rule}), X)


def test_memory_layout_of_a_forward():
    prim = primitive(
        lambda x: np.frombuffer(x.tobytes("A"), x.dtype).reshape(x.shape) * 1.0,
        name="raw",
        vjps={"x": lambda ct: ct * 1.0},
    )
    with pytest.raises(
        CheckError, match="memory layout: the forward of raw gives other numbers for Fortran-ordered operands"
    ):
        check_primitive(prim, np.arange(6.0).reshape(2, 3))


def test_memory_layout_of_a_cotangent():
    def rule(ct, x):
        return np.lib.stride_tricks.as_strided(ct, ct.shape, (8,)) * np.cos(x)

    with pytest.raises(
        CheckError,
        match=r"memory layout: the rule of sine for 'x' gives other numbers for a .* cotangent of equal values",
    ):
        check_primitive(sine(rule), X)


def test_no_numeric_derivative():
    with pytest.raises(CheckError, match="unchecked value: no numeric derivative of sqrt"):
        check_primitive(elementwise(np.sqrt, x=lambda ct, out: ct / (2 * out)), np.zeros(2))


# ------------------------------------------------------------------------------------------------ reading and declaring

HELD: dict[str, np.ndarray] = {}
WEIGHTS = [np.array([1.0, 2.0, 3.0])]


class Shelf:
    """Somewhere to leave things."""


def leaves_its_operand(x):
    HELD["x"] = x
    return np.sin(x)


def test_undeclared_read_through_a_global_container():
    prim = primitive(leaves_its_operand, vjps={"x": lambda ct: ct * np.cos(HELD["x"])})
    with pytest.raises(
        CheckError,
        match=r"undeclared read: the rule of leaves_its_operand for 'x' reads an array through the global HELD\['x'\]",
    ):
        check_primitive(prim, X)


def test_undeclared_read_of_a_constant_in_a_container():
    prim = primitive(lambda x: x * WEIGHTS[0], name="weigh", vjps={"x": lambda ct: ct * WEIGHTS[0]})
    with pytest.raises(CheckError, match=r"undeclared read: .* through the global WEIGHTS\[0\]"):
        check_primitive(prim, X)
    assert WEIGHTS[0].tolist() == [1.0, 2.0, 3.0]


def test_undeclared_read_through_a_closure_bound_later():
    held = None

    def forward(x):
        nonlocal held
        held = np.cos(x)
        return np.sin(x)

    prim = primitive(forward, vjps={"x": lambda ct: ct * held})
    with pytest.raises(CheckError, match=r"undeclared read: .* through the closure variable held"):
        check_primitive(prim, X)


def test_undeclared_read_through_a_default():
    table = {"w": X.copy()}
    prim = primitive(
        lambda x: x * table["w"], name="weigh", vjps={"x": functools.partial(lambda kept, ct: ct * kept["w"], table)}
    )
    with pytest.raises(CheckError, match=r"undeclared read: .* through arguments of a partial\[0\]\['w'\]"):
        check_primitive(prim, X)
    prim = primitive(lambda x: x * table["w"], name="weigh")
    prim.vjp("x", saves=(), fn=lambda ct, kept=table: ct * kept["w"])
    with pytest.raises(CheckError, match=r"undeclared read: .* through a default\['w'\]"):
        check_primitive(prim, X)


def test_undeclared_read_through_a_helper():
    def helper():
        return HELD["x"]

    prim = primitive(leaves_its_operand, vjps={"x": lambda ct: ct * np.cos(helper())})
    with pytest.raises(CheckError, match=r"undeclared read: .* through the global HELD of helper\['x'\]"):
        check_primitive(prim, X)


def test_undeclared_read_from_where_nobody_looks():
    def forward(x):
        Shelf.content = x.copy()
        return np.sin(x)

    prim = primitive(forward, vjps={"x": lambda ct: ct * np.cos(Shelf.content)})
    with pytest.raises(
        CheckError, match=r"undeclared read: .* gives other bits once the forward has run on other operands"
    ):
        check_primitive(prim, X)


def test_undeclared_read_of_the_call_itself():
    def forward(x):
        if not hasattr(Shelf, "first"):
            Shelf.first = []
        Shelf.first.append(x)
        return np.sin(x)

    def newest_like(ct):
        return next(x for x in reversed(Shelf.first) if x.shape == ct.shape)

    prim = primitive(forward, vjps={"x": lambda ct: ct * np.cos(newest_like(ct))})
    with pytest.raises(CheckError, match="undeclared read"):
        check_primitive(prim, X)


def test_declared_and_never_needed():
    with pytest.raises(CheckError, match="never needed: the rule of double for 'x' declares 'x' and never needs it"):
        check_primitive(primitive(lambda x: 2 * x, name="double", vjps={"x": lambda ct, x: 2 * ct}), X)
    with pytest.raises(CheckError, match=r"never needed: .* declares 'out' .* name out_spec"):
        check_primitive(
            primitive(lambda x: 2 * x, name="double", vjps={"x": lambda ct, out: 2 * ct.reshape(out.shape)}), X
        )


def test_a_value_read_only_in_comparisons_is_needed():
    relu = elementwise(np.maximum, x=lambda ct, x, y: ct * (x > y), y=lambda ct, x, y: ct * (y > x))
    check_primitive(relu, np.array([-1.0, -2.0]), 0.0)


def test_every_fault_is_listed():
    counter = itertools.count(1)

    def rule(ct, x):
        ct += next(counter)
        return ct

    with pytest.raises(CheckError, match=r"check_primitive\(sine\): [3-9] faults") as caught:
        check_primitive(sine(rule), X)
    for kind in ("wrong value", "mutated cotangent", "not deterministic"):
        assert kind in str(caught.value)


def test_the_message_shows_no_array():
    with pytest.raises(CheckError) as caught:
        check_primitive(sine(lambda ct, x: ct), np.linspace(0, 1, 10_000))
    assert len(str(caught.value)) < 1500


REACHES = {  # each leaves what is said of it; a rule with the same reach is right for another
    "place": (lambda x, *, axis: -np.flip(x, axis), lambda ct, axis: -np.flip(ct, axis)),
    "moved": (lambda x, *, axis: x + np.flip(x, axis), lambda ct, axis: ct + np.flip(ct, axis)),
    "before": (lambda x, *, axis: np.flip(np.cumsum(x, axis), axis), lambda ct, axis: _suffix(np.flip(ct, axis), axis)),
    "line": (lambda x, *, axis: np.cumsum(x, 1 - axis), lambda ct, axis: _suffix(ct, 1 - axis)),
}


def _suffix(ct, axis):
    return np.flip(np.cumsum(np.flip(ct, axis), axis), axis)


@pytest.mark.parametrize("reach", REACHES)
def test_wrong_reach(reach):
    forward, rule = REACHES[reach]
    x = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]])
    check_primitive(primitive(forward, name="mine", vjps={"x": rule}), x, axis=0)
    with pytest.raises(CheckError, match=rf"wrong reach: the rule of mine for 'x' .* element \(.*'{reach}' does not"):
        check_primitive(primitive(forward, name="mine", reach=reach, vjps={"x": rule}), x, axis=0)


def test_wrong_reach_of_a_reduction():
    of_columns = primitive(
        lambda x, *, axis, keepdims: np.sum(x, 1 - axis, keepdims=keepdims), name="mine", reach="reduced",
        vjps={"x": lambda ct, x_spec, axis: np.broadcast_to(np.expand_dims(ct, 1 - axis), x_spec.shape)},
    )  # fmt: skip
    with pytest.raises(CheckError, match="wrong reach"):
        check_primitive(of_columns, np.arange(9.0).reshape(3, 3), axis=0, keepdims=False)


def test_wrong_elementwise():
    turned = primitive(lambda x: x[::-1] * 2, name="mine", elementwise=True, vjps={"x": lambda ct: ct[::-1] * 2})
    with pytest.raises(CheckError, match="wrong reach"):
        check_primitive(turned, np.arange(3.0))


def test_a_reach_that_nobody_knows_is_refused():
    with pytest.raises(DeclarationError, match=r"mine: reach= names 'far', which is none of"):
        primitive(lambda x: x, name="mine", reach="far")
    with pytest.raises(DeclarationError, match=r"mine: reach= names 'axis', which is none of \(\)"):
        primitive(lambda x: x, name="mine", reach="line")


def test_only_primitives():
    with pytest.raises(TypeError, match="check_primitive takes a Primitive, got ufunc"):
        check_primitive(np.sin, X)


# --------------------------------------------------------------------------------------------------------- second order


def test_a_rule_that_cannot_be_traced():
    def rule(ct, x):
        return ct * np.array([float(np.cos(v)) for v in x])

    with pytest.raises(CheckError, match=r"not differentiable again: second-order .* write the rule with np functions"):
        check_primitive(sine(rule), X)


def test_a_rule_whose_derivative_is_dropped():
    def rule(ct, x):
        return ct * np.cos(np.round(x * 1e14) * 1e-14)

    with pytest.raises(CheckError, match="not differentiable again: second-order wrong gradient"):
        check_primitive(sine(rule), X)


def test_an_opaque_residual_says_that_there_is_no_second_order():
    prim = primitive(
        lambda x: (np.sin(x), {"kept": [np.cos(x).tolist()]}), name="opaque_sine", residuals=("kept",),
        opaque={"kept": lambda _: 8},
        vjps={"x": lambda ct, kept: ct * np.asarray(kept[0])},
    )  # fmt: skip
    check_primitive(prim, X)


def test_a_value_that_matters_only_beside_others_is_needed():
    clamp = elementwise(
        lambda x, low, high: np.minimum(np.maximum(x, low), high),
        name="clamp",
        x=lambda ct, x, low, high: np.where((x < low) | (x > high) | (low > high), 0, ct),
        low=lambda ct, x, low, high: np.where((x < low) & (low <= high), ct, 0),
        high=lambda ct, x, low, high: np.where((x > high) | (low > high), ct, 0),
    )
    check_primitive(clamp, np.array([0.5, 2.0]), np.array([0.1, 0.2]), np.array([0.4, 1.0]))
    step = primitive(
        np.heaviside,
        name="step",
        operands=("x", "y"),
        nondiff=("x",),
        vjps={"y": lambda ct, x: np.where(x == 0, ct, 0)},
    )
    check_primitive(step, X, X)
