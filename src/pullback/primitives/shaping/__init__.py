"""Primitives that move elements and compute none: reshaping, joining, windows, padding, editing, creation, ranges.

May import: words, rules, recording, primitives.shared.
May be imported by: primitives.elementwise, primitives.reducing, primitives.selecting, primitives.curves, tracing,
shadow, inspect, adopting, the public faces.
"""
