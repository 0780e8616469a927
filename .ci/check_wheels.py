"""Checks on the built wheels, for .ci/run: what they contain, a gradient from them, and what is said where an extra
is missing."""

import subprocess
import sys
import zipfile
from pathlib import Path

NEEDED = {
    "pullback-": (
        *(
            "pullback/__init__.py",
            "pullback/py.typed",
            "pullback/cli.py",
            "pullback_pytest/__init__.py",
            "pullback/demos/wave",
            "licenses/LICENSE",
            "points.txt",
        ),
        *("pullback/error_pages/index.md", "pullback/error_pages/PB201.md"),
        *("pullback/instruments/reports/page.html", "pullback/instruments/reports/page.js"),
        *("pullback/instruments/reports/page.css",),
        *("pullback/instruments/reports/uplot/uPlot.iife.min.js", "pullback/instruments/reports/uplot/LICENSE"),
    ),
    "pullback_autograd-": ("pullback_autograd/scipy/stats/norm.py", "pullback_autograd/py.typed", "points.txt"),
    "pullback_dask-": ("pullback_dask/sums.py", "pullback_dask/py.typed", "points.txt"),
    "pullback_fft-": ("pullback_fft/__init__.py", "pullback_fft/py.typed", "points.txt"),
    "pullback_jax-": ("pullback_jax/__init__.py", "pullback_jax/py.typed"),
    "pullback_linalg-": ("pullback_linalg/__init__.py", "points.txt"),
    "pullback_mpi-": ("pullback_mpi/__init__.py", "pullback_mpi/py.typed", "points.txt"),
    "pullback_numba-": ("pullback_numba/__init__.py", "pullback_numba/py.typed", "points.txt"),
    "pullback_scipy-": ("pullback_scipy/linalg.py", "pullback_scipy/py.typed", "points.txt"),
    "pullback_torch-": ("pullback_torch/__init__.py", "pullback_torch/py.typed"),
}


def contents(folder: str) -> None:
    """Exit with the missing entry unless each wheel in ``folder`` holds what its users need, and nothing outside its
    package."""
    wheels = sorted(Path(folder).glob("*.whl"))
    for start, needed in NEEDED.items():
        found = [w for w in wheels if w.name.startswith(start)]
        if len(found) != 1:
            sys.exit(f"expected one wheel {start}*.whl in {folder}, found {[w.name for w in found]}")
        names = zipfile.ZipFile(found[0]).namelist()
        for entry in needed:
            if not any(entry in name for name in names):
                sys.exit(f"{found[0].name} has no {entry}: see [tool.hatch.build.targets.wheel] in its pyproject.toml")
        package = start.removesuffix("-")
        stray = [n for n in names if not n.startswith((f"{package}/", f"{package}-", f"{package}_pytest/"))]
        if stray:
            sys.exit(f"{found[0].name} holds files outside the package {package}: {stray[:5]}")
    print("contents:", *(w.name for w in wheels))


def gradients() -> None:
    """Exit unless a two-line gradient of the core and one through each plugin, of matmul, of fft and by autograd's
    names, equal the exact ones."""
    import numpy as np  # noqa: PLC0415 - `contents` runs in an environment without pullback

    import pullback as pb  # noqa: PLC0415 - as above

    x = np.arange(3.0)
    got = pb.grad(lambda x: np.sum(np.sin(x) * x))(x)
    print("gradient of sum(sin(x) * x) at", x, "is", got)
    np.testing.assert_allclose(got, np.cos(x) * x + np.sin(x), rtol=1e-15)

    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    got_a, got_b = pb.grad(lambda a, b: np.sum(a @ b), argnums=(0, 1))(a, b)
    print("gradients of sum(a @ b) are of shapes", got_a.shape, got_b.shape)
    np.testing.assert_array_equal(got_a, np.ones((2, 4)) @ b.T)
    np.testing.assert_array_equal(got_b, a.T @ np.ones((2, 4)))

    got = pb.grad(lambda x: np.sum(np.abs(np.fft.fft(x)) ** 2))(x)
    print("gradient of sum(abs(fft(x))**2) at", x, "is", got)
    np.testing.assert_allclose(got, 2 * x.size * x, atol=1e-13)

    from scipy import special  # noqa: PLC0415 - as above

    from pullback_scipy import linalg  # noqa: PLC0415 - as above

    got = pb.grad(lambda x: np.sum(special.erf(linalg.solve(np.diag(x + 1), x))))(x)
    expected = 2 / np.pi**0.5 * np.exp(-((x / (x + 1)) ** 2)) / (x + 1) ** 2
    print("gradient of sum(erf(x / (x + 1))) at", x, "is", got)
    np.testing.assert_allclose(got, expected, rtol=1e-13)

    from distributed import Client  # noqa: PLC0415 - as above

    from pullback_dask import SumOverItems  # noqa: PLC0415 - as above

    with (
        Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client,
        SumOverItems(lambda x, item: np.sum(x * x) * item, [1.0, 2.0, 3.0], client=client) as total,
    ):
        value, got = total.value_and_grad(x)
    print("a sum over items on Dask is", value, "its gradient", got)
    np.testing.assert_array_equal(got, 12 * x)

    def loss(u: np.ndarray, staging: str) -> object:
        return np.sum(pb.fori_loop(0, 5, lambda k, u: (u * 0.5 + u / 3.0) * u, u, staging=staging))

    many = np.linspace(0.0, 1.0, 2000)
    np.testing.assert_array_equal(pb.grad(loss)(many, "numba"), pb.grad(loss)(many, "off"))
    print("gradient of a loop staged by numba: the same bits")

    import pullback_autograd.numpy as anp  # noqa: PLC0415 - as above
    from pullback_autograd import elementwise_grad  # noqa: PLC0415 - as above

    got = elementwise_grad(anp.tanh)(x)
    print("autograd's elementwise_grad(tanh) at", x, "is", got)
    np.testing.assert_allclose(got, 1 - np.tanh(x) ** 2, rtol=1e-14)


def bare(program: str) -> None:
    """Exit unless ``program``, installed without extras, fails and names the extra to install."""
    done = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode == 0 or "pullback[" not in said or "Traceback" in said:
        sys.exit(
            f"without its extra, {program} must fail and name it, as in pullback[cli]; it exited {done.returncode} "
            f"saying:\n{said}"
        )
    print("without the extra:", said.strip())


if __name__ == "__main__":
    {"contents": contents, "gradients": gradients, "bare": bare}[sys.argv[1]](*sys.argv[2:])
