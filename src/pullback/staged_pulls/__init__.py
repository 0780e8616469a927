"""Pulls and their derivatives that are applied again and again, as generated functions, for one seed or for many.

May import: words, backends, rules, recording, primitives.selecting, memory, tracing, shadow, statements, staging,
bodies, staged_functions.
"""
