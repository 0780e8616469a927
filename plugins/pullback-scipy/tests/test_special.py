"""scipy.special: every universal function that is served, against differences and complex steps, to second order."""

import numpy as np
import pytest
from scipy import special

import pullback as pb
from pullback_scipy import PRIMITIVES
from pullback_scipy import special as mirrored

ANY, POSITIVE, UNIT = np.array([-1.7, -0.4, 0.3, 2.2]), np.array([0.3, 0.8, 1.9, 3.1]), np.array([0.1, 0.35, 0.6, 0.9])
A, B = np.array([0.7, 1.4, 2.5, 3.0]), np.array([[1.2], [0.6]])
DEGREES = np.array([[0], [1], [2], [5]])

OPERANDS = {
    "loggamma": (POSITIVE,),
    "zeta": (2.5, POSITIVE),
    "poch": (POSITIVE, A),
    "binom": (A + 3, POSITIVE),
    "beta": (A, B),
    "betaln": (A, B),
    **dict.fromkeys(("betainc", "betaincc", "betaincinv", "betainccinv"), (A, B, UNIT)),
    **dict.fromkeys(("gammainc", "gammaincc"), (A, POSITIVE)),
    **dict.fromkeys(("gammaincinv", "gammainccinv", "stdtrit"), (A, UNIT)),
    "chdtri": (A, UNIT),
    **dict.fromkeys(("chdtr", "chdtrc", "stdtr"), (A, POSITIVE)),
    **dict.fromkeys(("gdtr", "gdtrc"), (A, B, POSITIVE)),
    **dict.fromkeys(("pdtr", "pdtrc"), (np.array([0.0, 1.0, 2.0, 3.0]), POSITIVE)),
    "expn": (2, POSITIVE),
    "wofz": (ANY + 0.2j,),
    "owens_t": (ANY, B),
    "lambertw": (POSITIVE + 0.2j, 0, 1e-12),
    **dict.fromkeys(("xlogy", "rel_entr", "kl_div"), (A, POSITIVE)),
    "xlog1py": (ANY, UNIT),
    **dict.fromkeys(("huber", "pseudo_huber"), (1.1, ANY)),
    **dict.fromkeys(("boxcox", "boxcox1p"), (POSITIVE, B)),
    **dict.fromkeys(("inv_boxcox", "inv_boxcox1p"), (UNIT, B)),
    **dict.fromkeys(("jv", "yv", "iv", "kv", "kve", "ive", "struve", "modstruve"), (1.5, POSITIVE)),
    **dict.fromkeys(("yn", "kn"), (2, POSITIVE)),
    **dict.fromkeys(("hankel1", "hankel2"), (0.5, POSITIVE + 0.3j)),
    "hyp0f1": (1.5, ANY),
    "hyp1f1": (0.5, 1.5, ANY),
    "hyp2f1": (0.5, 1.2, 2.3, np.array([-0.6, 0.1, 0.4])),
    **dict.fromkeys(("ellipkinc", "ellipeinc"), (UNIT, 0.4)),
    **dict.fromkeys(
        "erfinv erfcinv ndtri logit entr ellipk ellipkm1 ellipe".split(), (UNIT,)
    ),
    **dict.fromkeys(
        "gamma gammaln rgamma psi exp1 expi k0 k1 k0e k1e y0 y1 spence log1p".split(), (POSITIVE,)
    ),
    "ndtri_exp": (-POSITIVE,),
    **dict.fromkeys("ker kei kerp keip kelvin itj0y0 iti0k0 sici shichi".split(), (POSITIVE,)),
    "ellipj": (ANY, 0.4),
    **dict.fromkeys(("pbdv", "pbvv"), (1.5, ANY)),
    **dict.fromkeys(
        [f"eval_{name}" for name in "legendre chebyt chebyu chebyc chebys sh_legendre sh_chebyt sh_chebyu laguerre "
         "hermite hermitenorm".split()],
        (DEGREES, UNIT),
    ),
    **dict.fromkeys(("eval_gegenbauer", "eval_genlaguerre"), (DEGREES, 0.7, UNIT)),
    "eval_jacobi": (DEGREES, 0.7, 1.3, UNIT),
    **dict.fromkeys(("jve", "yve"), (1.5, POSITIVE)),
    **dict.fromkeys(("hankel1e", "hankel2e"), (0.5, POSITIVE + 0.3j)),
    "hyperu": (0.7, 1.4, POSITIVE),
    "powm1": (A, POSITIVE),
    "voigt_profile": (ANY, A, B),
    **dict.fromkeys(("fdtr", "fdtrc"), (3.0, 5.0, POSITIVE)),
    "fdtri": (3.0, 5.0, UNIT),
    **dict.fromkeys(("bdtr", "bdtrc"), (1.0, 5, UNIT)),
    **dict.fromkeys(("nbdtr", "nbdtrc"), (2, 5, UNIT)),
}  # fmt: skip
LESS = {"betaincinv", "betainccinv", "stdtrit", "gammaincinv", "gammainccinv", "chdtri", "ndtri_exp", "fdtri"}
"""Inverses, which SciPy finds to fewer digits than the checkers ask."""


def name_of(prim):
    return prim.name.removeprefix("special.")


UFUNCS = [prim for prim in PRIMITIVES if prim.name.startswith("special.") and isinstance(prim.forward, np.ufunc)]


def on_active(prim):
    """The ufunc of the operands that have a rule, and these; the others are given, and stay."""
    operands = OPERANDS.get(name_of(prim), (ANY,))
    places = [place for place, name in enumerate(prim.operand_names) if name in prim.rules]

    def f(*moving):
        full = list(operands)
        for place, x in zip(places, moving, strict=True):
            full[place] = x
        return prim.forward(*full)

    return f, tuple(operands[place] for place in places)


@pytest.mark.share(2, of=lambda **_: "")
@pytest.mark.parametrize("prim", [p for p in UFUNCS if name_of(p) not in LESS], ids=name_of)
def test_derivatives_of_two_orders_are_right(prim):
    f, moving = on_active(prim)
    with np.errstate(all="ignore"):
        if len(moving) == len(prim.operand_names):
            pb.testing.check_primitive(prim, *moving)
        else:
            pb.testing.check_grads(f, moving, order=2)


@pytest.mark.parametrize("prim", [p for p in UFUNCS if name_of(p) in LESS], ids=name_of)
def test_inverses_are_inverse_to_the_slope(prim):
    f, (x,) = on_active(prim)
    for order, g in enumerate((f, pb.elementwise_grad(f))):
        slope = pb.grad(lambda x, g=g: np.sum(g(x)))(x)
        step = 1e-4
        differences = (8 * (g(x + step) - g(x - step)) - (g(x + 2 * step) - g(x - 2 * step))) / (12 * step)
        differences = differences.sum(axis=tuple(range(differences.ndim - 1)))
        np.testing.assert_allclose(slope, differences, rtol=1e-6 * 10**order)


def ones(out):
    return tuple(map(np.ones_like, out)) if isinstance(out, tuple) else np.ones_like(out)


@pytest.mark.filterwarnings("ignore:non-integer arg n is deprecated")  # SciPy's, of bdtr in single precision
@pytest.mark.parametrize("prim", UFUNCS, ids=name_of)
def test_single_precision_stays_single(prim):
    f, moving = on_active(prim)
    single = [np.asarray(x, np.complex64 if np.iscomplexobj(x) else np.float32) for x in moving]
    with np.errstate(all="ignore"):
        out, pull = pb.vjp(f, *single)
        for place, (y, ct) in enumerate(zip(single, pull(ones(out)), strict=True)):
            assert ct.dtype == y.dtype
            double, exact = pb.vjp(f, *moving)
            expected = exact(ones(double))[place]
            np.testing.assert_allclose(ct, expected, rtol=2e-3)


A2 = np.array([[0.3, -1.2, 2.0], [1.5, 0.2, -0.7]])
FOLDS = {
    "logsumexp": (mirrored.logsumexp, A2),
    "logsumexp axis": (lambda a: mirrored.logsumexp(a, axis=1), A2),
    "logsumexp keepdims": (lambda a: mirrored.logsumexp(a, axis=0, keepdims=True), A2),
    "logsumexp weights": (lambda a, b: mirrored.logsumexp(a, 0, b), A2, A2[::-1] ** 2),
    "logsumexp sign": (lambda a, b: mirrored.logsumexp(a, 1, b, return_sign=True)[0], A2, A2 - 3),
    "softmax": (mirrored.softmax, A2),
    "softmax axis": (lambda a: mirrored.softmax(a, axis=0), A2),
    "log_softmax": (lambda a: mirrored.log_softmax(a, axis=1), A2),
    "polygamma": (lambda x: mirrored.polygamma(2, x), POSITIVE),
    "multigammaln": (lambda x: mirrored.multigammaln(x, 3), POSITIVE + 2),
    "zeta": (lambda x: mirrored.zeta(3.0, x), POSITIVE),
}


@pytest.mark.parametrize("name", FOLDS)
def test_functions_that_convert_are_right_too(name):
    f, *operands = FOLDS[name]
    out, _ = pb.vjp(f, *operands)
    assert np.asarray(out).tobytes() == np.asarray(f(*operands)).tobytes()
    pb.testing.check_grads(f, tuple(operands), order=2)


def test_an_order_that_is_traced_is_named():
    with pytest.raises(pb.MissingRuleError, match=r"special\.iv.*'v'"):
        pb.grad(lambda v: special.iv(v, 1.0))(0.5)
    with pytest.raises(pb.MissingRuleError, match=r"scipy\.special\.polygamma has no rule for its argument 'n'"):
        pb.grad(lambda n: mirrored.polygamma(n, 1.0))(1.0)
    with pytest.raises(pb.ConversionError, match=r"pullback_scipy\.special\.softmax, which has a derivative"):
        pb.grad(lambda x: special.softmax(x)[0])(POSITIVE)


@pytest.mark.parametrize(
    ("f", "x", "expected"),
    [
        (special.log_ndtr, [-1e8, -1e5, 60.0], [1e8, 1e5, 0.0]),
        (special.erfcx, [1e8], [-1e-16 / np.sqrt(np.pi)]),
        (special.dawsn, [1e8, -1e8], [-5e-17, -5e-17]),
        (special.rgamma, [0.0, -1.0, -2.0, -3.0], [1.0, -1.0, 2.0, -6.0]),
        (lambda x: np.imag(special.wofz(x + 0j)), [1e8], [-1e-16 / np.sqrt(np.pi)]),
        (lambda x: special.voigt_profile(x, 1.0, 0.5), [1e6], [-1e-18 / np.pi]),
        (lambda x: special.struve(0, x), [0.0], [2 / np.pi]),
        (lambda x: special.sici(x)[0] + special.shichi(x)[0], [0.0, 1.0], [2.0, np.sin(1.0) + np.sinh(1.0)]),
        (lambda x: special.beip(x) + np.imag(special.kelvin(x)[2]), [0.0], [1.0]),
        (lambda x: special.expn(np.array([0, 1]), x), [0.5, 0.5], [-6 * np.exp(-0.5), -2 * np.exp(-0.5)]),
        (lambda x: mirrored.logsumexp(x, b=np.array([0.0, 1.0])), [1e5, 0.0], [0.0, 1.0]),
    ],
)
def test_slopes_far_away_and_at_poles(f, x, expected):
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(f(x)))(np.array(x)), expected, rtol=1e-8)


@pytest.mark.parametrize(("f", "sign"), [(special.struve, -1), (special.modstruve, 1)])
def test_functions_of_struve_have_their_second_slopes_at_zero(f, sign):
    orders, x = np.array([0.0, 1.0, 2.0, 0.0]), np.array([0.0, 0.0, 0.0, 0.5])
    slope = pb.grad(lambda x: np.sum(f(orders, x)))
    near = 2 / np.pi + sign * f(1, 0.5)
    np.testing.assert_allclose(slope(x), [2 / np.pi, 0.0, 0.0, near], rtol=1e-14)
    curve = pb.grad(lambda x: np.sum(slope(x)))(x)
    np.testing.assert_allclose(curve, [0.0, 2 / np.pi, 0.0, sign * (f(0, 0.5) - f(1, 0.5) / 0.5)], atol=1e-12)
    assert pb.grad(pb.grad(lambda t: f(0, t)))(0.0) == 0.0


def test_complex_operands_without_a_rule_are_named():
    for f in (lambda x: special.ive(1.0, x), special.psi):
        with pytest.raises(pb.NotDifferentiableError, match="of complex numbers has no derivative here"):
            pb.grad(lambda x, f=f: np.abs(f(x)))(0.3 + 0.2j)
