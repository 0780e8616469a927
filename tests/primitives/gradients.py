"""What the tests of single primitives share: losses that tell elements apart, comparisons of gradients."""

import numpy as np

import pullback as pb


def same(gradient, expected, dtype=np.float64):
    """The gradient is this to the bit, of this dtype."""
    assert gradient.dtype == dtype, f"the gradient is {gradient.dtype}, not {np.dtype(dtype)}"
    np.testing.assert_array_equal(gradient, np.asarray(expected, dtype))


def close(gradient, expected):
    """The gradient is this but for rounding."""
    np.testing.assert_allclose(gradient, expected, rtol=1e-12, atol=1e-14)


def weighted(function):
    """A scalar that weighs every element of the result differently, so that a misplaced one shows."""

    def scalar(x):
        y = function(x)
        return np.sum(y * np.arange(1.0, y.size + 1).reshape(y.shape))

    return scalar


def weighted_by(function, weights):
    """A loss that tells the elements of the function's result apart, by weights of one's own."""
    return lambda x: np.sum(function(x) * np.asarray(weights))


def columns(function, x):
    """The gradient of ``weighted`` of a linear function, by applying it to every unit array."""
    units = np.eye(x.size).reshape((x.size, *x.shape))
    return np.array([weighted(function)(unit) for unit in units]).reshape(x.shape)


def jacobian(f, x):
    """The rows of the Jacobian: one pull for each output."""
    out, pull = pb.vjp(f, x)
    return np.stack([pull(row)[0] for row in np.eye(len(out), dtype=out.dtype)])


def slopes(f, *args, by=0):
    """The elementwise derivative of ``f`` with respect to argument ``by``; the forward may warn, the reverse pass
    may not."""
    with np.errstate(all="ignore"):
        out, pull = pb.vjp(f, *map(np.asarray, args))
    return pull(np.ones_like(out))[by]


def pulled(f, x, ct):
    """The value, and the pullback of ``ct`` in every element; the forward may warn."""
    with np.errstate(all="ignore"):  # log(0) warns, here as in NumPy
        out, pull = pb.vjp(f, x)
        return out, pull(np.full(np.shape(out), ct, out.dtype))[0]
