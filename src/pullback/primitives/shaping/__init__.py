"""Primitives that move elements and compute none: reshaping, joining, windows, padding, editing, creation, ranges.

May import: words, rules, recording, primitives.shared.
"""
