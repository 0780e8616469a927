"""Replay of plain code by generated functions: steps that do the same share the function that executes them again.

May import: words, backends, rules, recording, primitives.selecting, memory, shadow, statements, staging,
replay.
"""
