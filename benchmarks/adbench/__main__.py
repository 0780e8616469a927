"""One objective of ADBench on one of its input files: value, norm of the derivative, seconds.

    python -m benchmarks.adbench gmm FILE [--replicate-point]
    python -m benchmarks.adbench ba FILE
    python -m benchmarks.adbench lstm FILE
    python -m benchmarks.adbench hand FILE [--model DIRECTORY]

For ``ba`` and ``hand`` the value is the 2-norm of the residuals, and the norm is the Frobenius norm of the Jacobian,
compressed as ADBench has it.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adbench import ba, gmm, hand, lstm, reading

import pullback as pb


def norm(*parts: Any) -> float:
    """The 2-norm of all numbers in these arrays."""
    return float(np.sqrt(sum(np.vdot(part, part) for part in parts)))


def read(options: argparse.Namespace) -> Any:
    """The problem in the file."""
    if options.objective == "gmm":
        return reading.read_mixture(options.file, replicate_point=options.replicate_point)
    if options.objective == "hand":
        return reading.read_hand(options.file, options.model)
    return reading.read_bundle(options.file) if options.objective == "ba" else reading.read_sequence(options.file)


def run(objective: str, problem: Any) -> tuple[float, float]:
    """The value and the norm of the derivative."""
    if objective == "ba":
        errors, blocks, of_weights = ba.value_and_jacobian(problem)
        return norm(*errors), norm(blocks, of_weights)
    if objective == "hand":
        errors, jacobian = hand.value_and_jacobian(problem)
        return norm(errors), norm(jacobian)
    value, gradient = (gmm if objective == "gmm" else lstm).value_and_gradient(problem)
    return value, norm(*gradient)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.adbench", description="one objective of ADBench on one of its input files"
    )
    parser.add_argument("objective", choices=("gmm", "ba", "lstm", "hand"))
    parser.add_argument("file", type=Path, help="an input file in ADBench's format")
    parser.add_argument(
        "--replicate-point", action="store_true", help="gmm: the file holds one point that stands for all n"
    )
    parser.add_argument(
        "--model",
        type=Path,
        metavar="DIRECTORY",
        help="hand: bones.txt, vertices.txt, triangles.txt (model beside FILE)",
    )
    options = parser.parse_args(words)
    try:
        problem = read(options)
    except pb.InputFileError as error:
        print(error, file=sys.stderr)
        return 1
    run(options.objective, problem)  # warms up
    began = time.perf_counter()
    value, slope = run(options.objective, problem)
    seconds = time.perf_counter() - began
    print(f"value {value:.15g}\nnorm of the derivative {slope:.15g}\nseconds {seconds:.3g}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
