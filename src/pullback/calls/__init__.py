"""Calls that repeat, as generated functions: functions that are staged, pulls of one record.

May import: words, rules, recording, primitives.selecting, memory, tracing, shadow, staging, bodies.
May be imported by: transforms, the public faces.
"""
