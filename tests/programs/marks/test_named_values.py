"""``name`` marks a value, and reverse passes hand out its cotangent: ``pull.adjoint``, and ``on_adjoint``, streamed,
under every policy."""

import gc

import numpy as np
import pytest
from tests.programs.measured import peak_of

import pullback as pb
from pullback.recording import tape as tapes

POLICIES = [pb.SaveAll(), pb.Recompute(), pb.Binomial(2), pb.Binomial(1)]
X = np.array([0.3, 1.0, -0.5])
N = 7


def step(u, x):
    return u * np.cos(u) + 0.1 * x


def program(loop, policy=None):
    """N steps, each of whose states is marked ``u``."""

    def f(x):
        body = lambda u: pb.name(step(u, x), "u")  # noqa: E731
        if loop == "fori_loop":
            u = pb.fori_loop(0, N, lambda _, u: body(u), x, policy=policy)
        elif loop == "scan":
            u = pb.scan(lambda u, _: (body(u), None), x, length=N, policy=policy)[0]
        elif loop == "while_loop":
            u = pb.while_loop(lambda s: s[1] < N, lambda s: (body(s[0]), s[1] + 1), (x, 0), policy=policy)[0]
        else:
            u = x
            for _ in {"range": range, "steps": pb.steps}[loop](N):
                u = body(u)
        return np.sum(u * u)

    return f


def adjoints_by_hand():
    """dL/du of every state by the chain rule, in forward order."""
    states = [X]
    for _ in range(N):
        states.append(step(states[-1], X))
    found = [2 * states[-1]]
    for u in states[N - 1 : 0 : -1]:
        found.append(found[-1] * (np.cos(u) - u * np.sin(u)))
    return found[::-1]


def heard(f, policy=None, x=X):
    """(gradient, [(step, ct)] as they came, and the same arrays kept until the end)."""
    copies, kept = [], []
    gradient = pb.grad(
        f, policy=policy, on_adjoint={"u": lambda k, ct: (copies.append((k, ct.copy())), kept.append(ct))}
    )(x)
    for (_, copy), ct in zip(copies, kept, strict=True):
        np.testing.assert_array_equal(copy, ct)  # what was handed out is left alone afterwards
    return gradient, copies


# ----------------------------------------------------------------------------------------------------------- the values


def test_a_marked_value_is_the_same_object_and_outside_a_trace_untouched():
    u = np.arange(3.0)
    assert pb.name(u, "u") is u
    assert pb.name({"a": u}, "u")["a"] is u

    def f(x):
        y = x * 2
        assert pb.name(y, "y") is y
        return np.sum(y)

    np.testing.assert_array_equal(pb.grad(f)(X), [2.0, 2.0, 2.0])


def test_the_cotangent_of_one_value_is_an_array_that_is_the_users_own():
    out, pull = pb.vjp(lambda x: np.sum(pb.name(np.sin(x), "s") ** 2), X)
    (gradient,) = pull(1.0)
    adjoint = pull.adjoint("s")
    np.testing.assert_array_equal(adjoint, 2 * np.sin(X))
    adjoint[:] = 0
    np.testing.assert_array_equal(pull.adjoint("s"), 2 * np.sin(X))
    np.testing.assert_array_equal(gradient, 2 * np.sin(X) * np.cos(X))
    (twice,) = pull(2.0)
    np.testing.assert_array_equal(pull.adjoint("s"), 4 * np.sin(X))  # of the last pull
    np.testing.assert_array_equal(twice, 2 * gradient)
    assert out == np.sum(np.sin(X) ** 2)


def test_a_mark_on_an_argument_shares_no_memory_with_the_gradient():
    _, pull = pb.vjp(lambda x: np.sum(pb.name(x, "x") ** 2), X)
    (gradient,) = pull(1.0)
    assert not np.shares_memory(gradient, pull.adjoint("x"))
    gradient[:] = 0
    np.testing.assert_array_equal(pull.adjoint("x"), 2 * X)


def test_the_cotangent_gathers_all_uses_after_the_mark_and_none_before():
    def f(x):
        u = x * 1.0
        before = np.sum(u)
        pb.name(u, "u")  # the handle itself is marked: what it returns need not be used
        v = u[1:]
        return before + np.sum(u * u) + 3 * np.sum(v)

    _, pull = pb.vjp(f, X)
    pull(1.0)
    np.testing.assert_array_equal(pull.adjoint("u"), 2 * X + [0, 3, 3])


def test_writes_after_the_mark_make_a_new_value():
    def f(x):
        u = pb.name(x * 1.0, "u")
        view = u[:2]
        u[0] = 5.0
        u += 1
        return np.sum(u * u) + np.sum(view)

    _, pull = pb.vjp(f, X)
    (gradient,) = pull(1.0)
    wanted = 2 * (X + 1) + [1, 1, 0]
    wanted[0] = 0
    np.testing.assert_allclose(pull.adjoint("u"), wanted, rtol=1e-15)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-15)


def test_a_marked_view_is_still_one():
    def f(x):
        u = x * 1.0
        part = pb.name(u[:2], "part")
        total = np.sum(part**2)
        part[0] = 7.0
        return total + np.sum(u)

    _, pull = pb.vjp(f, X)
    (gradient,) = pull(1.0)
    np.testing.assert_array_equal(pull.adjoint("part"), 2 * X[:2])
    np.testing.assert_allclose(gradient, [2 * X[0], 2 * X[1] + 1, 1], rtol=1e-15)


def test_several_marks_are_a_list_with_zeros_where_nothing_depends():
    def f(x):
        values = [pb.name(x * k, "k") for k in range(1, 4)]
        return np.sum(values[0]) + np.sum(values[2] ** 2)

    _, pull = pb.vjp(f, X)
    pull(1.0)
    for found, wanted in zip(pull.adjoint("k"), [np.ones(3), np.zeros(3), 6 * X], strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_structures_and_values_without_derivative():
    def f(x):
        state = pb.name({"a": x * 2, "n": 3, "b": (np.sum(x),)}, "state")
        return np.sum(state["a"]) * state["n"] + state["b"][0] ** 2

    _, pull = pb.vjp(f, X)
    pull(1.0)
    a, b = pull.adjoint("state")
    np.testing.assert_array_equal(a, [3.0, 3.0, 3.0])
    assert b == 2 * np.sum(X)
    assert np.shape(b) == ()


def test_values_that_do_not_depend_on_the_inputs_have_cotangents_too():
    """The observations of a misfit: how much each would change it."""
    data = np.array([1.0, 2.0, 3.0])

    def f(x):
        observed = pb.name(data, "data")
        blank = pb.name(np.zeros_like(x), "blank")
        return np.sum((x - observed) ** 2) + np.sum(blank * x)

    for policy in POLICIES:
        _, pull = pb.vjp(f, X, policy=policy)
        (gradient,) = pull(1.0)
        np.testing.assert_array_equal(pull.adjoint("data"), -2 * (X - data))
        np.testing.assert_array_equal(pull.adjoint("blank"), X)
        np.testing.assert_array_equal(gradient, pb.grad(lambda x: np.sum((x - data) ** 2))(X))
    np.testing.assert_array_equal(data, [1.0, 2.0, 3.0])


def test_conventions_of_complex_cotangents():
    z = X + 1j
    _, pull = pb.vjp(lambda z: np.sum(np.abs(pb.name(z * 1, "z")) ** 2), z)
    pull(1.0)
    np.testing.assert_allclose(pull.adjoint("z"), 2 * np.conj(z), rtol=1e-15)
    _, pull = pb.vjp(lambda z: np.sum(np.abs(pb.name(z * 1, "z")) ** 2), z, conj=True)
    pull(1.0)
    np.testing.assert_allclose(pull.adjoint("z"), 2 * z, rtol=1e-15)


# -------------------------------------------------------------------------------------------------------------- streams


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("loop", ["range", "steps"])
def test_steps_of_plain_code_stream_in_reverse_order_with_the_bits_of_save_all(loop, policy):
    gradient, cts = heard(program(loop), policy)
    plain, wanted = heard(program("range"))
    np.testing.assert_array_equal(gradient, plain)
    np.testing.assert_array_equal(gradient, pb.grad(program("range"))(X))
    assert [k for k, _ in cts] == list(range(N))[::-1]
    for (_, ct), (_, other), by_hand in zip(cts, wanted, adjoints_by_hand()[::-1], strict=True):
        np.testing.assert_array_equal(ct, other)
        np.testing.assert_allclose(ct, by_hand, rtol=1e-13)
    _, pull = pb.vjp(program(loop), X, policy=policy)
    for _ in range(2):  # the second time the steps run again from the start
        pull(1.0)
        for found, (_, ct) in zip(pull.adjoint("u"), wanted[::-1], strict=True):
            np.testing.assert_array_equal(found, ct)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
@pytest.mark.parametrize("loop", ["fori_loop", "scan", "while_loop"])
def test_loop_functions_stream_once_a_step(loop, policy):
    gradient, cts = heard(program(loop, policy))
    plain, wanted = heard(program(loop, pb.SaveAll()))
    np.testing.assert_array_equal(gradient, plain)
    np.testing.assert_array_equal(gradient, pb.grad(program(loop, policy))(X))
    assert [k for k, _ in cts] == list(range(N))[::-1]
    for (_, ct), (_, other), by_hand in zip(cts, wanted, adjoints_by_hand()[::-1], strict=True):
        np.testing.assert_array_equal(ct, other)
        np.testing.assert_allclose(ct, by_hand, rtol=1e-13)
    _, pull = pb.vjp(program(loop, policy), X)
    for _ in range(2):
        again = []
        pull(1.0, on_adjoint={"u": lambda k, ct, again=again: again.append((k, ct))})
        assert [k for k, _ in again] == list(range(N))[::-1]
        np.testing.assert_array_equal(again[-1][1], wanted[-1][1])


def test_a_step_is_called_what_its_body_gets_or_what_the_mark_says():
    def f(x):
        u = pb.fori_loop(3, 6, lambda k, u: pb.name(np.sin(u), "u"), x)
        v = pb.fori_loop(0, 2, lambda k, u: pb.name(np.sin(u), "v", step=f"stage {k}"), u)
        for k in range(2):
            v = pb.name(np.sin(v), "w", step=10 * k)
        return np.sum(v)

    calls = []
    on_adjoint = {tag: lambda k, _, tag=tag: calls.append((tag, k)) for tag in "uvw"}
    pb.grad(f, on_adjoint=on_adjoint)(X)
    assert calls == [("w", 10), ("w", 0), ("v", "stage 1"), ("v", "stage 0"), ("u", 5), ("u", 4), ("u", 3)]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_loops_in_loops_tell_both_numbers(policy):
    def f(x):
        def outer(i, u):
            u = pb.name(u * 1.5, "outer")
            return pb.fori_loop(1, 3, lambda j, v: pb.name(np.sin(v), "inner"), u)

        return np.sum(pb.fori_loop(0, 3, outer, x, policy=policy))

    calls = []
    on_adjoint = {tag: lambda k, ct, tag=tag: calls.append((tag, k, ct)) for tag in ("inner", "outer")}
    gradient = pb.grad(f, on_adjoint=on_adjoint)(X)
    assert [(tag, k) for tag, k, _ in calls] == [
        call for i in (2, 1, 0) for call in (("inner", (i, 2)), ("inner", (i, 1)), ("outer", i))
    ]
    np.testing.assert_array_equal(gradient, 1.5 * calls[-1][2])


def test_values_on_which_the_output_does_not_depend_are_passed_over():
    def f(x):
        u = pb.fori_loop(0, 4, lambda k, s: (pb.name(s[0] * 2, "u"), s[1] + s[0] if k < 2 else s[1]), (x, x))[1]
        return np.sum(u)

    calls = []
    pb.grad(f, on_adjoint={"u": lambda k, ct: calls.append(k)})(X)
    assert calls[-1] == 0
    assert 3 not in calls


def test_what_is_streamed_is_not_stored(all_loaded):
    shape, n = (1 << 16,), 40

    def f(x):
        return np.sum(pb.fori_loop(0, n, lambda _, u: pb.name(1.01 * np.sin(u), "u"), x) ** 2)

    def peak(**options):
        x = np.ones(shape)
        _, found = peak_of(pb.grad(f, policy=pb.Binomial(2), **options), x)
        return found

    calls = []
    with_calls = peak(on_adjoint={"u": lambda k, _: calls.append(k)})
    assert len(calls) == n
    assert with_calls - peak() < 4 * 8 * shape[0]  # where nobody hears, one function records and reverses a step


def test_the_ledger_and_the_steps_run_are_those_of_an_unheard_pass():
    _, silent = pb.vjp(program("fori_loop", pb.Binomial(2)), X)
    _, told = pb.vjp(program("fori_loop", pb.Binomial(2)), X)
    silent(1.0)
    told(1.0, on_adjoint={"u": lambda k, ct: None})
    assert (silent.report.n_forward, silent.report.peak_bytes) == (told.report.n_forward, told.report.peak_bytes)


def test_a_callback_gets_an_array_it_cannot_write():
    def write(_, ct):
        ct[:] = 0

    with pytest.raises(ValueError, match="read-only"):
        pb.grad(program("fori_loop"), on_adjoint={"u": write})(X)


def test_nothing_is_left_when_the_pull_goes(all_loaded):
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(o, tapes.Tape) for o in gc.get_objects())
        for _ in range(3):
            heard(program("fori_loop", pb.Binomial(2)))
            _, pull = pb.vjp(program("range"), X)
            pull(1.0)
            pull.adjoint("u")
            pull.close()
        del pull
        assert sum(isinstance(o, tapes.Tape) for o in gc.get_objects()) == before
    finally:
        gc.enable()


# ----------------------------------------------------------------------------------------------- together with the rest


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_second_derivatives_through_marks(policy):
    f, v = program("fori_loop", policy), np.array([1.0, -2.0, 0.5])
    unmarked = lambda x: np.sum(pb.fori_loop(0, N, lambda _, u: step(u, x), x, policy=policy) ** 2)  # noqa: E731
    np.testing.assert_array_equal(pb.jvp(pb.grad(f), (X,), (v,))[1], pb.jvp(pb.grad(unmarked), (X,), (v,))[1])
    np.testing.assert_allclose(pb.vjp(pb.grad(f), X)[1](v)[0], pb.jvp(pb.grad(unmarked), (X,), (v,))[1], rtol=1e-12)


def test_a_cotangent_inside_an_outer_trace_is_a_tracer_that_may_be_differentiated():
    """The adjoint of s at x is 2 s: its derivative along t is 2 cos(x) t."""

    def adjoint(x):
        _, pull = pb.vjp(lambda x: np.sum(pb.name(np.sin(x), "s") ** 2), x)
        pull(1.0)
        return pull.adjoint("s")

    np.testing.assert_allclose(pb.jvp(adjoint, (X,), (np.ones(3),))[1], 2 * np.cos(X), rtol=1e-15)
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(adjoint(x)))(X), 2 * np.cos(X), rtol=1e-15)


def test_a_mark_in_a_forward_trace_is_one_of_the_trace_outside():
    """L = sum of the tangent of y**2 along x, y = x**2: 2 y y', whose derivative by y is 2 y'."""
    _, pull = pb.vjp(lambda x: pb.jvp(lambda x: np.sum(pb.name(x * x, "y") ** 2), (x,), (x,))[1], X)
    pull(1.0)
    np.testing.assert_allclose(pull.adjoint("y"), 4 * X * X, rtol=1e-15)


def test_marks_inside_checkpoint_and_under_a_trap():
    def f(x):
        return np.sum(pb.checkpoint(lambda x: pb.name(np.sin(x), "s") ** 2)(x))

    _, pull = pb.vjp(f, X)
    pull(1.0)
    np.testing.assert_array_equal(pull.adjoint("s"), 2 * np.sin(X))
    with pb.trap("nan", "inf"):
        gradient, cts = heard(program("fori_loop", pb.Binomial(2)))
    np.testing.assert_array_equal(gradient, pb.grad(program("fori_loop", pb.Binomial(2)))(X))
    assert len(cts) == N


def test_the_graph_shows_the_mark():
    assert "name(%1) tag='s'" in str(pb.record(lambda x: np.sum(pb.name(np.sin(x), "s")), X))


def test_the_imaging_condition_of_a_wave_equation():
    """The gradient of a misfit by the speed is the correlation of the adjoint field with the Laplacian of the field
    (Tarantola 1984)."""
    c2 = np.linspace(0.1, 0.3, 20)
    data = np.sin(np.arange(30) / 3)

    def laplacian(u):
        padded = np.concatenate((np.zeros(1), u, np.zeros(1)))
        return padded[2:] - 2 * u + padded[:-2]

    def misfit(c2):
        def body(k, state):
            before, u, loss = state
            after = pb.name(
                2 * u - before + c2 * laplacian(u) + (np.arange(20) == 5) * np.exp(-((k - 8) ** 2) / 8), "u"
            )
            return u, after, loss + (after[15] - data[k]) ** 2

        return pb.fori_loop(0, 30, body, (np.zeros(20), np.zeros(20), 0.0))[2]

    before, u, fields = np.zeros(20), np.zeros(20), []
    for k in range(30):
        fields.append(laplacian(u))
        before, u = u, 2 * u - before + c2 * laplacian(u) + (np.arange(20) == 5) * np.exp(-((k - 8) ** 2) / 8)
    image = np.zeros(20)

    def correlate(k, ct):
        image[:] += ct * fields[k]

    gradient = pb.grad(misfit, policy=pb.Binomial(3), on_adjoint={"u": correlate})(c2)
    np.testing.assert_allclose(image, gradient, rtol=1e-12)


# ------------------------------------------------------------------------------------------------------------- refusals


def test_refusals():
    _, pull = pb.vjp(lambda x: np.sum(pb.name(pb.name(np.sin(x), "s") * x, "t")), X)
    with pytest.raises(
        pb.StructureError, match=r"has the cotangents of the last reverse pass, and there was none; call pull"
    ):
        pull.adjoint("s")
    pull(1.0)
    with pytest.raises(
        pb.StructureError, match=r"no value is marked as 'w'; marked are 's', 't'\. Mark it where it is computed, u = "
    ):
        pull.adjoint("w")
    with pytest.raises(pb.StructureError, match="no value is marked as 'w'; marked are 's', 't'"):
        pull(1.0, on_adjoint={"w": print})
    with pytest.raises(pb.StructureError, match="no value is marked as 'w'; none is marked at all"):
        pb.grad(np.sum, on_adjoint={"w": print})(X)
    pull(1.0, on_adjoint={"s": lambda k, ct: None})
    with pytest.raises(pb.StructureError, match="the cotangents of 's' went to on_adjoint"):
        pull.adjoint("s")
    np.testing.assert_array_equal(pull.adjoint("t"), np.ones(3))
    pull.close()
    with pytest.raises(pb.TracerError, match="this pull is closed"):
        pull.adjoint("t")
    with pytest.raises(pb.StructureError, match="takes a string as the tag, got int"):
        pb.name(X, 3)
    _, pull = pb.vjp(program("fori_loop"), X)
    pull(1.0)
    with pytest.raises(
        pb.StructureError, match=r"'u' belong to the steps of a loop and are not stored; pull\(ct, on_adjoint="
    ):
        pull.adjoint("u")


def test_an_error_in_a_callback_tells_where_and_leaves_nothing_in_force():
    def fail(k, ct):
        raise RuntimeError(f"no more at {k}")

    with pytest.raises(RuntimeError, match="no more at 6"):
        pb.grad(program("fori_loop", pb.Binomial(2)), on_adjoint={"u": fail})(X)
    np.testing.assert_array_equal(pb.grad(program("fori_loop"))(X), heard(program("fori_loop"))[0])


@pytest.mark.parametrize("staging", ["auto", "off", "numpy"])
@pytest.mark.parametrize(
    "policy", [pb.Binomial(3), pb.Recompute(), pb.Budget("1 MB"), pb.Keep("a", outer=pb.Mixed(4)), "auto"], ids=str
)
@pytest.mark.filterwarnings("ignore::pullback.PolicyWarning")
def test_steps_that_are_alike_tell_each_value_by_its_place(policy, staging):
    def f(x):
        for k in pb.steps(30):
            u = pb.name(np.sin(x), "a")
            x = np.tanh(u * x) + 0.01 * pb.name(x * x, "b")
            if k % 7 == 3:
                x = pb.name(x, "a")
        x = pb.fori_loop(0, 4, lambda k, u: np.cos(pb.name(u * 1.1, "c")), x)
        x = pb.checkpoint(lambda u: np.sin(pb.name(u * 1.0, "a")) * u)(x)
        return np.sum(pb.name(x, "b"))

    def told(**how):
        heard = []
        with pb.using(**how):
            _, pull = pb.vjp(f, X)
            found = [pull(1.0)[0], *(np.array(pull.adjoint(tag)) for tag in "ab")]
            pull(1.0, on_adjoint={t: lambda k, ct, t=t: heard.append((t, k, ct.tobytes())) for t in "abc"})
            pull.close()
        return [part.tobytes() for part in found], heard

    assert told(policy=policy, staging=staging) == told(staging="off")


def test_steps_with_a_label_each_share_what_executes_them_again():
    def program(tag):
        def f(x):
            for k in pb.steps(100):
                x = pb.name(np.sin(x) * x, tag(k))
            return np.sum(x)

        return f

    def told(tag):
        _, pull = pb.vjp(program(tag), X, policy=pb.Recompute())
        _, each = pull(1.0)[0], [pull.adjoint(name) for name in dict.fromkeys(map(tag, range(100)))]
        return pull.report.bytes_by_reason["bookkeeping"], np.concatenate(each).reshape(100, -1)

    (one, cts), (own, own_cts) = told(lambda k: "step"), told("step {}".format)
    np.testing.assert_array_equal(cts, own_cts)
    assert own < one + 100 * 200


def test_why_steps_with_a_mark_are_recorded_is_told():
    body = lambda _, u: pb.name(np.sin(u)[1:], "s") * u[1:]  # noqa: E731 - whose stages are asked for
    whole = lambda k, u: u + np.sum(body(k, u))  # noqa: E731 - likewise
    pb.grad(lambda x: np.sum(pb.fori_loop(0, 9, whole, x, staging="numpy")))(X)
    assert "name marks a view, or what depends on no input, as 's'" in str(pb.explain_stage(whole))


@pytest.mark.parametrize("loop", ["range", "steps", "fori_loop", "scan", "while_loop"])
def test_a_pull_that_another_trace_records_runs_marked_steps_again(loop):
    """Steps that only advance then stand in a trace that records: they mark nothing there."""
    direction = np.array([1.0, -2.0, 0.5])

    def slopes(policy):
        with pb.using(policy):
            _, push = pb.linearize(program(loop), X)
            _, pull = pb.vjp(program(loop), X)
        return push(direction), pb.grad(lambda ct: np.sum(pull(ct)[0] * direction))(1.0)

    held = slopes(pb.SaveAll())
    np.testing.assert_allclose(held, pb.grad(program(loop))(X) @ direction, rtol=1e-12)
    for policy in POLICIES:
        np.testing.assert_array_equal(slopes(policy), held, strict=True)


@pytest.mark.parametrize("loop", ["fori_loop", "scan", "while_loop"])
@pytest.mark.parametrize("policy", POLICIES)
def test_steps_after_the_first_may_alone_be_marked(loop, policy):
    """A policy that only advances these steps knows the tag when the program has run forward."""
    at = [2, 5]

    def f(x):
        body = lambda k, u: step(pb.name(u, "u") if k in at else u, x)  # noqa: E731
        if loop == "fori_loop":
            u = pb.fori_loop(0, N, body, x)
        elif loop == "scan":
            u = pb.scan(lambda u, k: (body(int(k), u), None), x, np.arange(N))[0]
        else:
            u = pb.while_loop(lambda s: s[1] < N, lambda s: (body(s[1], s[0]), s[1] + 1), (x, 0))[0]
        return np.sum(u * u)

    def told(policy):
        cts = []
        pb.grad(f, policy=policy, on_adjoint={"u": lambda k, ct: cts.append((k, ct.copy()))})(X)
        return cts

    held, found = told(pb.SaveAll()), told(policy)
    assert [k for k, _ in found] == [k for k, _ in held] == at[::-1]
    np.testing.assert_array_equal([ct for _, ct in found], [ct for _, ct in held])


@pytest.mark.parametrize("staging", ["off", "auto", "numpy"])
@pytest.mark.parametrize("value", ["argument", "view", "captured", "twice"])
def test_a_staged_function_marks_what_its_caller_goes_on_with(staging, value):
    """What is computed from the caller's value after the call counts, as without the decorator."""

    def called(f):
        def whole(x):
            y = x * 1.5
            inner = f(y[1:] if value == "view" else y, y)
            return inner + (f(y, y) if value == "twice" else 0.0) + np.sum(y * y)

        return whole

    def marking(u, y):
        marked = pb.name(y if value == "captured" else u, "u")
        return np.sum(np.sin(marked) * np.cos(u))

    def adjoints(f, x):
        _, pull = pb.vjp(called(f), x)
        (ct,) = pull(1.0)
        return ct, pull.adjoint("u")

    staged = pb.staged(marking)
    for k in range(6):
        with pb.using(staging=staging):
            ct, found = adjoints(staged, X + 0.1 * k)
        wanted, held = adjoints(marking, X + 0.1 * k)
        np.testing.assert_array_equal(ct, wanted, strict=True)
        np.testing.assert_array_equal(found, held)
