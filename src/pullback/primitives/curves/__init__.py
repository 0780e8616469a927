"""Primitives on sampled functions: calculus, interpolation, polynomials, fitting.

May import: words, rules, recording, primitives.shared, primitives.shaping, primitives.reducing.
"""
