"""What nobody promises: each entry of words/undocumented.py is looked at here, and broken, to see what happens then."""

import io
import operator
import pickle
import subprocess
import sys
import weakref
from contextvars import copy_context
from importlib import import_module
from textwrap import dedent

import numpy as np
import pytest
from scipy.sparse import csr_array

import pullback as pb
from pullback import numpy as pnp
from pullback.memory import reverse_sweep
from pullback.recording import writes
from pullback.rules import cotangent_sums
from pullback.testing import check_grads
from pullback.tracing.tracer import KINDS
from pullback.transforms.sparsity.pattern_groups import groups_of_columns
from pullback.words import undocumented
from pullback.words.call_sites import intern_site, site_code
from pullback.words.errors import ConversionError

RNG = np.random.default_rng(0)
X = RNG.normal(size=4)
POLICIES = (None, pb.Recompute(2), pb.Binomial(2))


def run(program):
    """What a program prints in a process of its own, where it may break what pullback meets when it is imported."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return done.stdout.split()


# --------------------------------------------------------------------------------------------------- reference counts
def joining(x):
    """Cotangents meet in x and y; regions are written, so that whole buffers are handed on."""
    y = np.sin(x)
    z = np.zeros_like(x)
    z[1:] = y[:-1] * x[1:]
    z[0] += y[0]
    return np.sum(z * y + x * y * z) + np.sum(x)


def kept_by_a_rule(f):
    """A primitive whose rule keeps what it returns, and the gradient of ``f(x, primitive(x))``."""
    kept = []

    @pb.primitive
    def triple(x):
        return 3 * x

    @triple.vjp("x")
    def _(ct):
        kept.append(3 * ct)
        return kept[-1]

    return kept, pb.grad(lambda x: f(x, triple(x)))


@pytest.mark.parametrize("limit", ["JOINED", "PULLED", "RECORDED", "HELD", "LISTED"])
def test_counts_tell_a_lone_array_from_a_shared_one(limit):
    assert getattr(undocumented, limit) > 0, "nothing is written in place, and every gradient is copied"


@pytest.mark.parametrize("first", [True, False])
def test_what_a_rule_has_kept_is_neither_written_nor_handed_out(first):
    f = (lambda x, y: np.sum(x * x) + np.sum(y)) if first else (lambda x, y: np.sum(y) + np.sum(x * x))
    kept, gradient = kept_by_a_rule(f)
    np.testing.assert_array_equal(gradient(X), 2 * X + 3)
    np.testing.assert_array_equal(kept[0], 3)
    kept, gradient = kept_by_a_rule(lambda x, y: np.sum(y))
    assert not np.shares_memory(gradient(X), kept[0])


def test_a_kept_cotangent_is_not_zeroed_by_a_write():
    kept = []

    def f(x):
        y = 1.0 * x
        y[0] = 5.0
        z = triple(y)
        return np.sum(z)

    @pb.primitive
    def triple(x):
        return 3 * x

    @triple.vjp("x")
    def _(ct):
        kept.append(3 * ct)
        return kept[-1]

    np.testing.assert_array_equal(pb.grad(f)(X), [0, 3, 3, 3])
    np.testing.assert_array_equal(kept[0], 3)


def test_a_lone_array_is_joined_in_place_and_handed_out():
    """Else memory is lost, though no number: the limits are no longer those of the places where they are asked."""
    made = []

    def scaled(k):
        prim = pb.primitive(lambda x: k * x, name=f"scaled_{k}", operands=("x",))

        @prim.vjp("x")
        def _(ct):
            result = k * ct
            made.append(result.__array_interface__["data"][0])
            return result

        return prim

    two, four, eight = scaled(2.0), scaled(4.0), scaled(8.0)
    g = pb.grad(lambda x: np.sum(two(x) + four(x) + eight(x)))(np.ones(1000))
    np.testing.assert_array_equal(g, 14)
    assert g.__array_interface__["data"][0] == made[0]


@pytest.mark.parametrize("keeps", [False, True])
def test_a_large_lone_cotangent_is_written_by_the_table(keeps):
    """What a rule has made and nobody keeps becomes its own negative and product; what is kept stays."""
    made, kept = [], []

    @pb.primitive
    def doubled(x):
        return 2 * x

    @doubled.vjp("x")
    def _(ct):
        result = 2 * ct
        made.append(result.__array_interface__["data"][0])
        kept.extend([result[3:]] if keeps else [])
        return result

    g = pb.grad(lambda x: np.sum(doubled(-x * 3.0)))(np.ones(20_000))
    np.testing.assert_array_equal(g, -6)
    assert (g.__array_interface__["data"][0] == made[0]) is not keeps
    for view in kept:
        np.testing.assert_array_equal(view, 2)


def test_where_counts_do_not_tell_nothing_is_in_place(monkeypatch):
    wanted = pb.grad(joining)(X)
    assert undocumented.limit(lambda cts: 7, 9) == 0
    asked = ((cotangent_sums, "JOINED"), (cotangent_sums, "PULLED"), (cotangent_sums, "RECORDED"))
    for module, limit in (*asked, (writes, "PULLED"), (reverse_sweep, "HELD")):
        monkeypatch.setattr(module, limit, 0)
    for policy in POLICIES:
        np.testing.assert_array_equal(pb.grad(joining, policy=policy)(X), wanted)
    kept, gradient = kept_by_a_rule(lambda x, y: np.sum(x * x) + np.sum(y))
    np.testing.assert_array_equal(gradient(X), 2 * X + 3)
    np.testing.assert_array_equal(kept[0], 3)


def test_a_debugger_adds_nothing_to_the_counts():
    """Before CPython 3.13 a frame whose locals are looked at has them twice."""
    limits = "import pullback.words.undocumented as s; print(s.JOINED, s.PULLED, s.HELD)"
    look = """
        def look(frame, *_):
            if frame.f_code.co_filename.endswith("undocumented.py") and frame.f_code.co_name != "<module>":
                frame.f_locals
            return look
        import sys; sys.settrace(look)
    """
    watched, plain = run(f"{dedent(look)}\n{limits}"), run(limits)
    assert plain == [str(limit) for limit in (undocumented.JOINED, undocumented.PULLED, undocumented.HELD)]
    assert all(int(a) <= int(b) for a, b in zip(watched, plain, strict=True))


# -------------------------------------------------------------------------------------------------------- instructions
class Asked:
    """Tells how NumPy's scalars ask for a product with it."""

    def __array_ufunc__(self, ufunc, method, *inputs):
        return undocumented.by_operator(sys._getframe(1))


def by_operator_and_call():
    s, asked = np.complex128(1 + 2j), Asked()
    in_place = s
    in_place *= asked
    return s * asked, s / asked, s**asked, in_place, np.multiply(s, asked), np.power(s, asked)


def test_an_operator_is_told_from_a_call():
    wanted = (True, True, True, True, False, False)
    for _ in range(100):  # CPython rewrites the instructions of what is called often
        assert by_operator_and_call() == wanted
    before = sys.gettrace()
    sys.settrace(lambda *_: None)  # and of what is traced
    try:
        found = by_operator_and_call()
    finally:
        sys.settrace(before)
    assert found == wanted


class Assigned:
    """Tells how an element is assigned to."""

    def __init__(self):
        self.told = []

    def __setitem__(self, key, new):
        self.told.append(undocumented.by_assignment(sys._getframe(1)))

    def __getitem__(self, key):
        return self

    def __iadd__(self, other):
        return self


def assigned():
    x = Assigned()
    x[0] = 1
    x[0], x[1] = x[1], x[0]
    x[0] += 1
    for x[0] in (1,):
        pass
    x[1:] = 1
    x[1:] += 1
    operator.setitem(x, 0, 1)
    list(map(x.__setitem__, [0], [1]))
    return x.told


def test_an_assignment_is_told_from_a_call():
    for _ in range(100):
        assert assigned() == [True] * 7 + [False] * 2
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        found = assigned()
    finally:
        sys.settrace(before)
    assert found == [True] * 7 + [False] * 2


def test_where_assignments_are_not_told_rows_of_rows_are_refused(monkeypatch):
    def f(x):
        y = np.stack([x, 2 * x])
        y[0] = y[1]
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(X), 4)
    monkeypatch.setattr(undocumented, "STORES", frozenset())
    with pytest.raises(pb.WriteError, match="another of its rows"):
        pb.grad(f)(X)


@pytest.mark.parametrize("policy", POLICIES)
def test_where_operators_are_not_told_the_ufunc_is_taken(monkeypatch, policy):
    s = np.complex128(0.3 - 0.7j)

    def f(x):
        return np.abs(pb.fori_loop(0, 4, lambda k, z: s * (s**z), x[0] * 1j, policy=policy))

    try:
        wanted = pb.grad(f)(X)
        monkeypatch.setattr(undocumented, "BINARY_OP", -1)
        np.testing.assert_allclose(pb.grad(f)(X), wanted, rtol=1e-12)
    except pb.ReplayError:
        assert policy is not None


GENERATOR = np.random.default_rng(0)


def reads(x):
    return [GENERATOR.normal() * np.ndim(x) for _ in range(2)]


def test_global_names_are_read():
    assert undocumented.global_names(reads.__code__) == {"GENERATOR", "np", "range"}
    assert undocumented.global_names((lambda x: lambda y: x.RNG + np.pi).__code__) == {"np"}


def test_a_generator_in_a_comprehension_is_put_back(monkeypatch):
    def drawn(policy):
        monkeypatch.setitem(globals(), "GENERATOR", np.random.default_rng(0))
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, lambda k, u: np.sin(u) * sum(reads(u)), x, policy=policy)))(
            X
        )

    np.testing.assert_array_equal(drawn(pb.Binomial(2)), drawn(None))


def test_where_global_names_are_not_told_those_of_attributes_are_taken_too(monkeypatch):
    undocumented.global_names.cache_clear()
    monkeypatch.setattr(undocumented, "LOAD_GLOBAL", "NO SUCH INSTRUCTION")
    try:
        assert undocumented.global_names(reads.__code__) >= {"GENERATOR", "np", "range"}
        with pytest.raises(pb.DeclarationError, match="captures the array 'X'"):
            kept_by_a_rule(np.add)[0].append(pb.primitive(lambda x: x, operands=("x",)).vjp("x", fn=lambda ct: ct * X))
    finally:
        undocumented.global_names.cache_clear()


class Sited:
    """Tells the instruction and the source of the expression in which it was met."""

    def __getitem__(self, key):
        self.seen = self.looked()
        return self

    def __setitem__(self, key, value):
        self.seen = self.looked()

    def looked(self):
        code, offset = site_code(intern_site(sys._getframe(2)))
        return undocumented.instruction(code, offset), undocumented.source(code, offset)


def test_a_write_is_told_from_a_read():
    sited = Sited()
    _ = sited[0]
    assert not sited.seen[0].startswith("STORE")
    sited[0] = 1
    assert sited.seen[0].startswith("STORE")


def test_the_expression_of_an_instruction_is_found():
    sited = Sited()
    _ = ("ä", sited["b":"c"])
    assert sited.seen[1] == 'sited["b":"c"]'


class Indexed:
    """Notes where its elements are asked for."""

    def __init__(self):
        self.sites = set()

    def __getitem__(self, key):
        self.sites.add(intern_site(sys._getframe(1)))


def test_an_instruction_is_one_place_however_often_it_runs():
    indexed = Indexed()
    for _ in range(200):  # Python specializes it on the way
        _ = indexed[1:]
    assert len(indexed.sites) == 1
    ((code, offset),) = map(site_code, indexed.sites)
    assert undocumented.source(code, offset) == "indexed[1:]"


def test_without_instructions_or_source_a_refusal_is_general(monkeypatch):
    for module in ("instruction", "source"):
        monkeypatch.setattr(f"pullback.recording.refusals.{module}", lambda *_: "")
    with pytest.raises(ConversionError, match=r"np\.stack"):
        pb.grad(lambda x: float(x[0]))(X)


# ----------------------------------------------------------------------------------------------------- files of frames
def test_files_are_told_by_their_package():
    linalg = import_module("scipy.sparse.linalg")
    for package, module in (("scipy", linalg), ("scipy.sparse", linalg), ("numpy", np)):
        assert undocumented.is_of(package, module.__file__)
    assert not undocumented.is_of("scipy", __file__)
    assert not undocumented.is_of("scipy.optimize", linalg.__file__)
    assert not undocumented.is_of("a_package_that_is_not_imported", __file__)
    assert undocumented.is_standard(subprocess.__file__)
    assert not any(map(undocumented.is_standard, (__file__, np.__file__, linalg.__file__)))


def product_by_a_sparse_array(x):
    return np.sum((MATRIX @ x) ** 2)


MATRIX = csr_array(RNG.normal(size=(3, 4)))


def test_a_sparse_array_leaves_the_product_to_a_tracer():
    check_grads(product_by_a_sparse_array, (X,))
    with pytest.raises(ConversionError, match=r"scipy\.sparse\.csr_array computes on plain arrays"):
        pb.grad(lambda x: np.sum(import_module("scipy.sparse").csr_array(np.reshape(x, (2, 2))).sum()))(X)


@pytest.mark.parametrize("names", ["SPARSE_DISPATCH", "SPARSE_PRODUCTS"])
def test_where_sciPys_functions_have_other_names_the_product_is_refused(monkeypatch, names):  # noqa: N802 - its name
    monkeypatch.setattr(undocumented, names, ())
    with pytest.raises(ConversionError, match=r"write A @ x"):
        pb.grad(product_by_a_sparse_array)(X)


# --------------------------------------------------------------------------------------------------- texts of messages
def test_errors_about_a_tracer_are_known():
    names = {getattr(KINDS, name).__name__ for name in ("tracer", "view", "buffer", "weak")}
    for name in names:
        assert undocumented.of_a_tracer(TypeError(f"unsupported operand type(s) for |: 'set' and '{name}'"))
    told = []
    for f in (
        lambda x: {1} | x,
        lambda x: np.nditer([np.zeros(4), x], op_flags=[["readwrite"], ["readwrite"]]),
        lambda x: np.zeros(2).__setitem__(0, [x, x]),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            pb.grad(lambda x, f=f: (f(x), np.sum(x))[1])(X)
        told.append(any("if a tracer stands in this line" in note for note in getattr(caught.value, "__notes__", ())))
    assert all(told), told


def test_errors_about_a_tracer_that_are_not_known_go_up(monkeypatch):
    monkeypatch.setattr(undocumented, "_OF_A_TRACER", "no such text")
    with pytest.raises(TypeError, match="unsupported operand"):
        pb.grad(lambda x: np.sum({1} | x))(X)


def test_errors_about_pickles_are_known(tmp_path):
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "pickle.npy").write_bytes(pickle.dumps(X))
    for name in ("objects.npy", "pickle.npy"):
        with pytest.raises(ValueError, match="allow_pickle") as caught:
            np.load(tmp_path / name, allow_pickle=False)
        assert undocumented.of_pickles(caught.value)
    assert not undocumented.of_pickles(ValueError("cannot reshape array"))


# ------------------------------------------------------------------------------------------------------- private names
def test_absent_is_numpys_own():
    inspect = import_module("inspect")
    assert inspect.signature(np.sum).parameters["initial"].default is undocumented.ABSENT
    assert len(undocumented.UNNAMED) == 1


def test_clip_calls_the_private_ufunc():
    class Spy:
        def __array_ufunc__(self, ufunc, *_, **__):
            return ufunc

    assert X.clip(Spy(), Spy()) is undocumented.CLIP
    assert isinstance(undocumented.CLIP, np.ufunc)


def test_without_private_names_results_are_the_same():
    program = """
        import numpy as np
        um = np._core.umath
        absent, clip, ones_like = np._NoValue, um.clip, um._ones_like
        if {less}:
            del np._NoValue, um.clip, um._ones_like
        import pullback as pb
        np._NoValue, um.clip, um._ones_like = absent, clip, ones_like  # NumPy's own functions need them
        x, low, high = np.array([0.1, 0.5, np.nan, -2.0]), np.full(4, 0.2), np.full(4, 0.4)
        g = pb.grad(lambda x, l, h: np.sum(np.clip(x, l, h) * x) + np.sum(x, initial=2.0) + np.max(x[:2]), (0, 1, 2))
        print(*[list(map(float.hex, part.tolist())) for part in g(x, low, high)], sep="")
    """
    program = dedent(program)
    assert run(program.format(less=True)) == run(program.format(less=False))


def test_the_state_of_the_legacy_generator_is_found():
    assert undocumented.legacy_bytes() == 2500


def test_where_the_legacy_state_is_not_found_it_is_saved_at_each_step(monkeypatch):
    def drawn(policy):
        np.random.seed(0)  # noqa: NPY002 - users of the legacy generator are served, too
        step = lambda k, u: np.sin(u) * np.random.normal()  # noqa: E731, NPY002 - as above
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, step, x, policy=policy)))(X)

    before = np.random.get_state()  # noqa: NPY002 - as above
    try:
        wanted = drawn(None)
        monkeypatch.setattr("pullback.loops.bodies.randomness.legacy_bytes", lambda: 0)
        np.testing.assert_array_equal(drawn(pb.Binomial(2)), wanted)
    finally:
        np.random.set_state(before)  # noqa: NPY002 - as above


def test_scipy_groups_columns():
    band = csr_array(np.eye(9) + np.eye(9, k=1) > 0)
    assert groups_of_columns(band).max() == 1


@pytest.mark.parametrize("found", ["none", "unsound", "of another length"])
def test_where_scipy_groups_no_columns_each_is_a_group(monkeypatch, found):
    module = import_module("scipy.optimize._numdiff")
    if found == "none":
        monkeypatch.delattr(module, "group_columns")
    else:
        groups = np.zeros(4 if found == "unsound" else 2, int)
        monkeypatch.setattr(module, "group_columns", lambda pattern, order: groups)
    jacobian = pb.sparse_jacobian(lambda x: x[1:] * x[:-1])(X)
    np.testing.assert_array_equal(jacobian.toarray(), [[X[1], X[0], 0, 0], [0, X[2], X[1], 0], [0, 0, X[3], X[2]]])


def test_vectorize_calls_what_is_overridden(monkeypatch):
    f = pnp.vectorize(lambda x: x**3)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(f(x)))(X), 3 * X**2)
    monkeypatch.delattr(pnp.vectorize, "_vectorize_call")
    with pytest.raises(ConversionError):
        pb.grad(lambda x: np.sum(f(x)))(X)
    with pytest.raises(ConversionError):
        pb.grad(lambda x: np.sum(pnp.vectorize(lambda k: x[0] * k)(np.arange(3.0))))(X)


def test_quiet_is_errstate_that_ignores():
    before = np.geterr()
    for block in (undocumented.quiet, undocumented._quiet_by_numpy):
        with block():
            with np.errstate(all="ignore"):
                assert np.geterr() == dict.fromkeys(before, "ignore")
            assert np.geterr() == dict.fromkeys(before, "ignore")
            np.log(np.zeros(2)) - np.float64(1) / np.zeros(2)  # a warning would be an error here
        assert np.geterr() == before
        with np.errstate(divide="raise"):
            with block(), block():
                np.log(np.zeros(2))
            with pytest.raises(FloatingPointError):
                np.log(np.zeros(2))
        with pytest.raises(ZeroDivisionError), block():
            raise ZeroDivisionError
        assert np.geterr() == before


def test_a_context_has_an_error_state_of_its_own():
    told = []
    telling, silent = (undocumented.context_of_errors(tell) for tell in (lambda *found: told.append(found), None))
    for _ in range(2):
        telling.run(np.log, np.zeros(2))
        silent.run(np.log, np.zeros(2))  # a warning would be an error here
    assert [kind for kind, _ in told] == ["divide by zero"] * 2
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        undocumented.context_of_errors(told.append).run(np.log, np.zeros(2))


def test_warnings_are_told_in_a_context():
    def told(log):
        undocumented.set_error_state(undocumented.make_error_state(call=log, invalid="log"))
        np.sqrt(np.full(2, -1.0))

    before, log = np.geterr(), io.StringIO()
    with np.errstate(divide="raise"):
        copy_context().run(told, log)
    assert log.getvalue() == "Warning: invalid value encountered in sqrt\n"
    assert np.geterr() == before


def test_quiet_goes_by_numpy_where_its_private_names_are_gone():
    made = dedent("""
        import numpy as np
        from numpy._core import umath
        del umath._make_extobj
        from pullback.words import undocumented
        with undocumented.quiet():
            print(np.geterr()["divide"], undocumented.quiet is undocumented._quiet_by_numpy)
        print(np.geterr()["divide"])
    """)
    assert run(made) == ["ignore", "True", "warn"]


def test_who_holds_a_thing_is_counted():
    class Thing:
        pass

    things = [Thing(), Thing()]
    alone = undocumented.holders(things)
    assert undocumented.holders(things) == alone
    kept = things[1]
    assert undocumented.holders(things) != alone
    del kept
    assert undocumented.holders(things) == alone
    kept = weakref.ref(things[0])
    assert undocumented.holders(things) != alone
    del kept
    assert undocumented.holders(things) == alone


def test_where_holders_cannot_be_counted_nothing_serves_again(monkeypatch):
    monkeypatch.setattr(undocumented, "LISTED", 0)
    assert undocumented.holders([]) != undocumented.holders([])

    def gradient(staging):
        body = lambda k, u: np.sin(u) * 0.5 + u[::-1]  # noqa: E731
        return pb.grad(lambda x: np.sum(pb.fori_loop(0, 12, body, x, staging=staging)))(X)

    assert gradient("off").tobytes() == gradient("numpy").tobytes()
