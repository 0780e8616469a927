"""Functions and arrays of other libraries in a differentiated program: each is refused by its name, with what serves
in its place."""

# ruff: noqa: PLW0108 - the call must stand in this file, where its expression is read

import numpy as np
import pytest
from tests.programs.wrong import ONE, X, require_told

import pullback as pb

pytest.importorskip("scipy", reason="its functions are what is called")
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, signal, sparse, spatial, special, stats
from scipy.sparse import linalg as sparse_linalg

C, U = pb.ConversionError, pb.UnknownFunctionError
A = sparse.eye_array(3).tocsr()


def solved(x):
    def newton(f, u):
        for _ in range(20):
            u = u - f(u) / (2.0 * u)
        return u

    return np.sum(pb.custom_root(lambda u: u * u - x, np.ones(3), newton, lambda g, y: y / g(np.ones(3))))


def by_linear_solve(x):
    return np.sum(pb.custom_linear_solve(lambda v: 2.0 * v, x, lambda m, b: b / 2.0, symmetric=True))


def logsumexp(x):
    m = np.max(x)
    return np.log(np.sum(np.exp(x - m))) + m


SOFTMAX = np.exp(X - 3.0) / np.sum(np.exp(X - 3.0))
NODES, WEIGHTS = np.polynomial.legendre.leggauss(20)

IN_SCIPY = {
    "solve_ivp": (
        lambda x: integrate.solve_ivp(lambda t, y: -x * y, (0, 1), ONE).y[0, -1],
        C,
        r"integrate\.solve_ivp computes on plain arrays: write pullback\.odeint\(f, y0, t\)",
        lambda x: pb.odeint(lambda y, t: -x * y, ONE, [0.0, 1.0])[-1, 0],
        [-np.exp(-1), 0, 0],
    ),
    "odeint": (
        lambda x: integrate.odeint(lambda y, t: -y, x, [0.0, 1.0])[-1, 0],
        C,
        r"integrate\.odeint.*pullback\.odeint",
        lambda x: pb.odeint(lambda y, t: -y, x, [0.0, 1.0])[-1, 0],
        [np.exp(-1), 0, 0],
    ),
    "quad": (
        lambda x: integrate.quad(lambda t: t * x[0], -1, 1)[0],
        C,
        r"integrate\.quad.*leggauss\(20\), then np\.sum\(w \* f\(t\)\)",
        lambda x: np.sum(WEIGHTS * np.exp(NODES * x[0])),
        [float(np.sum(WEIGHTS * NODES * np.exp(NODES))), 0, 0],
    ),
    "trapezoid": (lambda x: integrate.trapezoid(x), C, r"np\.trapezoid", lambda x: np.trapezoid(x), [0.5, 1, 0.5]),
    "linalg.solve": (
        lambda x: linalg.solve(2 * np.eye(3), x)[0],
        C,
        r"linalg\.solve computes on plain arrays: write np\.linalg\.solve",
        lambda x: np.linalg.solve(2 * np.eye(3), x)[0],
        [0.5, 0, 0],
    ),
    "linalg.inv": (
        lambda x: linalg.inv(np.diag(x))[0, 0],
        C,
        r"write np\.linalg\.inv",
        lambda x: np.linalg.inv(np.diag(x))[0, 0],
        [-1, 0, 0],
    ),
    "cho_solve": (
        lambda x: linalg.cho_solve((np.eye(3), True), x)[0],
        C,
        r"cho_solve.*write np\.linalg\.solve",
        lambda x: np.linalg.solve(np.eye(3), x)[0],
        [1, 0, 0],
    ),
    "expm": (lambda x: linalg.expm(np.diag(x))[0, 0], C, r"linalg\.expm.*declare it as a primitive", None, None),
    "minimize": (
        lambda x: optimize.minimize(lambda p: np.sum((p - x) ** 2), ONE).x[0],
        C,
        r"optimize\.minimize.*pullback\.fun_and_grad.*pullback\.custom_root of the gradient",
        None,
        None,
    ),
    "root": (
        lambda x: optimize.root(lambda u: u * u - x, ONE).x[0],
        C,
        r"root .*pullback\.custom_root",
        solved,
        0.5 / np.sqrt(X),
    ),
    "fsolve": (
        lambda x: optimize.fsolve(lambda u: u * u - x, ONE)[0],
        C,
        r"fsolve .*custom_root",
        solved,
        0.5 / np.sqrt(X),
    ),
    "brentq": (
        lambda x: optimize.brentq(lambda u: u * u - x[0], 0.0, 5.0),
        C,
        r"optimize\.brentq.*pullback\.custom_root",
        solved,
        0.5 / np.sqrt(X),
    ),
    "least_squares": (
        lambda x: optimize.least_squares(lambda p: p - x, ONE).x[0],
        C,
        r"least_squares.*jac=pullback\.jacobian\(f\)",
        None,
        None,
    ),
    "curve_fit": (
        lambda x: optimize.curve_fit(lambda t, a: a * t, X, x)[0][0],
        C,
        r"curve_fit.*np\.linalg\.lstsq",
        None,
        None,
    ),
    "interp1d": (
        lambda x: interpolate.interp1d(X, x)(1.5),
        C,
        r"interpolate\.interp1d.*np\.interp\(new, xp, fp\)",
        lambda x: np.interp(1.5, X, x),
        [0.5, 0.5, 0],
    ),
    "CubicSpline": (lambda x: interpolate.CubicSpline(X, x)(1.5), C, r"CubicSpline.*linear in its values", None, None),
    "a spline, called": (
        lambda x: interpolate.CubicSpline(X, X)(x)[0],
        C,
        r"interpolate\.CubicSpline.*np\.interp",
        None,
        None,
    ),
    "tandg": (
        lambda x: np.sum(special.tandg(x)),
        U,
        r"no primitive for scipy\.special\.tandg; declare it",
        lambda x: np.sum(np.tan(np.deg2rad(x))),
        np.pi / 180 / np.cos(np.deg2rad(X)) ** 2,
    ),
    "logsumexp": (
        lambda x: special.logsumexp(x),
        C,
        r"special\.logsumexp.*np\.logaddexp\.reduce\(x\)",
        lambda x: logsumexp(x) / 2 + np.logaddexp.reduce(x) / 2,
        SOFTMAX,
    ),
    "convolve": (
        lambda x: np.sum(signal.convolve(x, X)),
        C,
        r"signal\.convolve.*write np\.convolve",
        lambda x: np.sum(np.convolve(x, X)),
        6 * ONE,
    ),
    "lfilter": (lambda x: np.sum(signal.lfilter([1.0], [1.0, 0.5], x)), C, r"lfilter.*pullback\.scan", None, None),
    "fft": (
        lambda x: abs(fft.fft(x)[0]),
        C,
        r"fft\.fft computes on plain arrays: write np\.fft\.fft",
        lambda x: abs(np.fft.fft(x)[0]),
        ONE,
    ),
    "spsolve": (
        lambda x: np.sum(sparse_linalg.spsolve(A, x)),
        C,
        r"spsolve.*pullback\.custom_linear_solve",
        by_linear_solve,
        ONE / 2,
    ),
    "cg": (lambda x: sparse_linalg.cg(A, x)[0][0], C, r"cg.*pullback\.custom_linear_solve", by_linear_solve, ONE / 2),
    "gmres": (lambda x: sparse_linalg.gmres(A, x)[0][0], C, r"gmres.*custom_linear_solve", by_linear_solve, ONE / 2),
    "csr_array": (
        lambda x: (sparse.csr_array((x, ([0, 1, 2], [0, 1, 2])), shape=(3, 3)) @ X)[0],
        C,
        r"sparse\.csr_array.*np\.add\.at",
        lambda x: (A @ x)[0],
        [1, 0, 0],
    ),
    "stats": (
        lambda x: np.sum(stats.norm.logpdf(X, loc=x)),
        C,
        r"scipy\.stats\.logpdf.*formula of the density",
        None,
        None,
    ),
    "gaussian_filter": (lambda x: np.sum(ndimage.gaussian_filter(x, 1.0)), C, r"sliding_window_view", None, None),
    "ndimage.convolve": (lambda x: np.sum(ndimage.convolve(x, X)), C, r"ndimage\.convolve.*np\.pad", None, None),
    "cdist": (
        lambda x: np.sum(spatial.distance.cdist(x[None], ONE[None])),
        C,
        r"cdist.*np\.linalg\.norm\(x\[:, None\] - y\[None\], axis=-1\)",
        lambda x: np.sum(np.linalg.norm(x[None][:, None] - ONE[None][None], axis=-1)),
        (X - 1) / np.sqrt(5),
    ),
}


class Tensor:
    """An array of another library, with an arithmetic of its own."""

    __module__ = "torch"
    __array_priority__ = 1000

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array

    def __mul__(self, other):
        return NotImplemented

    __rmul__ = __mul__


class DataFrame(Tensor):
    """A table, which lets what stands above it compute."""

    __module__ = "pandas"


IN_OTHER_LIBRARIES = {
    f"{kind.__name__} {name}": (
        lambda x, kind=kind, use=use: use(kind(2 * ONE), x),
        pb.NotDifferentiableError,
        rf"{kind.__name__} has an arithmetic of its own.*{said}",
        lambda x: np.sum(2 * ONE * x),
        2 * ONE,
    )
    for kind, said in ((Tensor, r"x\.detach\(\)\.numpy\(\)"), (DataFrame, r"x\.to_numpy\(\)"))
    for name, use in {
        "t * x": lambda t, x: np.sum(t * x),
        "x * t": lambda t, x: np.sum(x * t),
        "np.multiply": lambda t, x: np.sum(np.multiply(x, t)),
        "np.dot": lambda t, x: np.dot(t, x),
        "np.where": lambda t, x: np.sum(np.where(x > 0, x, t)),
    }.items()
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_SCIPY)
def test_a_function_of_scipy_is_told_what_serves(name):
    require_told(IN_SCIPY[name])


@pytest.mark.parametrize("name", IN_OTHER_LIBRARIES)
def test_an_array_of_another_library_is_refused_by_name(name):
    require_told(IN_OTHER_LIBRARIES[name])


def test_a_table_of_pandas():
    pandas = pytest.importorskip("pandas", reason="its tables are the operands; stand-ins are tested without it")
    table, column = pandas.DataFrame({"a": X, "b": 2 * X}), pandas.Series(X)
    for use in (
        lambda x: np.sum(table * x[0]),
        lambda x: np.sum(x[0] * table),
        lambda x: np.sum(np.dot(table.T, x)),
        lambda x: np.sum(table.T @ x),
        lambda x: np.sum(x @ table),
        lambda x: np.sum(column * x),
        lambda x: np.sum(x * column),
        lambda x: np.sum(column + x[0]),
        lambda x: column @ x,
        lambda x: pandas.Series(x).sum(),
        lambda x: table.assign(c=x)["c"].sum(),
    ):
        require_told((
            use,
            pb.PullbackError,
            r"(pandas.*df|DataFrame.*x|Series.*x)\.to_numpy\(\)",
            lambda x: np.sum(column.to_numpy() * x),
            X,
        ))


def test_another_name_of_a_function_is_known_by_its_frames():
    solve = integrate.solve_ivp
    require_told((
        lambda x: solve(lambda t, y: -x * y, (0, 1), ONE).y[0, -1],
        C,
        r"scipy\.integrate\.solve_ivp",
        None,
        None,
    ))
