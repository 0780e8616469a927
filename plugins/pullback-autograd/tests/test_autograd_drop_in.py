"""Programs run under autograd's own name, and what they take from its inside does what they expect."""

import subprocess
import sys

import numpy as np
import pytest

import pullback as pb
import pullback_autograd
from pullback_autograd import core, extend, grad, jacobian, nodes, tensor_jacobian_product, value_and_grad
from pullback_autograd import numpy as anp
from pullback_autograd.scipy import linalg, signal, stats
from pullback_autograd.test_util import check_equivalent, check_grads
from pullback_autograd.vector_spaces import vspace

X = np.array([0.3, 0.7, 1.1])

PROGRAM = """
import sys
import pullback_autograd
before = set(sys.modules)
pullback_autograd.install()
pullback_autograd.install()
import autograd, autograd.numpy as np, autograd.numpy.random as npr, autograd.scipy.stats.norm
from autograd import grad
from autograd.builtins import DictBox
from autograd.core import make_vjp, vspace
from autograd.extend import defvjp, primitive
from autograd.scipy.stats import gamma, norm, t
assert autograd is pullback_autograd and norm is pullback_autograd.scipy.stats.norm
assert abs(grad(norm.logpdf)(0.5) + 0.5) < 1e-12 and np.fft.fft(np.ones(2))[0] == 2 and npr.random() < 1
added = {name for name in set(sys.modules) - before if name.split(".")[0] == "autograd"}
pullback_autograd.uninstall()
assert added and not added & set(sys.modules)
with pullback_autograd.installed():
    import autograd.util
assert "autograd" not in sys.modules
sys.modules["autograd"] = type(sys)("autograd")
try:
    pullback_autograd.install()
except ImportError as error:
    print(error)
"""


def test_the_name_is_taken_and_given_back():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert "autograd has been imported already" in done.stdout
    assert "python -m pullback_autograd" in done.stdout


def test_a_program_is_run_from_the_command_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, autograd.numpy as np\nfrom autograd import grad\nprint(grad(np.exp)(0.0), sys.argv[1:])"
    )
    command = [sys.executable, "-m", "pullback_autograd"]
    done = subprocess.run([*command, str(program), "now"], capture_output=True, text=True, check=False)
    assert done.stdout == "1.0 ['now']\n", done.stderr
    assert "usage" in subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_values_of_one_number_in_any_shape():
    gradient = grad(lambda x: anp.reshape(anp.sum(x**2), (1, 1)))(X)
    np.testing.assert_array_equal(gradient, 2 * X)
    value, gradient = value_and_grad(lambda x: anp.sum(x**2, keepdims=True))(X)
    assert value.shape == (1,)
    np.testing.assert_array_equal(gradient, 2 * X)
    with pytest.raises(TypeError, match="returned bool"):
        grad(lambda x: anp.allclose(x, x))(X)


def test_lists_of_tracers_are_arrays():
    for function in (anp.sum, anp.mean, anp.var, anp.linalg.norm):
        ours = grad(lambda x, f=function: f([x[0], x[1] ** 2]))(X)
        np.testing.assert_allclose(ours, grad(lambda x, f=function: f(anp.array([x[0], x[1] ** 2])))(X))
    joined = grad(lambda x: anp.sum(anp.stack(map(anp.sin, x)) ** 2))(X)
    np.testing.assert_allclose(joined, np.sin(2 * X))


def test_a_primitive_returns_and_takes_structures():
    @extend.primitive
    def moments(pair, n):
        return np.sum(pair[0] * pair[1]), np.arange(n), {"square": pair[0] ** 2}

    def maker(ans, pair, n):
        return lambda g: (g[0] * pair[1] + 2 * pair[0] * g[2]["square"], g[0] * pair[0])

    extend.defvjp(moments, maker, None)

    def f(x):
        product, numbers, rest = moments((x, anp.exp(x)), 3)
        return product**2 + anp.sum(rest["square"] * numbers)

    def plain(x):
        return anp.sum(x * anp.exp(x)) ** 2 + anp.sum(x**2 * np.arange(3))

    np.testing.assert_allclose(grad(f)(X), grad(plain)(X), rtol=1e-12)
    for policy in (pb.Recompute(), pb.Binomial(2)):
        with pb.using(policy):
            np.testing.assert_array_equal(grad(f)(X), pb.grad(f, policy=pb.SaveAll())(X))
    check_grads(f)(X)


def test_rules_for_numpys_functions_hold_in_the_namespace_alone():
    extend.defvjp(np.ldexp, lambda ans, x, n: lambda g: 7.0 * g, None)
    try:
        assert grad(lambda x: anp.ldexp(x, 2))(1.0) == 7.0
        assert pb.grad(lambda x: np.ldexp(x, 2))(1.0) == 4.0
    finally:
        extend.forget(np.ldexp)
    assert anp.ldexp is np.ldexp


def test_a_rule_inside_a_pull_is_checked():
    inner = extend.primitive(lambda g: 2 * g)
    extend.defvjp(inner, lambda ans, g: lambda h: 2.1 * h)
    outer = extend.primitive(lambda x: x * 2)
    extend.defvjp(outer, lambda ans, x: inner)
    check_grads(outer, modes=["rev"], order=1)(X)
    with pytest.raises(AssertionError, match="VJP"):
        check_grads(outer, modes=["rev"], order=2)(X)
    bare = extend.primitive(np.sin)
    with pytest.raises(NotImplementedError, match="no derivative"):
        grad(bare)(1.0)


def test_vector_spaces():
    tree = {"a": X, "b": [2.0, 1j * X]}
    space = vspace(tree)
    assert space == vspace(space.zeros()) != vspace(X)
    assert (space.size, len(list(space.standard_basis())), vspace(X).shape) == (10, 10, (3,))
    check_equivalent(space.add(tree, space.scalar_mul(tree, 2.0)), space.scalar_mul(tree, 3.0))
    with pytest.raises(AssertionError, match="vector space"):
        check_equivalent(X, tree)
    pull, value = core.make_vjp(anp.sin, X)
    rows = [pull(unit) for unit in vspace(value).standard_basis()]
    np.testing.assert_allclose(rows, np.diag(np.cos(X)))
    np.testing.assert_allclose(core.make_jvp(anp.sin, X)(X)[1], np.cos(X) * X)


def test_a_cotangent_with_fewer_axes_is_contracted():
    vector = np.arange(3.0)
    whole = jacobian(lambda x: anp.outer(x, x**2))(X)
    ours = tensor_jacobian_product(lambda x: anp.outer(x, x**2))(X, vector)
    np.testing.assert_allclose(ours, np.tensordot(vector, whole, 1))


def test_a_run_is_looked_at_by_nodes():
    class Named(nodes.Node):
        def __init__(self, value, fun, args, kwargs, parent_argnums, parents):
            self.seen = [*parents[0].seen, (fun.__name__, value)]

        def initialize_root(self):
            self.seen = []

    value, node = nodes.trace(Named.new_root(), lambda x: np.sum(np.sin(x) + 1.0), X)
    assert [name for name, _ in node.seen] == ["sin", "add", "sum"]
    assert node.seen[-1][1] == value == np.sum(np.sin(X) + 1.0)


POSITIVE = np.array([0.2, 0.5, 0.9])
UNIT = (POSITIVE, 2.5, 1.5)
PARTS = (np.array([0.2, 0.3, 0.5]), X)
STUDENT = (X, 2.5, 0.1, 1.3)
DISTRIBUTIONS = [
    *(("beta", name, UNIT) for name in ("logpdf", "pdf", "cdf")),
    *(("chi2", name, (POSITIVE, 3.0)) for name in ("logpdf", "pdf", "cdf")),
    *(("gamma", name, (POSITIVE, 2.5)) for name in ("logpdf", "pdf", "cdf")),
    *(("t", name, STUDENT) for name in ("logpdf", "pdf", "cdf", "logcdf")),
    *(("dirichlet", name, PARTS) for name in ("logpdf", "pdf")),
]


@pytest.mark.parametrize(("family", "name", "arguments"), DISTRIBUTIONS, ids=lambda x: x if isinstance(x, str) else "")
def test_a_distribution(family, name, arguments):
    from scipy import stats as theirs  # noqa: PLC0415 - it takes half a second

    function = getattr(getattr(stats, family), name)
    np.testing.assert_allclose(function(*arguments), getattr(getattr(theirs, family), name)(*arguments), rtol=1e-10)
    traced = {"cdf": (0, 2, 3), "logcdf": (0, 2, 3)}.get(name, range(len(arguments)))
    for argnum in traced if family == "t" else [0] if name == "cdf" else traced:
        check_grads(function, argnum, modes=["rev"], order=1)(*arguments)


def test_counts_and_what_lies_outside_of_a_support():
    from scipy import stats as theirs  # noqa: PLC0415 - it takes half a second

    counts = np.array([-1.0, 0.0, 0.5, 2.0])
    for name in ("pmf", "logpmf", "cdf"):
        function = getattr(stats.poisson, name)
        np.testing.assert_allclose(function(counts, 1.7), getattr(theirs.poisson, name)(counts, 1.7), rtol=1e-12)
        check_grads(lambda mu, f=function: f(counts[1:2], mu), modes=["rev"], order=1)(1.7)
    outside = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_allclose(stats.beta.pdf(outside, 2.0, 3.0), theirs.beta.pdf(outside, 2.0, 3.0))
    assert np.isfinite(grad(lambda x: anp.sum(stats.beta.pdf(x, 2.0, 3.0)))(outside)).all()


def test_a_normal_distribution_of_lower_rank():
    from scipy import stats as theirs  # noqa: PLC0415 - it takes half a second

    cov, mean = np.diag([1.0, 2.0, 0.0]), np.zeros(3)
    x = np.array([0.3, -0.2, 0.0])
    ours = stats.multivariate_normal.logpdf(x, mean, cov, allow_singular=True)
    np.testing.assert_allclose(ours, theirs.multivariate_normal.logpdf(x, mean, cov, allow_singular=True))
    gradient = grad(stats.multivariate_normal.logpdf)(x, mean, cov, True)
    np.testing.assert_allclose(gradient, [-0.3, 0.1, 0.0], atol=1e-12)
    with pytest.raises(pb.NotDifferentiableError, match="allow_singular"):
        grad(stats.multivariate_normal.logpdf, 2)(x, mean, cov, True)


def test_banded_systems_and_the_middle_of_a_convolution():
    rng = np.random.default_rng(3)
    bands, right = rng.normal(size=(4, 5)) + np.array([[0.0], [0.0], [5.0], [0.0]]), rng.normal(size=(5, 2))
    check_grads(lambda ab, b: linalg.solve_banded((1, 2), ab, b), (0, 1), order=1)(bands, right)
    a, b = rng.normal(size=6), rng.normal(size=3)
    np.testing.assert_allclose(signal.convolve(a, b, mode="same"), np.convolve(a, b, mode="same"))


def test_the_alias_is_not_left_behind():
    assert sys.modules.get("autograd") is not pullback_autograd
