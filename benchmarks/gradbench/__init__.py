"""A tool for GradBench (github gradbench/gradbench): its evaluations as NumPy programs, differentiated by ``pullback``.

    python -m benchmarks.gradbench

answers the messages of an evaluation, one JSON object a line, from standard input on standard output. The protocol is
that of GradBench's CONTRIBUTING.md; nothing of GradBench is part of this repository. ``bench_gradbench.py`` runs
the evaluations of a checkout, and the tools beside which the figures are to be seen.
"""
