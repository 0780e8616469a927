"""The body of a step on handles without values: each operation is compared with those of steps that are known.

May import: words, rules, recording, primitives.shaping, primitives.selecting, memory, tracing.
"""
