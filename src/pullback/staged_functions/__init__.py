"""Calls that repeat, as generated functions: functions that are staged.

May import: words, travelling, rules, recording, primitives.selecting, memory, tracing, shadow, staging,
accumulating_reverses, bodies.
May be imported by: staged_pulls, nested_derivatives, staged_marks, transforms, the public faces.
"""
