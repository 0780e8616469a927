"""Keep: which values are kept, computed again, compressed or spilled; what a rule that does nothing says."""

import gc
import tracemalloc
import warnings

import numpy as np
import pytest
from tests.programs.drifting import drifting_primitive
from tests.programs.measured import peak_of

import pullback as pb
from pullback.stores import AsType, Disk, InMemory, Zlib
from pullback.testing.comparing.bits import same_bits

N_LAYERS, SIZE = 6, 4_000
W = np.random.default_rng(0).normal(size=(10, 10)) / 3
X = np.random.default_rng(1).normal(size=(SIZE // 10, 10))
ARRAY = X.nbytes


def layer(x):
    z = pb.name(x @ W, "potential")
    return np.tanh(np.sin(z) * np.cos(z) + np.exp(-z * z)) * z


def net(x):
    for _ in range(N_LAYERS):
        x = layer(x)
    return np.sum(x * x)


def held(f, keep, x=X):
    """How many arrays are kept after the forward, once the gradient is seen to have the bits of save-all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        expected = pb.grad(f)(x)
        out, pull = pb.vjp(f, x, policy=keep)
        arrays = (pull.report.live_bytes - pull.report.bytes_by_reason.get("constant", 0)) / ARRAY
        for _ in range(2):
            (gradient,) = pull(np.ones_like(out))
            assert gradient.tobytes() == expected.tobytes(), keep
        pull.close()
        assert pull.report.live_bytes == 0
        assert pb.grad(f, policy=keep)(x).tobytes() == expected.tobytes()
        moved = -0.5 * x
        assert pb.grad(f, policy=keep)(moved).tobytes() == pb.grad(f)(moved).tobytes()
    return arrays


def test_an_elementwise_network_holds_less_than_half_of_save_all():
    x = np.random.default_rng(2).normal(size=(20_000, 10))

    def peak(policy):
        gradient = pb.grad(net, policy=policy)
        gradient(x)
        found, bytes_at_peak = peak_of(gradient, x)
        return bytes_at_peak, found.tobytes()

    (everything, expected), (some, found) = peak(pb.SaveAll()), peak(pb.Keep(np.matmul))
    assert found == expected
    assert some < everything / 2, (some / x.nbytes, everything / x.nbytes)


@pb.primitive
def softplus(x):
    return np.logaddexp(0.0, x)


@softplus.vjp("x")
def _(ct, x):
    return ct / (1.0 + np.exp(-x))


def mixed(x):
    u = pb.name(softplus(x), "u")
    v = np.tanh(u * u)
    return np.sum(np.einsum("ij,jk->ik", v, W) ** 2 * u)


@pytest.mark.parametrize(
    ("rules", "arrays"),
    [
        ((softplus,), 2),  # with x, which enters
        (("u",), 2),
        ((np.tanh,), 2),
        (("tanh.out",), 2),
        (("tanh",), 2),
        ((lambda value: value.made_by == "tanh",), 2),
        ((lambda value: "u" in value.labels,), 2),
        ((lambda value: "tanh.out" in value.saved_as and value.shape == X.shape and value.dtype == float,), 2),
        ((np.einsum,), 2),
        ((lambda value: value.functions == ("einsum",) and value.nbytes == ARRAY,), 2),
        (({"u": "recompute"}, softplus, np.tanh), 2),  # the first that fits
        ((softplus, {"u": "recompute"}, np.tanh), 3),
        ((), 1),
    ],
)
def test_what_a_rule_fits(rules, arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)  # the later rule has nothing left
        assert held(mixed, pb.Keep(*rules)) == arrays


def test_others_are_kept_but_for_some():
    assert held(mixed, pb.Keep(others="keep")) == held(mixed, pb.SaveAll()) == 5
    assert held(mixed, pb.Keep({"u": "recompute"}, others="keep")) == 4


def test_a_value_is_one_with_its_views():
    def f(x):
        big = pb.name(np.exp(np.sin(x)), "big")
        return np.sum(big[1:] * big[:-1]) + np.sum(big.T**2)

    assert held(f, pb.SaveAll()) == 2
    assert held(f, pb.Keep({"big": "recompute"}, others="keep")) == 1
    assert held(f, pb.Keep({"big": "keep"}, others="recompute")) == 2


def test_a_label_comes_late():
    def f(x):
        u = np.exp(x)
        v = np.sin(u) * u
        u = pb.name(u, "u")
        return np.sum(np.cos(u) * v)

    assert held(f, pb.Keep("u")) == 1
    assert held(f, pb.Keep({"u": "recompute"}, np.exp, np.sin)) == 2


def test_what_nobody_needs_is_not_kept():
    def f(x):
        u = pb.name(np.sin(x), "linear")
        return np.sum(u + u * 2.0)

    assert held(f, pb.Keep("linear")) == 1
    with pytest.warns(pb.PolicyWarning) as told:
        pb.grad(f, policy=pb.Keep("linear"))(X)
    assert "fits 'linear'. There are the labels 'linear', values made by" in str(told[0].message)
    assert "nothing is saved" in str(told[1].message)


def test_a_warning_names_what_made_values_that_are_read():
    def f(x):
        for _ in pb.steps(9):
            x = x + 0.01 * np.sin(x)  # what sin makes is read by no pullback
        return np.sum(x * x)

    with pytest.warns(pb.PolicyWarning) as told:
        pb.grad(f, policy=pb.Keep("sin"))(X)
    assert "fits 'sin'. There are the labels none, values made by none, and saved as" in str(told[0].message)


def test_a_rule_that_fits_nothing_says_so_once():
    with pytest.warns(pb.PolicyWarning) as told:
        pb.grad(net, policy=pb.Keep(np.matmul, "potentail", {"exp.x": "recompute"}))(X)
    assert len(told) == 1
    text = str(told[0].message)
    assert "fits 'potentail', {'exp.x': 'recompute'}. There are the labels 'potential'" in text
    assert "'exp.out'" in text
    assert "'tanh'" in text
    assert told[0].filename == __file__


def test_a_policy_that_saves_nothing_says_so():
    with pytest.warns(pb.PolicyWarning, match=r"Keep\(sin\) holds 62.5 KiB, and save-all would hold 62.5 KiB"):
        pb.grad(lambda x: np.sum(np.sin(np.sin(x) * 1.0)), policy=pb.Keep(np.sin))(X)
    with pytest.warns(pb.PolicyWarning, match="nothing is saved"):
        pb.grad(net, policy=pb.Keep(others="keep"))(X)


def test_of_steps_that_share_values_no_sum_is_told():
    def marked(x):
        c = np.cos(x)
        for _ in pb.steps(7):
            x = np.tanh(np.sin(x) * c)
        return np.sum(x)

    def looped(x):
        c = np.cos(x)
        return np.sum(pb.fori_loop(0, 7, lambda k, u: np.tanh(np.sin(u) * c), x))

    for f in (marked, looped):
        with pytest.warns(pb.PolicyWarning, match="holds of each step all that save-all would hold: nothing"):
            pb.grad(f, policy=pb.Keep(others="keep"))(X)


@pytest.mark.parametrize(
    "keep", [pb.Keep(), pb.Keep("potential"), pb.Keep(np.tanh, np.exp), pb.Keep({"potential": Disk()})]
)
def test_a_plan_is_what_the_report_says(keep):
    def looped(x):
        return np.sum(pb.fori_loop(0, 4, lambda k, u: layer(u) * x, x) ** 2)

    for f in (net, looped):
        out, pull = pb.vjp(f, X, policy=keep)
        pull(np.ones_like(out))
        plan, report = pb.plan(f, X, policy=keep), pull.report
        assert (plan.peak_bytes, plan.bytes_by_reason) == (report.peak_bytes, report.bytes_by_reason)
        assert plan.n_forward == report.n_forward
        pull.close()


@pytest.mark.parametrize("place", [Zlib(), InMemory(), InMemory(Zlib(6)), Disk(), Disk(codec=Zlib())], ids=repr)
def test_compressed_and_spilled(place):
    for what in ("potential", np.matmul):
        keep = pb.Keep({what: place})
        assert held(net, keep) <= N_LAYERS
        _, pull = pb.vjp(net, X, policy=keep)
        pull(1.0)
        if place != InMemory():
            assert pull.report.stores[0].n_writes == N_LAYERS
        pull.close()


def test_a_lossy_codec_is_close():
    gradient = pb.grad(net, policy=pb.Keep({"potential": AsType("f4")}))(X)
    assert gradient.tobytes() != pb.grad(net)(X).tobytes()
    np.testing.assert_allclose(gradient, pb.grad(net)(X), rtol=1e-3, atol=1e-5)


def test_what_is_written_to_disk_in_the_background_is_not_written_meanwhile():
    def f(x):
        u, loss = np.exp(x), 0.0
        for k in range(20):
            loss = loss + np.sum(np.sin(u) * u)
            u[k] = 2.0 * u[k] + loss
        return loss

    pb.testing.check_policy(pb.Keep(others=Disk()))
    assert held(f, pb.Keep({lambda value: value.nbytes == ARRAY: Disk()})) <= 2


def test_steps_and_loops_keep_within_each_step():
    def marked(x):
        u = x * 1.0
        for _ in pb.steps(N_LAYERS):
            u = layer(u)
        return np.sum(u * u)

    def looped(x):
        return np.sum(pb.fori_loop(0, N_LAYERS, lambda k, u: layer(u), x * 1.0) ** 2)

    for f in (marked, looped):
        assert held(f, pb.Keep(np.matmul)) == N_LAYERS + 1 + (f is looped)  # the last state; where a loop begins
        assert held(f, pb.Keep("potential")) == N_LAYERS + 1 + (f is looped)
    _, pull = pb.vjp(marked, X, policy=pb.Keep("potential"))
    pull(1.0)
    assert pull.report.n_forward == N_LAYERS


@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
@pytest.mark.parametrize("length", [1, 3])
def test_what_nothing_executes_again_stays_whatever_a_rule_says_later(length):
    def f(x):
        a = x * x
        return np.sum(pb.fori_loop(0, length, lambda k, u: np.sin(u) * a + np.cos(a[::-1]) * a[::-1], x * 0.5))

    keep = pb.Keep({lambda value: len(value.saved_as) > 1: "recompute"}, others="keep")
    assert pb.grad(f, policy=keep)(X).tobytes() == pb.grad(f)(X).tobytes()


def test_a_checkpoint_keeps_what_it_is_told():
    def f(x):
        u = pb.checkpoint(layer, policy=pb.Keep("potential"))(np.sin(x))
        return np.sum(np.cos(u))

    _, pull = pb.vjp(f, X)
    assert pull.report.bytes_by_reason["saved"] == 3 * ARRAY  # x, the potential, u
    assert pull(1.0)[0].tobytes() == pull(1.0)[0].tobytes() == pb.grad(f)(X).tobytes()
    pull.close()
    with pytest.warns(pb.PolicyWarning, match="fits 'none'"):
        pb.grad(lambda x: np.sum(pb.checkpoint(layer, policy=pb.Keep("none"))(x)))(X)


def test_a_loop_with_a_policy_of_its_own():
    def f(x):
        return np.sum(pb.fori_loop(0, 5, lambda k, u: layer(u), x, policy=pb.Keep("potential", "other")) ** 2)

    with pytest.warns(pb.PolicyWarning, match="fits 'other'") as told:
        assert pb.grad(f)(X).tobytes() == pb.grad(lambda x: np.sum(_applied(x) ** 2))(X).tobytes()
    assert len(told) == 1


def looped(x, n=40):
    return np.sum(pb.fori_loop(0, n, lambda k, u: layer(u) + 0.1 * k, x) ** 2)


def carried_out(policy):
    """The report of a gradient that has the bits of save-all."""
    _, pull = pb.vjp(looped, X, policy=policy)
    assert pull(1.0)[0].tobytes() == pb.grad(looped)(X).tobytes()
    pull.close()
    return pull.report


def test_a_policy_between_the_steps_of_which_some_values_are_kept():
    whole, some = carried_out(pb.Mixed(8)), carried_out(pb.Keep("potential", outer=pb.Mixed(8)))
    assert some.n_forward < whole.n_forward  # a tape is smaller than a state now
    assert carried_out(pb.Keep("potential", outer=pb.Binomial(3))).n_forward == carried_out(pb.Binomial(3)).n_forward
    assert carried_out(pb.Keep("potential")).n_forward == 40


@pytest.mark.parametrize("n_arrays", [40, 70])
def test_a_budget_between_steps_of_which_some_values_are_kept_binds(n_arrays):
    gradient = pb.grad(looped, policy=pb.Keep("potential", outer=pb.Budget(n_arrays * ARRAY)))
    gradient(X)
    _, peak = peak_of(gradient, X)
    assert peak < n_arrays * ARRAY
    with pytest.raises(pb.BudgetError) as caught:
        pb.grad(looped, policy=pb.Keep("potential", outer=pb.Budget(10 * ARRAY)))(X)
    pb.grad(looped, policy=pb.Keep("potential", outer=pb.Budget(caught.value.minimum_bytes)))(X)


def test_what_decides_within_the_run_between_such_steps():
    keep = pb.Keep("potential", outer=pb.BudgetPool(60 * ARRAY))
    assert carried_out(keep).n_forward > 40
    assert keep.outer.held_bytes == 0


def test_a_checkpoint_is_one_step_and_takes_no_policy_between_steps():
    keep = pb.Keep("potential", outer=pb.Binomial(3))
    with pytest.raises(pb.PolicyError, match="a checkpoint is one step, and takes no policy between steps"):
        pb.grad(lambda x: np.sum(pb.checkpoint(layer, policy=keep)(x)))(X)


def _applied(x):
    for _ in range(5):
        x = layer(x)
    return x


def test_in_force():
    with pb.using(pb.Keep(np.matmul)):
        assert pb.grad(net)(X).tobytes() == pb.grad(net, policy=pb.SaveAll())(X).tobytes()
        _, pull = pb.vjp(net, X)
        assert pull.report.peak_bytes < 8 * ARRAY


def test_each_is_executed_again_once():
    """Though a chain of values that nobody saves leads to each value that somebody does."""
    calls = []

    def linear(x):
        calls.append(1)
        return 2.0 * x

    step = pb.primitive(linear)
    step.vjp("x", fn=lambda ct: 2.0 * ct)

    def f(x):
        total, u = 0.0, np.exp(x)
        for _ in range(30):
            u = step(u) * 0.5
            total = total + np.sum(np.sin(u + 1.0))
        return total

    expected = pb.grad(f)(X)
    calls.clear()
    assert pb.grad(f, policy=pb.Keep())(X).tobytes() == expected.tobytes()
    assert len(calls) == 60


def test_residuals():
    calls = []

    def factored(x):
        calls.append(1)
        return np.sum(x**3), {"square": x * x}

    cube = pb.primitive(factored, residuals=("square",))
    cube.vjp("x", saves=("square",), fn=lambda ct, square: ct * 3 * square)

    def f(x):
        return cube(np.exp(np.sin(x) ** 2)) * 1.0

    expected = pb.grad(f)(X)
    for keep, n in ((pb.Keep("factored.square", np.exp), 1), (pb.Keep(np.exp), 2)):
        calls.clear()
        assert pb.grad(f, policy=keep)(X).tobytes() == expected.tobytes()
        assert len(calls) == n


def test_what_is_computed_again_is_compared():
    drift = drifting_primitive()
    with pytest.raises(pb.ReplayError, match=r"drifting, called at .* gave other bytes"):
        pb.grad(lambda x: np.sum(np.sin(drift(np.exp(x)))), policy=pb.Keep(np.exp))(X)
    with pb.using(verify="off"):
        pb.grad(lambda x: np.sum(np.sin(drift(np.exp(x)))), policy=pb.Keep(np.exp))(X)


def test_random_numbers_and_effects_come_once():
    told = []
    tell = pb.effect(told.append)

    def f(x):
        rng = np.random.default_rng(3)
        u = np.exp(x)
        for k in range(5):
            u = np.sin(u + 0.1 * rng.normal(size=x.shape))
            tell(k)
        return np.sum(u)

    held(f, pb.Keep())
    told.clear()
    pb.grad(f, policy=pb.Keep())(X)
    assert told == [0, 1, 2, 3, 4]


def test_other_derivatives():
    x, t = X[:2], X[2:4]

    def f(x):
        return np.sum(layer(layer(x)) ** 2)

    keep = pb.Keep("potential")
    assert pb.hvp(f, (x,), (t,), policy=keep).tobytes() == pb.hvp(f, (x,), (t,)).tobytes()
    twice = [pb.grad(lambda x, p=p: np.sum(pb.grad(f, policy=p)(x) * t))(x) for p in (None, keep)]
    assert twice[0].tobytes() == twice[1].tobytes()
    jacobians = [pb.jacobian(layer, policy=p)(x) for p in (None, keep)]
    assert jacobians[0].tobytes() == jacobians[1].tobytes()
    with pb.trap("nan"):
        assert pb.grad(f, policy=keep)(x).tobytes() == pb.grad(f)(x).tobytes()


def test_nothing_is_left():
    gradient = pb.grad(net, policy=pb.Keep("potential", {np.exp: Zlib()}))
    gc.collect()
    gc.disable()
    try:
        tracemalloc.start()
        for _ in range(5):
            gradient(X)
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(10):
            gradient(X)
        assert tracemalloc.get_traced_memory()[0] - before < 3 * ARRAY  # tuples that Python has for later
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_policy_is_a_value():
    keep = pb.Keep("a", {np.exp: "recompute", "b": Zlib()}, softplus, others="keep")
    assert keep == pb.Keep("a", {np.exp: "recompute", "b": Zlib()}, softplus, others="keep") != pb.Keep("a")
    assert hash(keep) == hash(pb.Keep("a", {np.exp: "recompute", "b": Zlib()}, softplus, others="keep"))
    assert repr(keep) == "Keep('a', {exp: 'recompute'}, {'b': Zlib(level=1)}, softplus, others='keep')"
    assert repr(pb.Keep(lambda value: True)) == "Keep(a function)"
    assert repr(pb.Keep("a", outer=pb.Binomial(3))) == "Keep('a', outer=Binomial(3))"
    assert pb.Keep("a", outer=pb.Binomial(3)) != pb.Keep("a") == pb.Keep("a", outer=pb.SaveAll())
    with pytest.raises(AttributeError):
        keep.others = "recompute"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (lambda: pb.Keep(3), "Keep takes NumPy functions, primitives, labels.*got 3"),
        (lambda: pb.Keep(Zlib), "Keep takes NumPy functions"),
        (lambda: pb.Keep({np.exp: "drop"}), "what becomes of exp is 'keep', 'recompute', or a codec.*got 'drop'"),
        (lambda: pb.Keep(others=None), "what becomes of others is"),
        (lambda: pb.Keep(outer="auto"), "a policy between steps.*got 'auto'"),
        (lambda: pb.Keep(outer=pb.Keep("a")), "a policy between steps.*got Keep"),
    ],
)
def test_no_rules(given, told):
    with pytest.raises(pb.PolicyError, match=told):
        given()


def test_a_function_without_a_primitive():
    with pytest.raises(pb.UnknownFunctionError, match=r"no primitive for numpy\.fromstring"):
        pb.grad(net, policy=pb.Keep(np.fromstring))(X)


@pytest.mark.filterwarnings("ignore:Keep:pullback.PolicyWarning")
def test_a_label_changes_nothing():
    x, t = X[:3], X[3:6]

    def program(name, x):
        plain = name(np.ones(x.shape), "plain")
        u = name(np.exp(x * 0.1) * plain, "u")
        u[0] = name(u[1], "row") * 2.0
        u = pb.fori_loop(0, 3, lambda k, v: name(np.sin(v) * u, "in a loop"), u)
        for _ in pb.steps(2):
            u = name(np.tanh(u), "in steps") * x
        v = pb.checkpoint(lambda u: name(np.cos(u), "in a checkpoint") * u)(u)
        return np.sum(name({"v": v}, "tree")["v"] ** 2)

    def bare(x):
        return program(lambda value, _: value, x)

    def labelled(x):
        return program(pb.name, x)

    assert labelled(x).tobytes() == bare(x).tobytes()
    for derivative in (
        pb.value_and_grad,
        lambda f: lambda x: pb.jvp(f, (x,), (t,)),
        lambda f: lambda x: pb.hvp(f, (x,), (t,)),
        pb.jacobian,
        lambda f: pb.grad(pb.staged(f)),
        lambda f: pb.grad(f, policy=pb.Binomial(2)),
        lambda f: pb.grad(f, policy=pb.Keep(np.tanh)),
    ):
        found, expected = derivative(labelled)(x), derivative(bare)(x)
        assert same_bits(found, expected)
    twice = [pb.grad(lambda x, f=f: np.sum(pb.grad(f)(x) * t))(x) for f in (labelled, bare)]
    np.testing.assert_allclose(*twice, rtol=1e-12)  # what the inner pullbacks hold is read past the mark: sums differ


def test_the_table_of_saved_values_shows_labels():
    assert "'potential'" in str(pb.saved(net, X))


@pytest.mark.parametrize("outer", [None, pb.Binomial(1), pb.Recompute()])
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_loops_within_loops_are_run_again_in_a_checkpoint(outer):
    """The trace of the step around has ended by then, and its governor is gone."""

    def marching(x):
        def step(k, u):
            v = np.sin(u)
            return u + pb.fori_loop(0, 2, lambda j, w: w * 0.5 + np.cos(v), u)

        return np.sum(pb.fori_loop(0, 3, step, x))

    policy = pb.Keep(np.sin, outer=outer)
    found = pb.grad(pb.checkpoint(marching), policy=policy)(np.ones(2))
    assert found.tobytes() == pb.grad(marching)(np.ones(2)).tobytes()


def test_a_budget_between_the_steps_counts_what_variables_have_from_before():
    """Twenty arrays that no pullback reads: the loop took 4.6 MB of 4 MB."""

    def f(x):
        before = [x * (k + 1) for k in range(20)]
        u = pb.fori_loop(0, 60, lambda k, u: np.tanh(np.sin(pb.name(u * 1.01, "a"))), x)
        return np.sum(u) + sum(np.sum(value) for value in before)

    x = np.linspace(0.1, 0.9, 10_000)
    gradient = pb.grad(f, policy=pb.Keep("a", outer=pb.Budget("4 MB")))
    gradient(x)
    _, peak = peak_of(gradient, x)
    assert peak <= 4_000_000
