"""Calls that repeat, as generated functions: functions that are staged.

May import: words, travelling, rules, recording, primitives.selecting, memory, tracing, shadow, staging, onward,
bodies.
May be imported by: repeated, called, marked, transforms, the public faces.
"""
