"""A forward or a rule of an author's own that keeps what it returns, writes where it must not, or returns something
else than it declares: the right gradient under every policy, or an error by name."""

import mmap
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pullback as pb

X = np.array([[0.5, 1.0, -2.0], [1.5, -0.25, 3.0]])
POLICIES = (pb.SaveAll(), pb.Recompute(2), pb.Binomial(2))
SETTINGS = settings(max_examples=60, deadline=None)


# ----------------------------------------------------------------------------------------------- what a forward returns
class Work:
    """Arrays that a forward has, whichever way, and that it returns x * x in."""

    def __init__(self):
        self.flat, self.wide, self.seen = np.empty(X.shape), np.empty((4, 6)), []
        self.bytes, self.mapped = bytearray(X.nbytes), mmap.mmap(-1, X.nbytes)
        self.cached = lru_cache(lambda data: np.frombuffer(data).reshape(X.shape) ** 2)

    def filled(self, out, x):
        np.multiply(x, x, out=out)
        return out

    def kept(self, x):
        self.seen.append(x * x)
        return self.seen[-1]

    def view_kept(self, x):
        out = x * x
        self.seen.append(out[:1])
        return out


def transposed(x):
    return np.ascontiguousarray((x * x).T).T


def operand_itself(x):
    if np.array_equal(x, x * x):
        return x
    return np.broadcast_to((x * x)[None], (1, *X.shape))[0]


FORWARDS = {
    "fresh": lambda _: lambda x: x * x,
    "work array": lambda w: lambda x: w.filled(w.flat, x),
    "view of one": lambda w: lambda x: w.filled(w.wide[1:3, ::2], x),
    "reversed view of one": lambda w: lambda x: w.filled(w.flat[::-1, ::-1], x),
    "bytes": lambda w: lambda x: w.filled(np.frombuffer(w.bytes).reshape(X.shape), x),
    "memory map": lambda w: lambda x: w.filled(np.ndarray(X.shape, float, w.mapped), x),
    "memoised": lambda w: lambda x: w.cached(np.ascontiguousarray(x).tobytes()),
    "kept in a list": lambda w: w.kept,
    "a view is kept": lambda w: w.view_kept,
    "Fortran": lambda _: transposed,
    "broadcast": lambda _: operand_itself,
}


def square(kind, by):
    """x * x by a forward of this kind, with a rule that reads ``by``."""
    p = pb.primitive(FORWARDS[kind](Work()), name="square", operands=("x",))
    p.vjp("x", fn={"x": lambda ct, x: 2 * ct * x, "out": lambda ct, out: 2 * ct * (out / np.sqrt(np.abs(out)))}[by])
    return p


def written(f, u):
    """A step that writes into what it has read and what it has got."""
    u = u * 1.0
    y = f(u)
    z = f(u + 0.1)
    u[0] = 0.3 * y[1]
    y[1, 0] = 0.5 * z[0, 0]
    return 0.1 * (y + z) * u


def looped(f, u):
    return np.sum(pb.fori_loop(0, 5, lambda _, u: written(f, u), u))


def marked(f, u):
    for _ in pb.steps(5):
        u = written(f, u)
    return np.sum(u)


def checkpointed(f, u):
    return np.sum(pb.checkpoint(lambda u: written(f, written(f, u)))(u))


@SETTINGS
@given(
    st.sampled_from(sorted(FORWARDS)), st.sampled_from(POLICIES), st.sampled_from((looped, marked, checkpointed)),
    st.sampled_from(("x", "out")),
)  # fmt: skip
def test_what_a_forward_has_is_nothing_to_its_result(kind, policy, program, by):
    x = np.abs(X) if by == "out" else X
    expected = pb.grad(lambda x: program(lambda u: u * u, x))(x)
    found = pb.grad(lambda x: program(square(kind, by), x), policy=policy)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", FORWARDS)
def test_two_calls_outside_a_trace_give_two_arrays(kind):
    p = square(kind, "x")
    first = p(X)
    second = p(X + 1)
    np.testing.assert_array_equal(first, X * X)
    assert not np.may_share_memory(first, second)


def test_a_rule_that_returns_its_work_array():
    work = [np.empty(X.shape)]

    @pb.primitive
    def double(x):
        return 2 * x

    @double.vjp("x")
    def _(ct):
        return np.multiply(ct, 2, out=work[0])

    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(double(x) + double(double(x))))(X), np.full(X.shape, 6.0))


def test_a_fresh_result_is_not_copied():
    made = []

    @pb.primitive
    def fresh(x):
        out = x * 2
        made.append(out.__array_interface__["data"][0])
        return out

    fresh.vjp("x", fn=lambda ct: 2 * ct)
    assert fresh(X).__array_interface__["data"][0] == made[-1]
    pb.vjp(lambda x: made.append(pb.value(fresh(x)).__array_interface__["data"][0]) or x * 1.0, X)
    assert made[-1] == made[-2]


# ---------------------------------------------------------------------------------------- residuals and several outputs
class Holder:
    def __init__(self, array):
        self.array = array


@pb.primitive(residuals=("r",))
def by_its_output(x):
    out = np.exp(x)
    return out, {"r": out}


by_its_output.vjp("x", fn=lambda ct, r: ct * r)


@pb.primitive(residuals=("r",))
def by_its_operand(x):
    return np.exp(x), {"r": x[:]}


by_its_operand.vjp("x", fn=lambda ct, r: ct * np.exp(r))


@pb.primitive(residuals=("r",), opaque={"r": lambda _: 0})
def by_an_object(x):
    return np.exp(x), {"r": Holder(x)}


by_an_object.vjp("x", fn=lambda ct, r: ct * np.exp(r.array))


@pytest.mark.parametrize("program", [looped, marked, checkpointed])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("p", [by_its_output, by_its_operand, by_an_object], ids=lambda p: p.name)
def test_residuals_that_share_memory(p, policy, program):
    expected = pb.grad(lambda x: program(lambda u: 0.1 * np.exp(u), x))(0.1 * X)
    found = pb.grad(lambda x: program(lambda u: 0.1 * p(u), x), policy=policy)(0.1 * X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pb.primitive(residuals=("r",))
def by_itself(x):
    return x, {"r": x}


by_itself.vjp("x", fn=lambda ct, r: ct * (1.0 + 0.0 * r))


@pb.primitive(residuals=("r",), outputs=("a", "b"))
def twofold(x):
    out = np.exp(x)
    return (out, out.T), {"r": out.T}


twofold.vjp("x", fn=lambda ct, r: sum((c.T if k else c) for k, c in enumerate(ct) if c is not None) * r.T)

ONE_MEMORY = {
    "output": (by_its_output, np.exp),
    "operand": (by_its_operand, np.exp),
    "itself": (by_itself, np.copy),
    "outputs": (lambda x: twofold(x).a, np.exp),
    "other output": (lambda x: twofold(x).b.T, np.exp),
}


@given(
    st.sampled_from(sorted(ONE_MEMORY)), st.sampled_from(("grad of grad", "hvp", "jvp of grad", "grad of jvp")),
    st.lists(st.tuples(st.sampled_from("uv"), st.sampled_from(("*=", "+=", "[0]=", ".T"))), min_size=1, max_size=3),
)  # fmt: skip
@SETTINGS
def test_residuals_that_share_memory_in_second_order(which, mode, writes):
    """There the forward runs on handles, and what it returns twice, or has got, is one handle: a write to one leaves
    the others."""

    def second(p, x, t):
        def f(x):
            u = 0.1 * x
            v = p(u)
            for name, how in writes:
                target = {"u": u, "v": v}[name]
                target = target.T if how == ".T" else target
                if how == "[0]=":
                    target[0] = np.sin(x[0])
                elif how == "+=":
                    target += x
                else:
                    target *= 3.0
            return np.sum(np.sin(v) * u)

        if mode == "hvp":
            return pb.hvp(f, (x,), (t,))
        if mode == "jvp of grad":
            return pb.jvp(pb.grad(f), (x,), (t,))[1]
        if mode == "grad of jvp":
            return pb.grad(lambda x: pb.jvp(f, (x,), (t,))[1])(x)
        return pb.grad(lambda x: np.sum(pb.grad(f)(x) * t))(x)

    found, expected = (second(p, X, np.cos(X)) for p in ONE_MEMORY[which])
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)


def test_an_object_that_keeps_a_plain_operand():
    @pb.primitive(nondiff=("c",), residuals=("r",), opaque={"r": lambda _: 0})
    def scaled(x, c):
        return x * c, {"r": Holder(c)}

    scaled.vjp("x", fn=lambda ct, r: ct * r.array)

    def f(x):
        c = np.ones(X.shape)
        y = scaled(x, c)
        c[:] = 9.0
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(X), np.ones(X.shape))


@pytest.mark.parametrize("kept", [False, True])
def test_outputs_that_are_one_array(kept):
    work = np.empty(X.shape)

    @pb.primitive(outputs=("a", "b"))
    def twice(x):
        out = np.multiply(x, x, out=work) if kept else x * x
        return out, out

    @twice.vjp("x")
    def _(ct, x):
        return 2 * x * sum(c for c in ct if c is not None)

    def f(x, two=twice):
        a, b = two(x)
        c, _ = two(x + 1)
        a[0] = 0.0
        return np.sum(a) + 2 * np.sum(b) + np.sum(c)

    expected = pb.grad(lambda x: f(x, lambda u: (u * u, u * u)))(X)
    np.testing.assert_allclose(pb.grad(f)(X), expected)


# ------------------------------------------------------------------------------------------------------ refused by name
def refused(forward, match, **options):
    """The forward is refused in a gradient, whatever the policy."""
    p = pb.primitive(forward, name="bad", **options)
    p.vjp("x", fn=lambda ct: ct[0] if "outputs" in options else ct)
    first = (lambda y: y[0]) if "outputs" in options else (lambda y: y)
    for policy in POLICIES:
        with pytest.raises(pb.RuleError, match=match):
            pb.grad(lambda x: np.sum(first(p(x))), policy=policy)(X)
        with pytest.raises(pb.RuleError, match=match):
            pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda _, u: first(p(u)), x)), policy=policy)(X)
    with pytest.raises(pb.CheckError, match=r"wrong result|mutated input"):
        pb.testing.check_primitive(p, X)


RESULTS = {
    "tuple": (lambda x: (x, 2 * x), r"returned a tuple of 2 for its result \(called at .*\); name the parts with out"),
    "list": (lambda x: [1.0, 2.0], r"returned a list of 2.*np\.stack"),
    "None": (lambda x: None, r"returned NoneType.*is there a return"),
    "text": (lambda x: "abc", r"returned str.*declare opaque=\{'out'"),
    "dict": (lambda x: {"a": x}, r"returned dict"),
    "memory map": (lambda x: (x * 2).view(np.memmap), r"returned memmap.*np\.asarray"),
    "matrix": (lambda x: (x * 2).view(np.matrix), r"returned matrix.*np\.asarray"),
    "masked": (lambda x: np.ma.array(x * 2), r"returned MaskedArray"),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_of_another_kind(kind):
    refused(*RESULTS[kind])


@pytest.mark.parametrize("result", [lambda x: x * 1, lambda x: (x * 1,), lambda x: (x, x, x)])
def test_another_number_of_outputs(result):
    refused(result, r"expected a tuple of 2: it declares outputs=\('a', 'b'\)", outputs=("a", "b"))


@pytest.mark.parametrize("result", [lambda x: x * 1, lambda x: (x * 1, 2), lambda x: (x * 1, {"other": x})])
def test_other_residuals(result):
    refused(result, r"must return \(out, \{name: value\}\)|did not return the residual 'r'", residuals=("r",))


def writing(x):
    x *= 2
    return x


def test_a_forward_that_writes_into_its_operand():
    x = X.copy()
    refused(writing, r"the forward of bad wrote into its operand 'x' \(called at .*np\.array\(x\)")
    np.testing.assert_array_equal(x, X)


def test_a_forward_that_takes_no_read_only_array_is_called_on_copies():
    @pb.primitive
    def compiled(x):
        if not x.flags.writeable:
            raise ValueError("buffer source array is read-only")
        return x * x

    compiled.vjp("x", fn=lambda ct, x: 2 * ct * x)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(compiled(x)))(X), 2 * X)


def test_an_error_of_the_forward_is_its_own():
    @pb.primitive
    def never(x):
        raise ValueError("the user's own")

    never.vjp("x", fn=lambda ct: ct)
    with pytest.raises(ValueError, match="the user's own"):
        pb.grad(lambda x: np.sum(never(x)))(X)


def into_ct(ct, x):
    ct *= x
    return ct


def into_value(ct, x):
    x *= ct
    return x


@pytest.mark.parametrize(("rule", "name"), [(into_ct, "ct"), (into_value, "x")])
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_a_rule_that_writes(rule, name, policy):
    p = pb.primitive(lambda x: x * x / 2, name="half", vjps={"x": rule})
    with pytest.raises(pb.RuleError, match=rf"the rule of half for 'x' wrote into {name}, which"):
        pb.grad(lambda x: np.sum(p(x) * 2.0), policy=policy)(X)


def test_an_operand_by_keyword_or_left_to_its_default():
    @pb.primitive
    def scaled(x, y=2.0):
        return x * y

    scaled.vjp("x", fn=lambda ct, y: ct * y)
    for call in (scaled, lambda x: scaled(x, y=3.0)):
        with pytest.raises(pb.RuleError, match=r"got 1 of its operands \('x', 'y'\) by position"):
            pb.grad(lambda x, call=call: np.sum(call(x)))(X)
    with pytest.raises(pb.ConversionError, match=r"operand 'y' by keyword.*by position"):
        pb.grad(lambda x: np.sum(scaled(x, y=x)))(X)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(scaled(x, 3.0)))(X), np.full(X.shape, 3.0))


def test_a_tracer_in_a_closure_of_the_forward():
    def f(x):
        c = 2 * x

        @pb.primitive
        def scaled(y):
            return y * c

        scaled.vjp("y", fn=lambda ct: ct)
        return np.sum(scaled(x))

    with pytest.raises(pb.RuleError, match=r"returned a tracer for plain operands.*make it an operand"):
        pb.grad(f)(X)


def test_a_python_float_is_a_result():
    @pb.primitive
    def total(x):
        return float(np.sum(x))

    total.vjp("x", fn=lambda ct, x_spec: ct * np.ones(x_spec.shape))
    np.testing.assert_array_equal(pb.grad(lambda x: 3 * total(x))(X), np.full(X.shape, 3.0))


def test_an_unguarded_primitive_is_called_as_it_is():
    work = np.empty(X.shape)
    p = pb.primitive(lambda x: np.multiply(x, 2, out=work), name="double", guarded=False)
    assert p(X) is work


@pb.primitive
def decay(x):
    return np.exp(-x)


decay.vjp("x", fn=lambda ct, out: -ct * out)
decay.vjp("x", fn=lambda ct, x: -ct / np.exp(x))  # other last bits: taken where the operand is held anyway



def after(inner, v):
    return np.sum(inner(v)) + np.sum(v**3)


def twice(inner, v):
    return np.sum(inner(v) * inner(v + 1.0)) + np.sum(inner(v))


AROUND = {
    "held before": lambda inner: lambda x: np.sum(inner(np.exp(x))),
    "held by nobody": lambda inner: lambda x: np.sum(inner(x + 1.0)),
    "held after": lambda inner: lambda x: after(inner, x * 1.5),
    "a part": lambda inner: lambda x: np.sum(inner(np.exp(x)[1:])),
    "twice": lambda inner: lambda x: twice(inner, np.tanh(x)),
}
WITHIN = {
    "alone": lambda v: decay(v) * 0.5,
    "after a square": lambda v: v * v + decay(v),
    "before a square": lambda v: decay(v) + v * v,
    "twice": lambda v: decay(v) * np.sin(v) + decay(v),
}


@pytest.mark.parametrize("within", WITHIN)
@pytest.mark.parametrize("around", AROUND)
def test_alternatives_in_a_staged_function_are_chosen_as_without_the_decorator(around, within):
    plain, staged = AROUND[around](WITHIN[within]), AROUND[around](pb.staged(WITHIN[within]))
    for seed in range(12):
        x = np.random.default_rng(seed).normal(size=4)
        wanted = pb.grad(plain)(x).tobytes()
        assert pb.grad(staged)(x).tobytes() == wanted
        with pb.using(staging="off"):
            assert pb.grad(staged)(x).tobytes() == wanted
