"""Replay of plain code by generated functions: steps that do the same share the function that executes them again.

May import: words, backends, rules, recording, primitives.selecting, memory, staging.shadow, staging.statements,
staging.generated, programs.replay.
"""
