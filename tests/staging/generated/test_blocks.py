"""Elementwise statements in blocks, in one thread and in two: the bits, warnings and memory of whole arrays."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.staging.generated.both_ways import POLICIES, stages

import pullback as pb
from pullback.backends import threads
from pullback.staging.generated import block_runs, blocks, placing
from pullback.testing.comparing.bits import same_bits

N = 500


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """What takes arrays of megabytes otherwise."""
    monkeypatch.setattr(placing, "LARGE", 256)
    monkeypatch.setattr(blocks, "LARGE", 256)
    monkeypatch.setattr(block_runs, "BLOCK", 512)
    monkeypatch.setattr(block_runs, "LEAST", 512)
    monkeypatch.setattr(block_runs, "DIVIDED", 2)
    yield
    threads.end()


def aligned(n, dtype, place):
    """An array whose first element is ``place`` elements behind a full line of a cache."""
    memory = np.zeros(n * np.dtype(dtype).itemsize + 512, np.uint8)
    start = -memory.ctypes.data % 64 + place * np.dtype(dtype).itemsize
    return memory[start : start + n * np.dtype(dtype).itemsize].view(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ufunc", sorted(blocks._UFUNCS, key=lambda f: f.__name__), ids=lambda f: f.__name__)
def test_bits_do_not_depend_on_where_an_element_stands(ufunc, dtype):
    """At lengths and addresses of all kinds, into new arrays and over an operand, with a number and without."""
    random = np.random.default_rng(3)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 1e-310, 700.0, 1e5]
    wholes = [random.choice([*special, *random.normal(size=40)], 1200).astype(dtype) for _ in range(ufunc.nin)]
    with np.errstate(all="ignore"):
        for number in (None, 0, 1) if ufunc.nin == 2 else (None,):
            args = [dtype(1.7) if k == number else x for k, x in enumerate(wholes)]
            whole = ufunc(*args)
            for trial in range(150):
                start = int(random.integers(0, 1100))
                n = int(random.integers(1, (9, 70, 1200 - start)[trial % 3] + 1)) if start < 1130 else 5
                n = min(n, 1200 - start)
                part = []
                for x in args:
                    if np.ndim(x):
                        part.append(aligned(n, dtype, int(random.integers(16))))
                        part[-1][:] = x[start : start + n]
                    else:
                        part.append(x)
                over = [x for x in part if np.ndim(x) and x.dtype == whole.dtype]
                out = over[0] if over and trial % 2 else aligned(n, whole.dtype, int(random.integers(16)))
                ufunc(*part, out=out)
                assert same_bits(out, whole[start : start + n])


def test_a_ufunc_whose_bits_depend_on_the_place_is_left_alone():
    assert block_runs.bits_stay(np.multiply, "d")
    assert block_runs.bits_stay(np.tanh, "f")
    for each in blocks._UFUNCS:
        assert block_runs.bits_stay(each, "f")
        assert block_runs.bits_stay(each, "d")

    class Shifting:
        nin = 1

        def __call__(self, x):
            return np.where(np.arange(len(x)) % 64 == len(x) - 1, np.nextafter(x, 9), x)

    assert not block_runs.bits_stay(Shifting(), "d")


UNARY = (
    "np.tanh({a})", "np.exp(-{a} * {a})", "np.sqrt(1.5 + {a} * {a})", "-{a}", "np.sin({a})", "np.log(2.0 + {a} * {a})",
    "np.abs({a})", "np.cos({a}) * 0.3", "2 - {a}", "{a} / 3", "np.square({a})", "np.log1p({a} * {a})",
)  # fmt: skip
BINARY = (
    "{a} + {b}", "{a} * {b}", "{a} - 0.5 * {b}", "{a} / (1.5 + {b} * {b})", "np.maximum({a}, {b})", "{a} * np.sum({b})",
    "{a}[::-1] * {b}", "np.where({a} > {b}, {a}, 0.1)", "{a} * C", "{a} + C[::-1]",
    "{a} * ROW", "COLUMN - {a}", "{a} / np.broadcast_to(ROW + 3, {a}.shape)", "np.where(C > 0, {a}, {b} * ROW)",
    "np.fft.ifft(np.fft.fft({a}) * 2).real + {b}", "np.roll({a}, 3) * np.cumsum({b}, -1)",
    "np.sort({a}) + np.sort({b})",
    "{a} ** 2", "({a} * {a}) ** 1.5", "{a} + np.sum({b}, axis=0)", "{a} * np.max({b}, axis=-1, keepdims=True)",
)  # fmt: skip


@st.composite
def programs(draw):
    """The body of a function of ``a`` and ``b``, a statement a line."""
    names, lines = ["a", "b"], []
    for k in range(draw(st.integers(2, 12))):
        form = draw(st.sampled_from(UNARY + BINARY))
        one, other = (draw(st.sampled_from(names[-4:])) for _ in range(2))
        name = f"c{k}"
        lines.append(f"    {name} = {form.format(a=one, b=other)}")
        if draw(st.integers(0, 5)) == 0:
            lines.append(f"    {name}[{draw(st.sampled_from(('1:90', '::2', '...')))}] += 0.25")
        names.append(name)
    return "\n".join(("def f(a, b):", *lines, f"    return np.sum({names[-1]} * a) + np.sum({names[-2]})"))


def made_from(text, shape, dtype):
    whole = np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(dtype)
    row, column = whole[(0,) * (len(shape) - 1)], whole.reshape(len(whole), -1)[:, -1].copy()
    names = {"np": np, "C": whole, "ROW": row, "COLUMN": column.reshape(-1, *(1,) * (len(shape) - 1))}
    exec(compile(text, "<drawn program>", "exec"), names)  # noqa: S102
    return names["f"]


@settings(max_examples=30, deadline=None)
@given(programs(), st.sampled_from(((N,), (5, 100), (3, 17, 9))), st.sampled_from((np.float32, np.float64)))
def test_drawn_programs_have_the_same_bits(text, shape, dtype):
    random = np.random.default_rng(1)
    plain = made_from(text, shape, dtype)
    staged = pb.staged(made_from(text, shape, dtype))
    with np.errstate(all="ignore"):
        for _ in range(4):
            a, b = (random.normal(size=shape).astype(dtype) for _ in range(2))
            wanted = pb.value_and_grad(plain, (0, 1))(a, b)
            for n in (1, 2):
                with pb.using(threads=n):
                    assert same_bits(pb.value_and_grad(staged, (0, 1))(a, b), wanted), text
    assert "recorded, since" not in str(pb.explain_stage(staged)), text


def step(k, u, x):
    v = np.tanh(u * x) + 0.1 * u
    w = v * np.exp(-v * v) / (2.0 + x * x)
    w[3:40] += 0.125 * v[:37]
    return np.sqrt(1.0 + w * w) * 0.5 + u * 0.25 - v * 0.1 * k


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("form", ["fori_loop", "scan", "while_loop", "steps"])
def test_steps_of_loops_have_the_same_bits(policy, form):
    def f(x, **how):
        if form == "fori_loop":
            out = pb.fori_loop(0, 12, lambda k, u: step(k, u, x), x * 1.0, **how)
        elif form == "scan":
            out, _ = pb.scan(lambda u, k: (step(k, u, x), np.sum(u)), x * 1.0, np.linspace(0, 1, 12), **how)
        elif form == "while_loop":

            def again(state):
                return step(state[0], state[1], x), state[0] + 1

            out = pb.while_loop(lambda s: s[0] < 12, lambda s: (s[0] + 1, step(s[0], s[1], x)), (0, x * 1.0), **how)[1]
        else:
            out = x * 1.0
            for k in pb.steps(12, **how):
                out = step(k, out, x)
        return np.sum(out * out)

    for seed in range(2):
        x = np.random.default_rng(seed).normal(size=N)
        wanted = pb.value_and_grad(lambda x: f(x, staging="off"), policy=policy)(x)
        for n in (1, 2, 3):
            for _ in range(2):
                found = pb.value_and_grad(lambda x, n=n: f(x, staging="numpy", threads=n), policy=policy)(x)
                assert same_bits(found, wanted)


def test_blocks_are_in_the_text_and_intermediate_results_in_no_buffer():
    @pb.staged
    def f(x):
        return np.sum(np.tanh(x * 0.5) * np.exp(-x * x) + np.sqrt(1.0 + x * x))

    x = np.linspace(-1, 1, N)
    for _ in range(3):
        pb.grad(f)(x)
    record, reverse = str(pb.explain_stage(f)).split("def reverse")
    assert "run_in_blocks(block_1" in record
    assert "run_in_blocks(block_1" in reverse
    assert "works in 0 B" in reverse
    [stage] = stages()
    assert stage.reverse.plan.nbytes == 0
    assert stage.record.plan.nbytes == x.nbytes  # the summand


def test_rows_powers_choices_and_masked_cotangents_are_in_blocks():
    """With a row that all rows meet, an exponent, a choice by a mask, whose cotangents are made free of NaN."""
    row = np.linspace(0.5, 1.5, 20)

    @pb.staged
    def f(x):
        d = (x - row) ** 2 / row
        chosen = np.where((x > 1.0) | ~(x > -0.5), d, -d)
        return np.sum(np.exp(-chosen * chosen) * chosen**3)

    random = np.random.default_rng(1)
    for _ in range(3):
        x = random.normal(size=(25, 20))
        assert same_bits(pb.grad(f)(x), pb.grad(f.__wrapped__)(x))
    text = str(pb.explain_stage(f))
    whole = [line for line in text.splitlines() if line.startswith("    v") and " = f" not in line]
    assert text.count("run_in_blocks(block_") == 3
    assert not any(word in line for line in whole for word in ("where", "without_nan", " ** ", "subtract", "multiply"))


def test_a_mask_gives_an_element_the_same_cotangent_whatever_the_others_are():
    mask = np.array([True, False, False, False])
    cts = []
    for masked in (np.inf, 1.0):
        _, pull = pb.vjp(lambda x: np.where(mask, x, 0.0), np.ones(4))
        cts.append(pull(np.array([-1.0, -1.0, masked, 2.0]))[0])
    assert cts[0][2] == 0
    assert same_bits(np.abs(cts[0]), np.abs(cts[1]))
    assert same_bits(cts[0][[0, 1, 3]], cts[1][[0, 1, 3]])


def test_small_arrays_are_in_no_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "LARGE", 8 * N + 1)

    @pb.staged
    def f(x):
        return np.sum(np.tanh(x * 0.5) * np.exp(-x * x))

    for _ in range(3):
        pb.grad(f)(np.linspace(-1, 1, N))
    assert "block" not in str(pb.explain_stage(f))


@pytest.mark.parametrize("n_threads", [1, 2])
def test_warnings_are_those_of_whole_arrays(n_threads):
    def f(x):
        y = np.log(x) + np.sqrt(x)  # invalid twice, and a division by zero
        z = y * 0.5 + np.exp(x * 800.0)
        return np.sum(z + (x * 0.9) ** 1.7)

    x = np.linspace(-1, 1, N)
    x[7] = 0.0
    staged = pb.staged(f)
    for _ in range(3):
        pb.grad(staged)(abs(x) * 0.1 + 0.1)
    told, whole = [], pb.staged(lambda x: f(x) * 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "LARGE", 8 * N + 1)
        for _ in range(3):
            pb.grad(whole)(abs(x) * 0.1 + 0.1)
    for function in (f, whole, staged):
        with warnings.catch_warnings(record=True) as found, pb.using(threads=n_threads):
            warnings.simplefilter("always")
            pb.value_and_grad(function)(x)
        told.append([(str(w.message), w.filename, w.lineno) for w in found])
    assert "run_in_blocks" in str(pb.explain_stage(f))
    assert told[1] == told[2]
    assert [text for text, *_ in told[0]] == [text for text, *_ in told[1]]
    assert len(told[0]) >= 3
    assert {file for _, file, _ in told[2]} == {__file__}


def test_a_warning_that_is_an_error_is_raised():
    @pb.staged
    def f(x):
        return np.sum(np.log(x) * 0.5)

    x = np.linspace(0.5, 1, N)
    for _ in range(3):
        pb.grad(f)(x)
    x[200] = -1.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="invalid value encountered in log"):
            pb.grad(f)(x)
    x[200] = 0.5
    assert same_bits(pb.grad(f)(x), pb.grad(lambda x: np.sum(np.log(x) * 0.5))(x))


def spectral(u, v):
    a, b = np.fft.fft2(u), np.fft.fft2(v)
    da, db = np.fft.ifft2(1j * a).real, np.fft.ifft2(1j * np.sin(b.real)).real
    logs = np.log(np.sort(u, axis=0)), np.sqrt(np.cumsum(v, axis=1))
    return np.sum(da * v * logs[0]) + np.sum(db * db * u * logs[1])


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_independent_statements_run_side_by_side(n_threads, monkeypatch):
    """Each once, with the bits of one after the other, whatever thread has computed it."""
    staged = pb.staged(spectral)
    random = np.random.default_rng(0)
    for _ in range(4):
        u, v = (random.random((16, 20)) + 0.1 for _ in range(2))
        with pb.using(threads=n_threads):
            assert same_bits(pb.value_and_grad(staged, (0, 1))(u, v), pb.value_and_grad(spectral, (0, 1))(u, v))
    record, reverse = str(pb.explain_stage(staged)).split("def reverse")
    for text in (record, reverse):
        assert "= all_of((" in text
        assert text.count("lambda: ") + text.count("lambda f=") >= 4
    seen = []
    monkeypatch.setattr(block_runs, "side_by_side", lambda work, n: (seen.append(n), work()))
    with pb.using(threads=n_threads):
        pb.grad(staged, (0, 1))(u, v)
    assert (2 in seen) == (n_threads > 1)


def test_what_is_side_by_side_warns_in_the_order_of_the_lines():
    def f(u, v):
        a, b = np.fft.fft2(u), np.fft.fft2(v)
        return np.sum(np.log(np.sort(u, axis=0)) * a.real) + np.sum(np.sqrt(np.sort(v, axis=0)) * b.real)

    staged, u = pb.staged(f), np.linspace(0.1, 1, N).reshape(25, 20)
    for _ in range(3):
        pb.grad(staged)(u, u + 1)
    told = []
    for function, n in ((f, 1), (staged, 1), (staged, 2)):
        with warnings.catch_warnings(record=True) as found, pb.using(threads=n):
            warnings.simplefilter("always")
            pb.value_and_grad(function)(u - 0.5, u - 0.5)
        told.append([(str(w.message), w.filename) for w in found])
    assert told[1] == told[2]
    assert {text for text, _ in told[0]} <= {text for text, _ in told[1]}
    assert len(told[0]) >= 2


def test_a_write_and_a_read_of_it_are_not_side_by_side():
    """What looks at a buffer before it changes, and after, keeps its place."""

    def f(u):
        buffer = np.fft.fft(u).real * 1.0
        first = np.sort(buffer)
        buffer[3:40] += np.cumsum(u)[:37]
        second = np.sort(buffer)
        return np.sum(first * second) + np.sum(np.fft.fft(second).real)

    staged, random = pb.staged(f), np.random.default_rng(2)
    for n in (1, 2, 2, 3):
        u = random.random(N)
        with pb.using(threads=n):
            assert same_bits(pb.value_and_grad(staged)(u), pb.value_and_grad(f)(u))


def test_threads_is_a_whole_number_from_1_on():
    x = np.ones(3)
    for wrong in (0, -2, 1.5, True, "2"):
        said = r"threads= takes a whole number from 1 on, got"
        with pytest.raises(pb.PolicyError, match=said):
            pb.using(threads=wrong)
        with pytest.raises(pb.PolicyError, match=said):
            pb.staged(np.sin, threads=wrong)
        with pytest.raises(pb.PolicyError, match=said):
            pb.fori_loop(0, 2, lambda k, u: u, x, threads=wrong)
        with pytest.raises(pb.PolicyError, match=said):
            pb.scan(lambda u, s: (u, None), x, length=2, threads=wrong)
        with pytest.raises(pb.PolicyError, match=said):
            pb.while_loop(lambda u: False, lambda u: u, x, threads=wrong)
        with pytest.raises(pb.PolicyError, match=said):
            list(pb.steps(2, threads=wrong))
    with pb.using(threads=np.int64(2)), pb.using(threads=3):
        pass


def test_the_threads_of_the_decorator_and_of_using(monkeypatch):
    seen = []
    monkeypatch.setattr(block_runs, "side_by_side", lambda work, n: (seen.append(n), work()))

    def f(x):
        return np.sum(np.exp(x * 0.5) * x)

    one, own = pb.staged(f), pb.staged(f, threads=3)
    for function in (one, own):
        for _ in range(9):  # then it has a stage and an entry, and these are compared no more
            pb.grad(function)(np.linspace(0, 1, N))
    seen.clear()
    pb.grad(one)(np.linspace(0, 1, N))
    with pb.using(threads=2):
        pb.grad(one)(np.linspace(0, 1, N))
        pb.grad(own)(np.linspace(0, 1, N))
    assert seen == [1, 1, 2, 2, 3, 3]
