"""Primitives that choose elements: indexing, where, sorting, sets, filling by place.

May import: words, rules, recording, primitives.shared, primitives.shaping, primitives.elementwise.
"""
