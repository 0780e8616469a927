"""``staged``: what a function may do, in which the bits are those without the decorator."""

import gc
import operator
import threading
import warnings

import numpy as np
import pytest

import pullback as pb
from pullback.recording.tape import CLOSED, DEFERRED, Tape
from pullback.testing.comparing.bits import same_bits
from pullback.words.errors import PolicyError

pytestmark = pytest.mark.usefixtures("nothing_is_known")


POLICIES = pb.SaveAll(), pb.Recompute(2), pb.Binomial(2)


def require_same(f, program, *inputs, n_stages=None, policies=POLICIES):
    """``program(f, x)`` has the same value and gradient with ``f`` staged and as it is, at every input; asked thrice,
    since stages are there from the second time on."""
    staged = pb.staged(f)
    for policy in policies:
        for x in inputs:
            wanted = pb.value_and_grad(lambda x: program(f, x), policy=policy)(x)
            for _ in range(3):
                found = pb.value_and_grad(lambda x: program(staged, x), policy=policy)(x)
                assert same_bits(found, wanted), policy
    if n_stages is not None:
        assert len(pb.explain_stage(staged).stages) == n_stages, str(pb.explain_stage(staged))


def alone(f, x):
    return np.sum(f(x))


X = np.array([0.3, -0.7, 1.1, 0.2])
Y = np.array([1.3, 0.7, -0.1, 0.9])


def test_called_plainly_it_is_the_function():
    @pb.staged
    def f(x, *, n=2):
        """The n-th power."""
        return x**n

    assert f(3.0) == 9.0
    assert f(3.0, n=3) == 27.0
    assert f.__doc__ == "The n-th power."
    assert type(f(X)) is np.ndarray


def test_it_is_staged_from_the_second_call_on():
    def f(x):
        return np.sin(x) * x + 2.0 * x

    require_same(f, alone, X, Y, n_stages=1)


def test_as_an_argument_that_is_read_before_and_after():
    """Cotangents are added in the order of the records, as if the function stood there itself."""

    def f(x):
        return np.sin(x) * x / (1.0 + x * x) + x[::-1]

    require_same(f, lambda f, x: np.sum(np.cos(x) * f(x) * x * f(x) * np.exp(x) + x * f(f(x))), X * 3, Y / 3)


def test_captured_values_and_their_cotangents():
    def program(decorate, x):
        w = np.cos(x)

        def f(u):
            return np.sin(u) * w + w * u

        f = decorate(f)
        return np.sum(f(x) * w + f(f(x)) * w)

    def inner(f):
        return f

    wanted = pb.value_and_grad(lambda x: program(inner, x))(X)
    for _ in range(3):
        assert same_bits(pb.value_and_grad(lambda x: program(pb.staged, x))(X), wanted)


def test_structures_go_in_and_out():
    def f(params, x, mode, *, scale):
        h = np.tanh(x * params["w"] + params["b"])
        out = {"h": h, "n": 3, "again": (h * scale, x)}
        return (out, mode, None)

    def program(f, x):
        out, mode, nothing = f({"w": x * 2, "b": 0.5}, x, "relu", scale=3)
        assert mode == "relu"
        assert nothing is None
        assert out["n"] == 3
        assert out["again"][1] is x
        return np.sum(out["h"] * out["again"][0]) + np.sum(out["again"][1])

    require_same(f, program, X, Y, n_stages=1)


def test_branches_on_values_and_on_numbers():
    def f(x, k):
        y = x * 2.0
        if float(pb.value(y)[0]) > 0:
            y = np.sin(y)
        return y * x if k % 2 else y + x[k:].sum()

    require_same(f, lambda f, x: np.sum(f(x, 0) + f(x, 1) + f(x, 3)), X, -X)


def test_branches_on_constants_are_two_stages():
    def f(x, k):
        return np.sin(x) * x if k % 2 else np.cos(x) + x

    require_same(f, lambda f, x: np.sum(sum(f(x, k) for k in range(6))), X, Y, n_stages=2)


def test_constants_are_taken_anew():
    table = np.linspace(0, 1, 20).reshape(5, 4)
    buffer = np.zeros(4)

    def f(x, k):
        buffer[:] = table[k]
        y = x * buffer
        buffer[:] = 0.5
        return np.sin(y) * buffer + 0.1 * k

    require_same(f, lambda f, x: np.sum(sum(f(x, k) for k in range(5))), X, Y, n_stages=1)


def test_it_runs_once_for_each_call():
    calls = []
    drawn = np.random.default_rng(0)

    @pb.staged
    def f(x):
        calls.append(None)
        return np.sin(x) * drawn.standard_normal(4)

    for _ in range(5):
        pb.grad(lambda x: np.sum(f(x)))(X)
    assert len(calls) == 5
    again = np.random.default_rng(0)
    for _ in range(5):
        again.standard_normal(4)
    assert drawn.random() == again.random()


def test_arguments_may_be_written():
    def f(u, v):
        u[1:] *= v[:-1]
        u += v
        v[0] = 2.0
        return u * v

    def program(f, x):
        u, v = np.sin(x), np.cos(x)
        w = u[1:]
        y = f(u, v)
        z = f(w, v[1:])
        return np.sum(y * u + v) + np.sum(z) * np.sum(w)

    require_same(f, program, X, Y, n_stages=0)


WRITES = {
    "an element": lambda z, x: z.__setitem__(0, 5.0),
    "an increment": lambda z, x: operator.iadd(z, 1.0),
    "through a view": lambda z, x: operator.iadd(z[1:], x[1:]),
    "in place": operator.imul,
    "out": lambda z, x: np.add(z, x, out=z),
    "fill": lambda z, x: z.fill(2.0),
    "copyto": np.copyto,
}
MADE = {
    "a result": lambda x: x * 1.5,
    "a buffer": lambda x: operator.iadd(np.zeros_like(x), x),
    "a view": lambda x: (x * 1.5)[::-1],
    "a view of what was written": lambda x: operator.iadd(np.zeros_like(x), x)[:],
}
READS = {
    "itself": lambda z: np.sin(z) * z + z,
    "a view of it": lambda z: z[::-1] * np.reshape(z, (1, 4))[0],
    "itself, twice": lambda z: (z, z * z)[1],
}


@pytest.mark.parametrize("reads", READS)
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("write", WRITES)
def test_an_argument_is_written_after_the_call(write, made, reads):
    """What the record of the call holds of it stays as it was."""

    def program(f, x):
        z = MADE[made](x)
        y = f(z)
        WRITES[write](z, x)
        return np.sum(y * y) + np.sum(z * x)

    require_same(READS[reads], program, X, Y, n_stages=1)


def test_an_argument_that_no_slot_holds_is_written_in_place():
    @pb.staged
    def f(x):
        return x * 2.0

    seen = []

    def program(x):
        z = x * 1.5
        memory = z._value
        y = f(z)
        z += 1.0
        seen.append(z._value is memory)
        return np.sum(y * z)

    for _ in range(3):
        pb.grad(program)(X)
    assert seen == [True] * 3


def test_captured_values_may_be_written():
    def f(state, x):
        state["u"][1] = x[0] * 2
        return np.sum(state["u"] * x)

    def program(f, x):
        u = x * 3

        def g(y):
            u[0] = y[1]
            u[1:] *= y[1:]
            return u * y

        g = pb.staged(g) if f is not plain else g
        return np.sum(g(x) * u) + np.sum(u) + np.sum(g(x * 2))

    def plain(x):
        return x

    require_same(plain, program, X, Y)


def test_a_write_to_what_was_returned_reaches_nobody_else():
    def f(x):
        y = np.exp(x)
        return y, y * 2.0

    def program(f, x):
        y, z = f(x)
        y[0] = 5.0
        z += y
        y *= z
        return np.sum(y * z * x)

    require_same(f, program, X, Y, n_stages=1)


def test_what_is_returned_as_it_came_is_the_argument():
    def f(x, y):
        return x, np.sin(y)

    def program(f, x):
        u = x * 2
        a, b = f(u, x)
        a[0] = 3.0
        return np.sum(u * b) + np.sum(a)

    require_same(f, program, X, Y, n_stages=1)


def test_views_of_arguments():
    def f(x):
        return x[1:], np.sum(x)

    def program(f, x):
        u = x * 2
        a, b = f(u)
        a[0] = 3.0
        return np.sum(u) * b + np.sum(a)

    require_same(f, program, X, Y, n_stages=0)


def test_the_same_value_twice():
    require_same(lambda x, y: np.sin(x) * y + x, lambda f, x: np.sum(f(x, x) * f(x, x * 2)), X, Y)


def test_outputs_that_nobody_uses():
    require_same(lambda x: (np.sin(x), np.cos(x) * x), lambda f, x: np.sum(f(x)[0] * x), X, Y, n_stages=1)


def test_masks_within_and_around():
    def f(x):
        return np.where(x > 0, np.sqrt(np.abs(x)), 0.0) * x

    with np.errstate(all="ignore"):
        require_same(f, lambda f, x: np.sum(np.where(x > 0.5, np.log(f(x) + x), 0.0)), X, Y)
        zero = np.array([0.0, 0.5])
        require_same(lambda x: np.log(x) * x, lambda f, x: np.sum(np.where(x > 0, f(x), 0.0)), zero)


def test_staged_in_staged_and_in_loops():
    inner = pb.staged(lambda x: np.sin(x) * x)

    def f(x):
        return inner(x) + inner(inner(x))

    require_same(f, alone, X, Y, n_stages=1)
    require_same(f, lambda f, x: np.sum(pb.fori_loop(0, 30, lambda k, u: f(u) * 0.5, x)), X, Y)


def test_a_loop_in_a_staged_function():
    def f(x):
        return pb.fori_loop(0, 30, lambda k, u: np.sin(u) * x, x * 2) + x

    require_same(f, lambda f, x: np.sum(f(x) * x), X, Y, n_stages=0)
    assert "not followed" in str(pb.explain_stage(pb.staged(f)))


def test_a_gradient_in_a_staged_function():
    def f(x):
        return pb.grad(lambda u: np.sum(np.sin(u) * x))(x) * x

    require_same(f, alone, X, Y, n_stages=0)


def test_nested_derivatives():
    def f(x):
        return np.sin(x) * x * np.sum(x)

    staged = pb.staged(f)
    for g in (
        lambda f, x: pb.grad(lambda x: np.sum(pb.grad(lambda x: np.sum(f(x)))(x) * x))(x),
        lambda f, x: pb.hvp(lambda x: np.sum(f(x)), (x,), (x,)),
        lambda f, x: pb.jvp(f, (x,), (x,))[1],
        lambda f, x: pb.jacobian(f)(x),
        lambda f, x: pb.hessian(lambda x: np.sum(f(x)))(x),
        lambda f, x: pb.linearize(f, x)[1](x),
    ):
        wanted = g(f, X)
        for _ in range(3):
            assert same_bits(g(staged, X), wanted)


def test_pulls_of_a_record_may_be_called_again():
    staged = pb.staged(lambda x: np.sin(x) * x)
    for _ in range(3):
        y, pull = pb.vjp(staged, X)
        _, plain = pb.vjp(lambda x: np.sin(x) * x, X)
        for ct in (y, X, Y[::-1], np.broadcast_to(1.0, 4)):
            assert same_bits(pull(ct), plain(ct))
        assert same_bits(pull([X, Y]), plain([X, Y]))


def test_a_second_derivative_through_a_pull():
    staged = pb.staged(lambda x: np.sin(x) * x)
    for _ in range(3):
        _, pull = pb.vjp(staged, X)
        _, again = pb.vjp(pull, Y)
        assert np.allclose(again((X,))[0], (np.sin(X) + X * np.cos(X)) * X)


def test_dtypes_shapes_and_layouts_each_have_their_stage():
    def f(x):
        return np.sin(x) * x

    square = X.reshape(2, 2)
    require_same(f, alone, X, X.astype(np.float32), square, np.asfortranarray(square), X[::2], 0.5, np.float64(0.5))
    require_same(f, lambda f, x: np.sum(np.real(f(x))), X + 1j * Y)


def test_exceptions_leave_nothing():
    @pb.staged
    def f(x, fails):
        y = np.sin(x) * x
        if fails:
            raise KeyError("no")
        return y * 2.0

    for fails in (False, False, True, False, True):
        if fails:
            with pytest.raises(KeyError):
                pb.grad(lambda x: np.sum(f(x, True)))(X)
        else:
            assert same_bits(pb.grad(lambda x: np.sum(f(x, False)))(X), 2 * (np.cos(X) * X + np.sin(X)))

    def caught(x):
        try:
            return f(x, True)
        except KeyError:
            return f(x, False)

    assert np.allclose(pb.grad(lambda x: np.sum(caught(x)))(X), 2 * (np.cos(X) * X + np.sin(X)))
    assert not f.__closure__[0].cell_contents.idle or all(
        not run.made and run.tape.enclosing is None for run, _ in f.__closure__[0].cell_contents.idle
    )


def test_nothing_is_left_with_the_collector_off():
    f = pb.staged(lambda x, fails: np.sum(np.sin(x) * x) if not fails else np.sum(x).missing)
    around = pb.grad(lambda x, fails: f(x, fails) * np.sum(x))
    gc.collect()
    gc.disable()
    try:
        for fails in (False, False, False, True, False):
            for g in (pb.grad(f), around):
                tapes = []
                try:
                    g(X * 2, fails)
                except AttributeError as error:
                    tapes.append(type(error))
                assert len(tapes) == fails
        assert not [one for one in gc.get_objects() if type(one) is Tape and one.mode not in (CLOSED, DEFERRED)]
    finally:
        gc.enable()


def test_a_value_that_leaks_raises_by_name():
    kept = []

    @pb.staged
    def f(x):
        kept.append(x * 2.0)
        return np.sin(x)

    for _ in range(3):
        pb.grad(lambda x: np.sum(f(x)))(X)
        with pytest.raises(pb.TracerError, match="leaked"):
            kept[-1] + 1.0


def test_a_structure_that_is_changed_raises():
    @pb.staged
    def f(cache, x):
        cache["y"] = np.sin(x)
        return cache["y"] * 2

    with pytest.raises(pb.StructureError, match="changed a structure"):
        pb.grad(lambda x: np.sum(f({"z": x}, x)))(X)


def test_error_states_and_warnings_name_the_line():
    def f(x):
        return np.log(x) * x

    staged = pb.staged(f)
    for k in range(4):
        with warnings.catch_warnings(record=True) as told, np.errstate(all="warn"):
            warnings.simplefilter("always")
            pb.grad(lambda x: np.sum(staged(x)))(np.array([-1.0, 2.0]))
        assert len(told) == 1
        assert k < 2 or told[0].filename == __file__
        with np.errstate(all="raise"), pytest.raises(FloatingPointError):
            pb.grad(lambda x: np.sum(staged(x)))(np.array([-1.0, 2.0]))


def test_threads_share_what_is_known():
    staged = pb.staged(lambda x: np.sin(x) * x + np.cos(x) * np.sum(x))
    wanted = pb.grad(lambda x: np.sum(np.sin(x) * x + np.cos(x) * np.sum(x)))
    faults = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(60):
            x = random.normal(size=3000)
            if pb.grad(lambda x: np.sum(staged(x)))(x).tobytes() != wanted(x).tobytes():
                faults.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_the_switch():
    f = pb.staged(staging="off")(lambda x: np.sin(x) * x)
    for _ in range(3):
        pb.grad(lambda x: np.sum(f(x)))(X)
    assert pb.explain_stage(f).stages == ()
    with pb.using(staging="off"):
        g = pb.staged(lambda x: np.sin(x) + x)
        for _ in range(3):
            pb.grad(lambda x: np.sum(g(x)))(X)
    assert pb.explain_stage(g).stages == ()


def test_what_is_refused():
    with pytest.raises(pb.StructureError, match="staged takes a function"):
        pb.staged(3)
    with pytest.raises(pb.PluginError, match="no backend 'fast' is installed"):
        pb.staged(np.sin, staging="fast")
    with pytest.raises(PolicyError, match="staging= takes"):
        pb.staged(np.sin, staging=3)


def test_a_write_besides_what_is_not_followed_is_refused_by_name():
    """It was said of a loop's body, where there was no loop around."""

    @pb.staged
    def f(x):
        y = pb.fori_loop(0, 3, lambda k, u: np.sin(u), x)
        x[0] = 0.5
        return x * y

    grad = pb.grad(lambda x: np.sum(f(x * 1.0)))
    with pytest.raises(pb.WriteError, match=r"a staged function writes to its argument \(at .*\), .* write to a copy"):
        [grad(np.ones(3)) for _ in range(3)]


def test_what_a_checkpoint_saves_of_an_argument_still_refuses_writes():
    """A product saves its operands, and marked them as saved: the mark that refuses writes was lost."""
    multiplied = pb.checkpoint(lambda a, b: a * b)

    @pb.staged
    def f(x):
        x += x
        y = multiplied(x, x)
        x += 1.0
        return y

    with pytest.raises(pb.WriteError, match="a staged function writes to its argument"):
        pb.grad(lambda x: np.sum(f(x * 1.0)))(np.ones(3))


def test_an_argument_that_a_checkpoint_saves_is_returned_as_itself():
    """Writes to what was returned did not reach the caller's array, every second time."""
    multiplied = pb.checkpoint(lambda a, b: a * b)

    def doubled(x):
        x += x
        multiplied(x, x)
        return x

    def loss(f, x):
        x = y = x * 1.0
        for _ in range(6):
            y = f(y)
        return np.sum(x * y)

    staged = pb.staged(doubled)
    wanted = pb.value_and_grad(lambda x: loss(doubled, x))(np.ones(3))
    for _ in range(3):
        value, gradient = pb.value_and_grad(lambda x: loss(staged, x))(np.ones(3))
        assert value == wanted[0]
        assert same_bits(gradient, wanted[1])


def test_a_captured_value_of_another_shape_in_a_later_call():
    """Runs that serve one call after another asked of a captured value once: of an id, which a later trace has, too."""
    around = {}

    @pb.staged
    def f(x):
        return np.sum(around["w"] * around["w"][::-1]) * x

    def loss(x, w):
        around["w"] = w * 1.0
        return np.sum(f(x))

    for shape in (3, 3, 3, 5, (1, 3), (3, 1), 4):
        value, (gx, gw) = pb.value_and_grad(loss, argnums=(0, 1))(np.ones(2), np.full(shape, 2.0))
        assert value == 2 * gx[0] == 8.0 * np.prod(shape)
        assert np.all(gw == 8.0)


def test_a_warning_that_is_an_error_and_comes_late_says_what_to_do():
    """Python has left the function, with its ``except``, when NumPy computes."""

    def caught(x):
        try:
            return np.sum(np.log(x) * x)
        except RuntimeWarning:
            return np.sum(x * x)

    good, bad = np.array([0.5, 1.0]), np.array([-1.0, 1.0])
    gradient = pb.grad(pb.staged(caught))
    for _ in range(5):
        gradient(good)
    with pytest.raises(RuntimeWarning, match="invalid value") as told:
        gradient(bad)
    assert 'could not catch it, as it can with staging="off"' in told.value.__notes__[0]
    with pb.using(staging="off"):
        assert same_bits(gradient(bad), 2 * bad)
