"""What serves in the place of a function of SciPy's, or of another library, that was given a tracer: one table from
names to remedies, for messages. None of these libraries is imported here."""

from collections.abc import Sequence

from pullback.words.errors import PluginError
from pullback.words.plugins import stand_in

LIBRARIES = ("scipy", "numpy.ma", "pandas", "matplotlib", "sklearn", "torch", "jax", "xarray")
"""Packages whose own lines are passed over where a message names the user's."""

_SAME_LINALG = "solve inv pinv det lstsq cholesky qr svd svdvals eig eigh eigvals eigvalsh norm".split()
_PRIMITIVE = "declare it as a primitive with its VJP rule (docs/primitives.md)"
_ROOT = "write pullback.custom_root(f, x0, solve, tangent_solve), which may call it in solve (docs/implicit.md)"
_MINIMUM = (
    "where the minimised function is to be differentiated, write pullback.fun_and_grad(f, like=x0) and call it outside "
    "(docs/optimise.md); where the minimum is, pullback.custom_root of the gradient"
)
_LINEAR = "write pullback.custom_linear_solve(matvec, b, solve), which may call it in solve (docs/wrap-a-solver.md)"
_STEPS = "write the recurrence with pullback.scan"
_WINDOWS = "write it with np.pad and slices, or np.lib.stride_tricks.sliding_window_view"
_NODES = "take plain nodes: t, w = np.polynomial.legendre.leggauss(20), then np.sum(w * f(t))"

_BY_NAME = {
    **dict.fromkeys(_SAME_LINALG, "write np.linalg.{name}"),
    **dict.fromkeys("solve_triangular cho_solve lu_solve solve_banded solveh_banded".split(), "write np.linalg.solve"),
    **dict.fromkeys(("cho_factor", "lu_factor"), "write np.linalg.solve for what it solves"),
    "block_diag": "write np.block",
    **dict.fromkeys("solve_ivp odeint ode RK23 RK45 DOP853 Radau BDF LSODA".split(), "write pullback.odeint(f, y0, t)"),
    **dict.fromkeys("quad quad_vec fixed_quad quadrature romberg dblquad tplquad nquad".split(), _NODES),
    **dict.fromkeys(("trapezoid", "trapz"), "write np.trapezoid"),
    "simpson": "write np.sum(w * y) with plain weights w, or np.trapezoid",
    "cumulative_trapezoid": "write np.cumsum((y[1:] + y[:-1]) / 2 * dx)",
    **dict.fromkeys(
        "root root_scalar fsolve brentq brenth bisect ridder newton toms748 newton_krylov broyden1".split(), _ROOT
    ),
    "fixed_point": "write pullback.fixed_point",
    **dict.fromkeys(
        "minimize minimize_scalar fmin fmin_bfgs fmin_cg fmin_l_bfgs_b fmin_ncg basinhopping shgo "
        "differential_evolution dual_annealing".split(),
        _MINIMUM,
    ),
    **dict.fromkeys(
        "least_squares leastsq curve_fit".split(),
        "where the residuals are to be differentiated, give it jac=pullback.jacobian(f) and call it outside; where the "
        "solution is, write np.linalg.lstsq for a linear fit, or pullback.custom_root of the gradient",
    ),
    **dict.fromkeys(("spsolve", "splu", "spilu", "factorized", "spsolve_triangular"), _LINEAR),
    **dict.fromkeys("cg cgs bicg bicgstab gmres lgmres minres qmr gcrotmk tfqmr lsqr lsmr".split(), _LINEAR),
    **dict.fromkeys(("convolve", "fftconvolve", "oaconvolve"), "write np.convolve"),
    "correlate": "write np.correlate",
    **dict.fromkeys(("lfilter", "sosfilt", "filtfilt", "sosfiltfilt", "lsim", "dlsim"), _STEPS),
    "interp1d": "write np.interp(new, xp, fp)",
    "logsumexp": "write np.log(np.sum(np.exp(x - m))) + m with m = np.max(x), or np.logaddexp.reduce(x)",
    "softmax": "write np.exp(x - np.max(x)), divided by its sum",
    "log_softmax": "write x - np.logaddexp.reduce(x)",
    "expit": "write 1 / (1 + np.exp(-x))",
    "logit": "write np.log(x / (1 - x))",
    "xlogy": "write x * np.log(y)",
    **dict.fromkeys(("i0", "sinc"), "write np.{name}"),
    **dict.fromkeys(("cdist", "pdist"), "write np.linalg.norm(x[:, None] - y[None], axis=-1)"),
}
_BY_PACKAGE = {
    "scipy.linalg": _PRIMITIVE,
    "scipy.integrate": "write pullback.odeint(f, y0, t) for equations, sums over plain nodes for integrals",
    "scipy.optimize": _ROOT,
    "scipy.interpolate": "write np.interp(new, xp, fp); a spline is linear in its values: multiply by its plain matrix",
    "scipy.special": _PRIMITIVE,
    "scipy.signal": f"write np.convolve, or {_STEPS.removeprefix('write ')}",
    "scipy.fft": "write np.fft.{name}",
    "scipy.fftpack": "write np.fft.{name}, whose rfft does not pack its parts",
    "scipy.ndimage": _WINDOWS,
    "scipy.sparse": "write A @ x for the product by a sparse array, which holds plain numbers, k * A for k times it; "
    "one of traced numbers v at rows i and columns j is csr_matrix((v, (i, j)), shape) in adopted code and in "
    "the namespace of a plugin for SciPy; its product by x is y = np.zeros(n, like=v), then np.add.at(y, i, v * x[j])",
    "scipy.stats": "write the formula of the density with NumPy",
    "scipy.spatial": "write the distances with NumPy",
    "scipy": f"write A @ x for the product by a sparse array, else {_PRIMITIVE}",
    "numpy.ma": "keep the mask as an array of its own: np.where(mask, other, x)",
    "pandas": "a table holds plain numbers: compute with arrays, df.to_numpy() for what a table holds",
    "matplotlib": "draw pullback.value(x), or what the differentiated function returns",
    "torch": "take t.detach().numpy() before, which is a plain array, and compute with that",
    "jax": "take np.asarray(a) before, which is a plain array, and compute with that",
    "xarray": "take a.to_numpy() before, which is a plain array, and compute with that",
    "sklearn": f"write the formula with NumPy, or {_PRIMITIVE}",
}
_WRAPPERS = ("wrapper", "_wrapped", "new_func", "inner", "func", "f", "method", "new_method")
"""What functions in between are called that decorators and other machinery put there."""


def named_call(written: str, calls: Sequence[tuple[str, str]]) -> str:
    """The dotted name of the function that a user has called: ``scipy.integrate.solve_ivp``.

    ``written`` is what stands in the user's line, ``calls`` are module and name of the library's functions under way,
    the outermost first. What is written in full is taken, then a name that the table has, then the outermost.
    """
    modules = [_public(module) for module, _ in calls]
    package = next((module for module in modules if "." in module), modules[0])
    if written.startswith(f"{package.partition('.')[0]}."):
        return written
    names = [name for _, name in calls] if package.startswith("scipy") else [calls[0][1]]
    chosen = next((name for name in names if name in _BY_NAME), None)
    if chosen is None:
        chosen = next((name for name in names if name.isidentifier() and name not in _WRAPPERS and name[0] != "_"), "")
    if not package.startswith("scipy"):
        return f"{package}.{chosen}".rstrip(".")
    return f"{package}.{chosen or written.rpartition('.')[2]}".rstrip(".")


def remedy(qualified: str) -> str:
    """What to write in the place of a function or a class of another library."""
    package, name = qualified, qualified.rpartition(".")[2]
    text = _BY_NAME.get(name) if qualified.startswith("scipy.") and "ndimage" not in qualified else None
    while text is None and package:
        text = _BY_PACKAGE.get(package)
        package = package.rpartition(".")[0]
    text = (text or "take np.asarray(a) before, which is a plain array, and compute with that").format(name=name)
    return text + _mirrored(qualified)


def _mirrored(qualified: str) -> str:
    """The function of the same name in the place of this one, where an installed plugin has a namespace with it."""
    package, _, name = qualified.rpartition(".")
    try:
        module = stand_in(package)
    except PluginError:  # no such submodule there
        return ""
    return f", or call {module.__name__}.{name}, which has a derivative" if name in vars(module or object) else ""


def _public(module: str) -> str:
    """The public package that a module stands in: scipy.optimize for scipy.optimize._minimize."""
    parts = module.split(".")
    for k, part in enumerate(parts):
        if part.startswith("_"):
            return ".".join(parts[:k])
    return ".".join(parts[:2]) if parts[0] in ("scipy", "numpy") else parts[0]
