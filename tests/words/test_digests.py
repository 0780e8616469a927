"""Two arrays that differ in a bit, in their layout or in their dtype have other digests."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import pullback as pb
from pullback.words.digests import digest, same_bits, short_digest

KINDS = st.sampled_from("f2 f4 f8 g c8 c16 G i1 i4 i8 u2 u8 ? M8[s] m8[s] >f8 >i4".split())
arrays = KINDS.flatmap(lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=0, max_dims=3, max_side=6)))


def elements(x):
    """The bits of each element, by another way than the library's: Python's own bytes of each."""
    width = 10 if x.dtype.char == "g" and np.finfo("g").nmant == 63 else None
    parts = [part for v in x.ravel() for part in ([v.real, v.imag] if x.dtype.char == "G" else [v])]
    return [
        np.asarray(v).tobytes()[: 10 if x.dtype.char == "G" and np.finfo("g").nmant == 63 else width] for v in parts
    ]


@given(arrays, arrays)
@settings(deadline=None)
def test_equal_digests_mean_equal_bits(a, b):
    equal = a.dtype == b.dtype and a.shape == b.shape and a.strides == b.strides and elements(a) == elements(b)
    assert (digest(a) == digest(b)) == equal
    if a.dtype == b.dtype and a.shape == b.shape:
        assert same_bits(a, b) == (elements(a) == elements(b))


@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.sampled_from([8, 512, 520])), elements=st.integers(0, 3)),
    st.randoms(),
)
@settings(deadline=None, max_examples=50)
def test_elements_that_change_places_are_seen(a, random):
    """What a sum over columns cannot see: rows, and elements of one column, in another order."""
    rows = list(range(len(a)))
    random.shuffle(rows)
    b = a[rows].copy()
    assert (digest(a) == digest(b)) == np.array_equal(a, b)
    assert same_bits(a, b) == np.array_equal(a, b)


def test_signs_of_zero_and_payloads_of_nan_are_bits():
    nan = np.array([np.nan])
    other = (nan.view("u8") + 1).view("f8")
    for kind in ("f8", "c16"):
        x, y = np.zeros(3, kind), -np.zeros(3, kind)
        assert digest(x) != digest(y)
        assert not same_bits(x, y)
        assert digest(nan.astype(kind)) != digest(other.view("f8").astype("f8")) or kind != "f8"
    assert not same_bits(nan, other)
    assert digest(nan) != digest(other)


def test_layout_and_dtype_are_part_of_a_digest():
    x = np.arange(6.0).reshape(2, 3)
    assert digest(x) != digest(np.asfortranarray(x))
    assert digest(x) != digest(x.astype(">f8"))
    assert digest(x) != digest(x.view("i8"))
    assert digest(x[:, ::2]) != digest(x[:, ::2].copy())  # other strides
    assert same_bits(x, np.asfortranarray(x))


def test_scalars_and_records_have_digests():
    assert digest(np.float64(1)) != digest(np.float32(1))
    assert digest(1.0) != digest(1)
    record = np.zeros(2, [("a", "f8"), ("b", "i4")])
    assert digest(record) != digest(record.astype([("b", "f8"), ("a", "i4")]))
    assert digest(np.zeros(0)) != digest(np.zeros((0, 2)))


def test_constants_that_differ_by_rows_a_page_apart_are_two():
    """Column sums of 512 words held these as one."""
    top, bottom = np.zeros((4, 512)), np.zeros((4, 512))
    top[0] = bottom[-1] = 1
    got = pb.grad(lambda x: np.sum(x * top) + 2 * np.sum(x * bottom))(np.ones((4, 512)))
    np.testing.assert_array_equal(got, top + 2 * bottom)


@pytest.mark.parametrize("policy", [pb.SaveAll(), pb.Recompute(), pb.Binomial(2)])
def test_a_source_that_moves_a_row_each_step_is_not_held_as_one(policy):
    def f(x):
        total = 0.0
        for k in pb.steps(4):
            source = np.zeros((4, 512))
            source[k] = 1
            total = total + np.sum(x * x * source)
        return total

    x = np.ones((4, 512))
    np.testing.assert_array_equal(pb.grad(f, policy=policy)(x), 2 * x)


def test_an_argument_put_in_another_order_is_told():
    x = np.arange(2048.0).reshape(4, 512)
    _, pull = pb.vjp(lambda x: np.sum(x * x), x)
    x[:] = x[::-1].copy()
    with pytest.raises(pb.ConstantChangedError, match="was changed between the forward pass"):
        pull(1.0)


def test_a_memory_map_given_as_argument_is_guarded(tmp_path):
    x = np.memmap(tmp_path / "x", dtype="f8", mode="w+", shape=(5,))
    x[:] = 1.0
    _, pull = pb.vjp(lambda x: np.sum(x * x), x)
    x[2] = 7.0
    with pytest.raises(pb.ConstantChangedError, match="was changed between the forward pass"):
        pull(1.0)


def test_a_step_along_an_axis_of_one_element_is_none():
    """Copies differ in it: NumPy says anything there."""
    a = np.arange(12.0).reshape(2, 2, 3).transpose(2, 0, 1)[:, :, :1]
    b = np.lib.stride_tricks.as_strided(a, a.shape, (*a.strides[:2], 999))
    assert a.strides != b.strides
    assert digest(a) == digest(b)
    assert short_digest(a) == short_digest(b)


def test_a_whole_number_beyond_64_bits_is_told_by_its_value():
    """Not by where it lies: a state that is one is the same when a step is run again."""
    assert short_digest(2**70) == short_digest(2**35 * 2**35)
    assert short_digest(2**70) != short_digest(2**70 + 1)
    assert short_digest(np.longdouble(2) / 3) == short_digest(np.array(np.longdouble(2) / 3))


@pytest.mark.parametrize("number", [2**70, -(2**64), 10**40, 2**63, -(2**63), True, -0.0, float("nan"), 1j, -0.0j])
@pytest.mark.parametrize("policy", [pb.Binomial(2), pb.Recompute(), pb.Periodic(3, tier="disk")], ids=repr)
def test_numbers_of_python_in_a_state(number, policy):
    def f(x):
        return np.sum(pb.fori_loop(0, 9, lambda k, s: (np.sin(s[0]) * 0.9, s[1] * 3), (x, number))[0])

    x = np.linspace(0.1, 1, 4)
    with np.errstate(all="ignore"):
        for at in (x, 2 * x):
            assert pb.grad(f, policy=policy)(at).tobytes() == pb.grad(f)(at).tobytes()


def test_an_object_is_told_by_its_text_without_where_it_lies():
    """An opaque residual that is made again is another object."""

    class Factor:
        pass

    held = Factor(), Factor()
    assert repr(held[0]) != repr(held[1])
    assert short_digest(held[0]) == short_digest(held[1])
    assert digest([1, held[0]]) == digest([1, held[1]]) != digest([2, held[0]])


@pytest.mark.parametrize("policy", [pb.Keep(), pb.Recompute(), pb.Binomial(3), pb.Mixed(3), pb.Periodic(4)], ids=repr)
def test_opaque_residuals_that_are_made_again(policy):
    @pb.primitive(opaque={"out": lambda factor: 8})
    def halved(x):
        return Half(x / 2)

    @halved.vjp("x")
    def _(ct):
        return ct / 2

    @pb.primitive(opaque={"factor": lambda factor: 8})
    def scaled(factor, y):
        return factor.x * y

    @scaled.vjp("factor", "y")
    def _(ct, factor, y):
        return np.sum(ct * y), ct * pb.value(factor).x

    def f(k):
        factor, x = halved(k), np.arange(4.0)
        for i in pb.steps(9):
            if i == 5:
                factor = halved(k * 2)
            x = np.sin(scaled(factor, x)) + 1
        return np.sum(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pb.PolicyWarning)
        assert pb.grad(f, policy=policy)(0.8) == pb.grad(f)(0.8)


class Half:
    def __init__(self, x):
        self.x = x
