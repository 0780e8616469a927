"""Bad input: one clear error each, naming operation, operand, expected and given, line and remedy; and nothing left
behind."""

import copy
import pickle
import threading
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest

import pullback as pb
from pullback.inspect.inputs import load_array
from pullback.memory.in_force import depth
from pullback.rules import catalogue
from pullback.words import plugins
from pullback.words.errors import (
    ConstantChangedError,
    ConversionError,
    DeclarationError,
    InputFileError,
    MissingRuleError,
    NotDifferentiableError,
    PluginError,
    PolicyError,
    PullbackError,
    RegistrationError,
    RuleError,
    StructureError,
    TracerError,
    UnknownFunctionError,
)

X = np.array([1.0, 2.0, 3.0])
HERE = r"test_bad_input\.py:\d+"


@pytest.fixture(autouse=True)
def state_restored():
    """After every refusal no trace is under way and the next gradient is right."""
    yield
    assert depth() == 0
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(X), 2 * X)
    np.testing.assert_array_equal(
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: u * x, x, policy=pb.Binomial(1))))(X), 4 * X**3
    )


@pytest.mark.parametrize(
    ("f", "given"),
    [
        (lambda x: x * 2, r"shape \(3,\)"),
        (lambda x: x[None, :1], r"shape \(1, 1\)"),
        (lambda x: [x[0]], "(a )?list"),
        (lambda x: {"a": x[0]}, "(a )?dict"),
        (lambda x: (x[0], x[1]), "(a )?tuple"),
        (lambda x: None, "(None|(a )?NoneType)"),
        (lambda x: "text", "(a )?str"),
    ],
)
def test_non_scalar_output(f, given):
    with pytest.raises(
        NotDifferentiableError, match=rf"grad needs a scalar output, <lambda> returned {given}.*(sum it|vjp)"
    ):
        pb.grad(f)(X)


def test_complex_output():
    with pytest.raises(
        NotDifferentiableError, match=r"returned a complex scalar; take its real part, or pass holomorphic=True"
    ):
        pb.grad(lambda z: z * z)(1 + 2j)


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        (3, "int"),
        (np.array([1, 2]), "int64"),
        (True, "bool"),
        (np.int32(3), "int32"),
        (np.array([True]), "bool"),
        ([1, 2], "int"),
        ("text", "str"),
    ],
)
def test_integer_argument(argument, given):
    def loss(x):
        return 1.0

    with pytest.raises(
        NotDifferentiableError, match=rf"argument 0 of loss (has d?type|is of type) {given}.*(float|allow_int|argnums)"
    ):
        pb.grad(loss)(argument)


def test_integer_argument_allowed():
    assert pb.grad(lambda n, x: np.sum(x) * n, argnums=(0, 1), allow_int=True)(3, X)[0] is None
    found = pb.grad(lambda t: np.sum(t["x"]) * t["n"])({"x": X, "n": 3, "name": None})
    assert found["n"] is None
    assert found["name"] is None
    np.testing.assert_array_equal(found["x"], [3, 3, 3])


def test_integer_dtype_output():
    with pytest.raises(NotDifferentiableError, match=r"argument|dtype|carries no derivative"):
        pb.grad(lambda x: x.astype(int).sum())(np.array([1]))


def test_argnums_out_of_range():
    with pytest.raises(
        StructureError,
        match=r"argnums=2 of <lambda>: the call has 1 positional arguments; pass the argument by position",
    ):
        pb.grad(lambda x: x, argnums=2)(1.0)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: np.packbits(x).sum(), r"no primitive for numpy\.packbits; (write it|declare|use).*pullback\.value"),
        (lambda x: np.gcd(x, 2), r"no primitive for numpy\.gcd"),
        (lambda x: x.byteswap().sum(), r"no attribute 'byteswap'.*pullback\.value\(x\)\.byteswap"),
    ],
)
def test_unknown_function(f, message):
    with pytest.raises((UnknownFunctionError, AttributeError, ConversionError), match=message):
        pb.grad(f)(X)


def test_unknown_function_names_the_users_line():
    with pytest.raises(UnknownFunctionError, match=HERE):
        pb.grad(lambda x: np.packbits(x).sum())(X)


def test_late_tracer():
    kept = []
    pb.grad(lambda x: kept.append(x) or np.sum(x))(X)
    for use in (lambda t: t + 1, np.sin, lambda t: t[0], np.sum, lambda t: t.__setitem__(0, 1.0), np.zeros_like):
        with pytest.raises(
            TracerError, match=rf"uses a tracer whose trace has ended \(at .*{HERE}\).*leaked.*pullback\.value"
        ):
            use(kept[0])


def test_late_tracer_in_the_next_trace():
    kept = []
    pb.grad(lambda x: kept.append(x * 2) or np.sum(x))(X)
    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(lambda x: np.sum(x * kept[0]))(X)
    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(lambda x: kept[0].sum())(X)


def test_late_tracer_of_a_generator():
    def slow(x):
        yield x * 2
        yield x * 3

    kept = []

    def f(x):
        kept.append(slow(x))
        return np.sum(next(kept[0]))

    np.testing.assert_array_equal(pb.grad(f)(X), [2, 2, 2])
    with pytest.raises(TracerError, match=rf"trace has ended \(at .*{HERE}\).*generator"):
        next(kept[0])


def test_leaked_tracer_of_an_inner_trace():
    kept = []

    def outer(x):
        pb.grad(lambda y: kept.append(y * x) or np.sum(y))(x)
        return np.sum(kept[0])

    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(outer)(X)


def test_leaked_tracer_of_a_loop_body():
    kept = []

    def f(x):
        u = pb.fori_loop(0, 3, lambda k, u: kept.append(u) or u * x, x)
        return np.sum(u) + np.sum(kept[0])

    with pytest.raises(TracerError, match=r"trace has ended"):
        pb.grad(f)(X)


def test_tracer_in_another_thread():
    caught = []

    def elsewhere(x):
        try:
            np.sum(x * 2)
        except TracerError as error:
            caught.append(error)

    def f(x):
        thread = threading.Thread(target=elsewhere, args=(x,))
        thread.start()
        thread.join()
        return np.sum(x)

    np.testing.assert_array_equal(pb.grad(f)(X), np.ones(3))
    with pytest.raises(
        TracerError, match=rf"uses a tracer in another thread than the one that traces \(at .*{HERE}\).*each thread"
    ):
        raise caught[0]


@pytest.mark.parametrize("swallow", [pickle.dumps, np.array, lambda x: np.asarray(x, float), float])
def test_a_swallowed_tracer(swallow):
    with pytest.raises((PullbackError, TypeError), match=r"derivative|tracer|pickle"):
        pb.grad(lambda x: swallow(x[0]) and np.sum(x))(X)


def test_copies_of_a_tracer_are_traced():
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(copy.copy(x) * copy.deepcopy(x)))(X), 2 * X)


def test_argument_changed_between_forward_and_reverse():
    x = X.copy()

    def f(a):
        b = np.sum(a * a)
        x[0] = 100.0
        return b

    with pytest.raises(ConstantChangedError, match=r"argument 0.*float64\[3\].*was changed between.*x\.copy\(\)"):
        pb.grad(f)(x)
    _, pull = pb.vjp(np.sin, x)
    x[1] = -5
    with pytest.raises(ConstantChangedError, match=r"argument 0.*was changed"):
        pull(np.ones(3))


# Rules that return the wrong thing.
def bad_rule(rule, operands=("x",), **options):
    """A primitive of one or two operands with ``rule``."""
    if len(operands) == 1:
        prim = pb.primitive(lambda x: x * 2.0, name="doubled", **options)
    else:
        prim = pb.primitive(lambda x, y: x * y, name="times", **options)
    prim.vjp(*operands)(rule)
    return prim


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (
            lambda ct: None,
            (
                r"the VJP rule of doubled for operand 'x' returned None, expected float64\[3\] \(called at .*HERE\); "
                r"return zeros"
            ),
        ),
        (
            lambda ct: ct[:2],
            (
                r"doubled for operand 'x' returned shape \(2,\), expected float64\[3\] \(called at .*HERE\); the "
                r"executor sums"
            ),
        ),
        (lambda ct: np.ones((2, 2)), r"returned shape \(2, 2\), expected float64\[3\]"),
        (
            lambda ct: (ct * 2).astype(int),
            r"returned dtype int64, expected float64\[3\] \(called at .*HERE\); return a floating",
        ),
        (lambda ct: ct > 0, r"returned dtype bool"),
        (lambda ct: "text", r"returned dtype <U4"),
        (lambda ct: (ct, ct), r"doubled.*(returned|shape)"),
        (lambda ct: np.array([ct, ct, ct, None], dtype=object), r"returned dtype object"),
    ],
)
@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Binomial(1)], ids=repr)
def test_a_bad_rule(rule, message, policy):
    prim = bad_rule(rule)
    with pytest.raises(RuleError, match=message.replace("HERE", HERE)):
        pb.grad(lambda x: np.sum(pb.fori_loop(0, 3, lambda k, u: prim(u), x, policy=policy)))(X)
    with pytest.raises(RuleError, match=message.replace("HERE", HERE)):
        pb.grad(lambda x: np.sum(prim(x)))(X)


@pytest.mark.parametrize(
    ("rule", "given"),
    [
        (lambda ct, x, y: (ct * y,), "1 cotangents"),
        (lambda ct, x, y: ct * y, "ndarray"),
        (lambda ct, x, y: (ct, ct, ct), "3 cotangents"),
    ],
)
def test_a_joint_rule_of_the_wrong_count(rule, given):
    prim = bad_rule(rule, ("x", "y"))
    with pytest.raises(
        RuleError, match=rf"the joint rule of times returned {given}, expected a tuple of 2.*called at .*{HERE}"
    ):
        pb.grad(lambda x: np.sum(prim(x, x)))(X)


def test_a_rule_that_raises_names_the_forward_line():
    def explode(ct):
        message = "singular"
        raise np.linalg.LinAlgError(message)

    prim = bad_rule(explode)
    with pytest.raises(np.linalg.LinAlgError, match="singular") as caught:
        pb.grad(lambda x: np.sum(prim(x)))(X)
    assert any(
        "in the reverse pass of doubled" in note and "test_bad_input.py:" in note for note in caught.value.__notes__
    )


def test_a_rule_that_changes_its_cotangent_cannot_hurt_the_seed():
    def greedy(ct):
        ct *= 0
        return ct

    prim = bad_rule(greedy)
    seed = np.ones(3)
    _, pull = pb.vjp(prim, X)
    pull(seed)  # pb.testing.check_primitive is what finds such a rule
    np.testing.assert_array_equal(seed, np.ones(3))


def test_a_missing_rule():
    prim = pb.primitive(lambda x, y: x * y, name="times")
    prim.vjp("x")(lambda ct, y: ct * y)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(prim(x, X)))(X), X)
    with pytest.raises(
        MissingRuleError,
        match=rf"times has no VJP rule for operand 'y'.*called at .*{HERE}.*@times\.vjp\('y'\).*stop_gradient",
    ):
        pb.grad(lambda y: np.sum(prim(X, y)))(X)


def test_a_declaration_of_unknown_names():
    prim = pb.primitive(lambda x: x, name="same")
    with pytest.raises(DeclarationError, match=r"same has no operand 'z'; its operands are \('x',\)"):
        prim.vjp("z")(lambda ct: ct)
    with pytest.raises(DeclarationError, match=r"same.*'w'"):
        prim.vjp("x")(lambda ct, w: ct)
    with pytest.raises(DeclarationError, match=r"same\.vjp\(\) names no operand.*'x'"):
        prim.vjp()
    table = np.ones(3)
    with pytest.raises(DeclarationError, match=r"captures the array 'table'.*[Mm]ake it an operand, a residual"):
        prim.vjp("x")(lambda ct: ct * table)


# Policies, registries, plugins, files.
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pb.Binomial(0), r"snapshots must be.*at least 1.*got 0|snapshots.*0.*at least (1|one)"),
        (lambda: pb.Binomial(-3), r"snapshots.*-3"),
        (lambda: pb.Binomial(2.5), r"snapshots.*whole number.*2\.5"),
        (lambda: pb.Recompute(0), r"segments.*0.*at least 1"),
        (lambda: pb.Recompute("cube"), r"segments must be a whole number or 'sqrt', got 'cube'"),
        (
            lambda: pb.grad(np.sum, policy=pb.Binomial)(X),
            r"policy= takes a memory policy such as pullback\.Binomial\(20\), got <class.*instance",
        ),
        (lambda: pb.grad(np.sum, policy="binomial")(X), r"policy= takes a memory policy.*got 'binomial'"),
        (lambda: pb.using(20).__enter__(), r"policy= takes a memory policy.*got 20"),
    ],
)
def test_a_bad_policy(make, message):
    with pytest.raises(PolicyError, match=message):
        make()


def test_a_duplicate_registration():
    scope = pb.registry.scoped()
    with pytest.raises(
        RegistrationError,
        match=r"a primitive named 'sin' is already registered; choose another name, or work in a scoped copy",
    ):
        scope.add(pb.primitive(lambda x: x, name="sin"))
    with pytest.raises(
        RegistrationError, match=r"numpy\.sin is already served by 'sin'; 'mine' cannot serve it too.*scoped"
    ):
        scope.add(pb.primitive(lambda x: x, name="mine"), np.sin)


def test_a_plugin_that_does_not_import(monkeypatch):
    broken = EntryPoint(name="broken", value="pullback_of_nobody:PRIMITIVES", group=plugins.PRIMITIVES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: (broken,))
    scope = catalogue.Registry(plugins=True)
    with pytest.raises(
        PluginError,
        match=r"plugin 'broken' \(pullback_of_nobody:PRIMITIVES\) failed to import: ModuleNotFoundError.*reinstall or "
        r"remove",
    ):
        scope.find(np.matmul)


def test_a_plugin_that_hands_over_something_else(monkeypatch):
    odd = EntryPoint(name="odd", value="math:pi", group=plugins.PRIMITIVES)
    monkeypatch.setattr(plugins, "entry_points", lambda group: (odd,))
    scope = catalogue.Registry(plugins=True)
    with pytest.raises(PluginError, match=r"plugin 'odd' \(math:pi\).*reinstall or remove"):
        scope.find(np.matmul)


def test_without_the_plugin_matmul_names_it():
    scope = catalogue.Registry()
    with pytest.raises(UnknownFunctionError, match=r"no primitive for numpy\.matmul: install pullback-linalg"):
        scope.find(np.matmul)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda p: None, r"there is no file .*a\.npy; write the path.*numpy\.save"),
        (
            lambda p: np.save(p, np.array([{"a": 1}], dtype=object), allow_pickle=True),
            r"a\.npy holds pickled Python objects.*numeric array",
        ),
        (lambda p: np.save(p, np.array(["text"])), r"a\.npy holds dtype <U4, which is not numeric"),
        (lambda p: Path(p).write_bytes(b"not an array"), r"a\.npy is no \.npy file|a\.npy holds pickled"),
    ],
)
def test_a_bad_npy_file(tmp_path, write, message):
    path = tmp_path / "a.npy"
    write(path)
    with pytest.raises(InputFileError, match=message):
        load_array(str(path))


# Structures and seeds.
def test_a_seed_of_another_shape_or_structure():
    _, pull = pb.vjp(lambda x: {"a": x * 2, "b": np.sum(x)}, X)
    with pytest.raises(
        StructureError, match=r"the cotangent has structure.*the output .* has.*one leaf per output leaf"
    ):
        pull(np.ones(3))
    with pytest.raises(StructureError, match=r"the cotangent has shape \(2,\), the output .* has \(3,\)"):
        pull({"a": np.ones(2), "b": 1.0})
    with pytest.raises(StructureError, match=r"one leaf per output leaf, None where an output is not used"):
        pull({"a": [1.0, 1.0, 1.0], "b": 1.0})
    np.testing.assert_array_equal(pull({"a": None, "b": 1.0})[0], [1, 1, 1])
    np.testing.assert_array_equal(pull({"a": np.ones(3), "b": 1.0})[0], [3, 3, 3])


def test_has_aux_without_aux():
    with pytest.raises(StructureError, match=r"with has_aux=True the function returns \(output, aux\), got"):
        pb.grad(np.sum, has_aux=True)(X)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("make", [lambda: np.matrix([[1.0, 2.0]]), lambda: np.ma.array([1.0, 2.0], mask=[True, False])])
def test_array_subclasses_are_refused(make):
    """``*`` of a matrix is another operation, and a masked element does not count: neither is what an array
    computes."""
    with pytest.raises(PullbackError, match=r"argument 0.*(matrix|MaskedArray|masked)"):
        pb.grad(lambda a: np.sum(a * 2))(make())


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    "make", [lambda: np.matrix([[1.0, 2.0]]), lambda: np.ma.array([[1.0, 2.0]], mask=[[True, False]])]
)
@pytest.mark.parametrize(
    "use",
    [
        lambda a: pb.jvp(np.sin, (np.ones((1, 2)),), (a,)),
        pb.linearize(np.sin, np.ones((1, 2)))[1],
        pb.vjp(np.sin, np.ones((1, 2)))[1],
        lambda a: pb.ravel({"a": a}),
        lambda a: pb.fun_and_grad(np.sum, a),
    ],
)
def test_array_subclasses_are_refused_as_tangents_and_in_vectors(make, use):
    with pytest.raises(PullbackError, match=r"(matrix|MaskedArray) has an arithmetic of its own.*pass np.asarray"):
        use(make())


@pytest.mark.parametrize(
    "ct",
    [np.ones(3) * 1j, np.array([1.0, None, 2.0], dtype=object), np.array(["a", "b", "c"])],
    ids=["1j", "object", "text"],
)
def test_a_seed_of_another_kind(ct):
    _, pull = pb.vjp(np.sin, np.ones(3))
    with pytest.raises(
        StructureError, match=r"the cotangent has dtype .*, the output of the function .* has float64; give a real one"
    ):
        pull(ct)
    with pytest.raises(
        StructureError,
        match=r"the cotangent has shape \(2,\), the output .* has \(3,\); give one of its shape, or None",
    ):
        pull(np.ones(2))


@pytest.mark.parametrize("argnums", ["x", 1.0, (0, 1.5), None])
def test_argnums_that_are_no_numbers(argnums):
    with pytest.raises(
        StructureError, match=r"argnums=.* is no number of an argument; give 0 for the first.*argnames="
    ):
        pb.grad(np.sum, argnums)


@pytest.mark.parametrize(
    "error", [pb.BudgetError("too little", 30), pb.ConvergenceError("too far", 0.5, 3), StructureError("another")]
)
def test_errors_come_back_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - what was dumped just now
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_a_masked_operand_is_right_or_refused():
    masked = np.ma.array([1.0, 2.0, 4.0], mask=[True, False, False])
    with pytest.raises((PullbackError, TypeError), match=r"(?i)mask"):
        pb.grad(lambda x: np.sum(x * masked))(X)


def test_object_and_text_arrays_are_refused():
    for x in (np.array([1.0, None], dtype=object), np.array(["a"])):
        with pytest.raises(PullbackError, match=r"argument 0.*(object|str|<U1).*no derivative"):
            pb.grad(lambda a: np.sum(a * 2))(x)


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_other_float_widths(dtype):
    x = np.array([1.0, 2.0], dtype)
    gradient = pb.grad(lambda a: np.sum(np.sin(a) * a))(x)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(gradient.astype(float), np.sin([1.0, 2.0]) + np.cos([1.0, 2.0]) * [1.0, 2.0], rtol=1e-2)
