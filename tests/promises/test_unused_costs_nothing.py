"""What is not used costs nothing, and nothing is left."""

import gc
import operator
import warnings
import weakref

import numpy as np
import pytest

import pullback as pb

X = np.array([0.3, -0.7, 1.1])
POLICIES = (pb.SaveAll(), pb.Recompute(), pb.Binomial(2))


# Nothing left.
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_ledger_is_empty_when_grad_returns(policy):
    def used(x):
        return pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x * 2).sum()

    def unused(x):
        pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x * 2)
        return np.sum(x * x)

    def stopped(x):
        return np.sum(x * pb.stop_gradient(pb.fori_loop(0, 5, lambda k, u: np.sin(u) * x, x * 2)))

    def plain(x):
        return np.sum(x * pb.fori_loop(0, 5, lambda k, u: np.sin(u), X))

    def nested(x):
        return pb.scan(lambda u, _: (pb.fori_loop(0, 3, lambda j, v: np.sin(v) * u, u), u[:2]), x, length=5)[1].sum()

    def marked(x):
        u = x * 1.0
        for _ in pb.steps(5):
            u = np.sin(u) * x
        return u.sum()

    def checked(x):
        return np.sum(pb.checkpoint(lambda a: np.sin(a) * a)(x * 2) * x)

    def unmarked(x):
        u = x * 1.0
        for _ in range(20):
            u = np.sin(u) * x
        return u.sum()

    for f in (used, unused, stopped, plain, nested, marked, checked, unmarked):
        ledgers = []

        def seen(x, f=f, ledgers=ledgers):
            ledgers.append(x._tape.ledger)
            return f(x)

        gc.disable()
        try:
            pb.grad(seen, policy=policy)(X)
        finally:
            gc.enable()
        assert [ledger.total for ledger in ledgers] == [0], f"{f.__name__}: bytes are still booked"


# What is not used costs nothing.
def counting(name, arity):
    """A product of ``arity`` operands whose rules count their calls."""
    calls, names = {}, "xyz"[:arity]
    namespace = {"operator": operator}
    # The operands are named by arity.
    exec(f"def forward({', '.join(names)}):\n    return {' * '.join(names)}", namespace)  # noqa: S102
    prim = pb.primitive(namespace["forward"], name=name)
    for operand in names:
        others = [n for n in names if n != operand]

        def rule(ct, *values, operand=operand):
            calls[operand] = calls.get(operand, 0) + 1
            for v in values:
                ct = ct * v
            return ct

        prim.vjp(operand, saves=tuple(others), fn=rule)
    return prim, calls


def test_only_active_operands_have_their_rules_called():
    product, calls = counting("product", 3)
    y, z = X + 1, X + 2
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(product(x, y, z)))(X), y * z)
    assert calls == {"x": 1}
    pb.grad(lambda y: np.sum(product(X, y, z)))(y)
    assert calls == {"x": 1, "y": 1}
    pb.grad(lambda x, y: np.sum(product(x, y, pb.stop_gradient(x))), argnums=1)(X, y)
    assert calls == {"x": 1, "y": 2}
    pb.grad(lambda x, y: np.sum(product(x, y, np.zeros_like(x))), argnums=(0, 1))(X, y)
    assert calls == {"x": 2, "y": 3}


def test_disconnected_records_have_no_rule_called():
    product, calls = counting("product", 2)

    def f(x):
        y = product(x, x)  # used by nothing
        z = product(y, y)
        pb.stop_gradient(product(z, x))
        return np.sum(x * pb.value(z).sum()) + np.argmax(product(x, x))

    pb.grad(f)(X)
    assert calls == {}


def test_unused_outputs_have_no_rule_called():
    def forward(x):
        return np.sin(x), np.cos(x)

    given = []
    both = pb.primitive(forward, name="sincos", outputs=("s", "c"))

    @both.vjp("x")
    def _(ct, x):
        given.append(tuple(c is not None for c in ct))
        return sum(c * d for c, d in zip(ct, (np.cos(x), -np.sin(x)), strict=True) if c is not None)

    np.testing.assert_allclose(pb.grad(lambda x: np.sum(both(x)[0]))(X), np.cos(X))
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(both(x)[1]))(X), -np.sin(X))
    pb.grad(lambda x: (both(x), np.sum(x))[1])(X)
    assert given == [(True, False), (False, True)]


def test_a_joint_rule_is_told_what_is_needed():
    product = pb.primitive(lambda x, y: x * y, name="joint_product")
    asked = []

    @product.vjp("x", "y")
    def _(ct, x, y, needed):
        asked.append(needed)
        return (ct * y if "x" in needed else None), (ct * x if "y" in needed else None)

    y = X + 1
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(product(x, y)))(X), y)
    np.testing.assert_allclose(pb.grad(lambda y: np.sum(product(X, y)))(y), X)
    gx, gy = pb.grad(lambda x, y: np.sum(product(x, y)), argnums=(0, 1))(X, y)
    np.testing.assert_allclose(gx, y)
    np.testing.assert_allclose(gy, X)
    assert asked == [frozenset({"x"}), frozenset({"y"}), frozenset({"x", "y"})]


HOLDS_NOTHING = {
    "multiply": lambda a, c: a * c,
    "multiply from the right": lambda a, c: c * a,
    "divide": lambda a, c: a / c,
    "add": lambda a, c: a + c,
    "subtract": lambda a, c: c - a,
    "where": lambda a, c: np.where(c > 0, a, c),
    "in place": lambda a, c: operator.imul(a + 0.0, c),
    "concatenate": lambda a, c: np.concatenate([a, c]),
    "mean": lambda a, c: a.mean() * c,
    "reshape": lambda a, c: a.reshape(-1, 1) * c,
    "slice": lambda a, c: a[1:] * 2.0,
    "buffer": lambda a, c: a * np.ones_like(a),
}


@pytest.mark.parametrize("name", HOLDS_NOTHING)
def test_the_partner_of_a_constant_is_not_held(name):
    seen = []

    def f(x):
        a = x * 1.0
        seen.append(weakref.ref(pb.value(a) if pb.value(a).base is None else pb.value(a).base))
        return HOLDS_NOTHING[name](a, X + 2).sum()

    _, pull = pb.vjp(f, X)
    assert seen[0]() is None, f"{name} holds the operand whose partner carries no derivative"
    assert all(row.reason == "constant" for row in pb.saved(f, X))
    pull.close()


def test_a_loop_that_nothing_depends_on_is_not_swept():
    ran = []

    def body(k, u):
        ran.append(k)
        return np.sin(u) * u

    for policy in POLICIES:
        for f in (
            lambda x: (pb.fori_loop(0, 6, body, x), np.sum(x * x))[1],
            lambda x: np.sum(pb.stop_gradient(pb.fori_loop(0, 6, body, x)) * x),
            lambda x: np.sum(pb.fori_loop(0, 6, body, X) * x),
        ):
            ran.clear()
            pb.grad(f, policy=policy)(X)
            assert ran == list(range(6)), f"{policy!r}: {ran}"


def test_plain_xs_of_a_scan_are_no_inputs():
    product, calls = counting("product", 2)
    rows = np.ones((6, 3))

    def f(x):
        return pb.scan(lambda u, row: (product(u, row), None), x * 1.0, rows)[0].sum()

    _, pull = pb.vjp(f, X)
    assert pull.report.bytes_by_reason.get("saved", 0) == 0, (
        "each step holds its carry for the cotangent of a plain row"
    )
    pull(1.0)
    assert calls == {"x": 6}


def test_work_without_tracers_is_not_recorded():
    graph = pb.record(lambda x: np.sum(x * np.sin(np.ones_like(x)) * np.cumsum(X)), X)
    assert [node.name.removeprefix("operator_") for node in graph.nodes if node.name != "input"] == [
        "multiply",
        "multiply",
        "reduce_sum",
    ]


def test_no_warning_and_no_rule_for_integers():
    def f(x):
        k = np.argsort(x)
        return np.sum(x[k] * k) + x.shape[0] * (x > 0).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(pb.grad(f)(X), [0, 1, 2])
