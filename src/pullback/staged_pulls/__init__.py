"""Linear maps that are applied again and again, as generated functions: pulls and their derivatives, for many seeds.

May import: words, backends, rules, recording, primitives.selecting, memory, tracing, shadow, statements, staging,
bodies, staged_functions.
May be imported by: transforms.
"""
