"""The programs of NPBench (github spcl/npbench), unmodified, through ``pb.adopt``: the gradient of a weighted sum of
all outputs, by all floating arguments, beside the original alone; ``jacobi_2d`` also by hand and by JAX.

    python benchmarks/bench_npbench.py CHECKOUT [--only PROGRAM ...] [--seconds 30] [--json PATH]

The sizes are those of the preset S. A program that takes longer than ``--seconds`` is stopped, and the row says so.
"""

import argparse
import importlib.util
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, compare, one_thread, print_table, write_json

import pullback as pb

Function = Callable[..., Any]


def loaded(path: Path) -> Any:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(f"npbench_{path.stem}", path)
    assert spec is not None and spec.loader is not None  # a file that is there
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(out: Any) -> bool:
    """Whether an output is floating or complex."""
    return np.asarray(pb.value(out)).dtype.kind in "fc"


def copies(values: Any) -> list[Any]:
    """Arguments that a call may write to."""
    return [value.copy() if isinstance(value, np.ndarray) else value for value in values]


def problem(checkout: Path, name: str) -> tuple[list[Any], list[int], Function, Path, str]:
    """The arguments of a program, the places of the floating ones, its outputs from what it was given and has returned,
    its file, and its function."""
    info = json.loads((checkout / "bench_info" / f"{name}.json").read_text(encoding="utf-8"))["benchmark"]
    folder = checkout / "npbench" / "benchmarks" / info["relative_path"]
    values = dict(info["parameters"]["S"])
    if info.get("init"):
        init = info["init"]
        made = getattr(loaded(folder / f"{info['module_name']}.py"), init["func_name"])(*[
            values[key] for key in init["input_args"]
        ])
        names = init["output_args"]
        values |= dict(zip(names, made if len(names) > 1 else (made,), strict=True))
    keys = info["input_args"]
    args = [values[key] for key in keys]
    written = [k for k, key in enumerate(keys) if key in info["output_args"]]

    def outputs(given: Any, returned: Any) -> list[Any]:
        found = [given[k] for k in written]
        found += [] if returned is None else list(returned) if isinstance(returned, tuple | list) else [returned]
        return [out for out in found if numbers(out)]

    places = [k for k, value in enumerate(args) if np.asarray(value).dtype.kind in "fc"]
    return args, places, outputs, folder / f"{info['module_name']}_numpy.py", info["func_name"]


def candidates(checkout: Path, name: str) -> dict[str, Function]:
    """The original, and the gradient."""
    args, places, outputs, path, function = problem(checkout, name)
    original, copy = getattr(loaded(path), function), getattr(pb.adopt(path), function)
    taken = copies(args)
    draw = np.random.default_rng(1)
    weights = [draw.normal(size=np.shape(out)) for out in outputs(taken, original(*taken))]

    def total(*theta: Any) -> Any:
        given = copies(args)
        for k, value in zip(places, theta, strict=True):
            given[k] = value
        outs = outputs(given, copy(*given))
        return sum(np.sum(w * (np.real(out) + np.imag(out))) for w, out in zip(weights, outs, strict=True))

    gradient = pb.grad(total, argnums=tuple(range(len(places))))
    return {
        "original": lambda: original(*copies(args)),
        "gradient": lambda: gradient(*copies([args[k] for k in places])),
    }


def stencil(checkout: Path) -> dict[str, Function]:
    """The gradient of the sum of ``A`` of jacobi_2d by ``A`` and ``B``: adopted, by hand, by JAX."""
    import jax  # noqa: PLC0415 - for this alone
    import jax.numpy as jnp  # noqa: PLC0415

    jax.config.update("jax_enable_x64", True)
    (steps, a, b), _, _, path, function = problem(checkout, "jacobi_2d")
    copy = getattr(pb.adopt(path), function)
    of_jax = getattr(loaded(path.with_name("jacobi_2d_jax.py")), function)

    def total(a: Any, b: Any) -> Any:
        copy(steps, a, b)
        return np.sum(a)

    ours = pb.grad(total, argnums=(0, 1))
    theirs = jax.jit(jax.grad(lambda a, b: jnp.sum(of_jax(steps, a, b)[0]), argnums=(0, 1)))
    found: dict[str, Any] = {
        "pullback": lambda: ours(a.copy(), b.copy()),
        "hand": lambda: by_hand(steps, a),
        "jax": lambda: jax.block_until_ready(theirs(a, b)),
    }
    for other in ("hand", "jax"):
        for x, y in zip(found["pullback"](), found[other](), strict=True):
            np.testing.assert_allclose(x, np.asarray(y), rtol=1e-9, atol=1e-9)
    return found


def by_hand(steps: int, a: Any) -> tuple[Any, Any]:
    """The same: the program is linear, so nothing is kept."""
    of_a, of_b = np.ones_like(a), np.zeros_like(a)
    for _ in range(1, steps):
        spread(of_a, of_b)
        spread(of_b, of_a)
    return of_a, of_b


def spread(source: Any, target: Any) -> None:
    """The inner cotangents of a mean of five neighbours go to these."""
    part = 0.2 * source[1:-1, 1:-1]
    source[1:-1, 1:-1] = 0.0
    for rows, columns in ((1, 1), (1, 0), (1, 2), (2, 1), (0, 1)):
        height, width = source.shape
        target[rows : height - 2 + rows, columns : width - 2 + columns] += part


class TooLongError(Exception):
    """A program takes longer than it may."""


def stop(*_: Any) -> None:
    raise TooLongError


def row(checkout: Path, name: str, seconds: int) -> Row:
    """What a program costs."""
    signal.alarm(seconds)
    try:
        if not problem(checkout, name)[1]:
            return {"program": name, "remark": "no floating argument"}
        found = compare(candidates(checkout, name), rounds=3, least_seconds=0.01)
        times = {f"{result.name}_ms": result.seconds * 1e3 for result in found}
        return {"program": name, **times, "ratio": found.ratio("gradient"), "remark": ""}
    except TooLongError:
        return {"program": name, "remark": f"stopped after {seconds} s"}
    except Exception as error:  # noqa: BLE001 - the others go on
        return {"program": name, "remark": f"{type(error).__name__}: {error}"[:100]}
    finally:
        signal.alarm(0)


def main() -> None:
    parser = argparse.ArgumentParser(description="NPBench's programs")
    parser.add_argument("checkout", type=Path, help="a checkout of NPBench")
    parser.add_argument("--only", nargs="+", help="these programs alone")
    parser.add_argument("--seconds", type=int, default=30, help="after which a program is stopped (30)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the table as JSON")
    options = parser.parse_args()
    one_thread()
    signal.signal(signal.SIGALRM, stop)
    names = options.only or sorted(path.stem for path in (options.checkout / "bench_info").glob("*.json"))
    rows: list[Row] = []
    for name in names:
        rows.append(row(options.checkout, name, options.seconds))
        print(rows[-1], file=sys.stderr)
    if "jacobi_2d" in names:
        rows += compare(stencil(options.checkout), rounds=5, baseline="hand", labels={"program": "jacobi_2d"}).rows()
    print_table(rows)
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
