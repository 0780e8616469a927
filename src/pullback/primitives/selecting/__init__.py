"""Primitives that choose elements: indexing, where, sorting, sets, filling by place.

May import: words, rules, recording, primitives.shared, primitives.shaping, primitives.elementwise.
May be imported by: tracing, shadow, staging, patterns, plain, calls, sparsity, inspect, repeated, the public faces.
"""
