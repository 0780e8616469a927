"""Primitives that work element by element: the table of one-line rules, operators, complex parts, rounding.

May import: words, rules, recording, primitives.shared, primitives.shaping.
"""
