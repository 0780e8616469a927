"""Primitives that choose elements: indexing, where, sorting, sets, filling by place.

May import: words, rules, recording, primitives.shared, primitives.shaping, primitives.elementwise.
May be imported by: tracing, shadow, staging, staged_replay, sparsity, inspect, staged_pulls, the public faces.
"""
