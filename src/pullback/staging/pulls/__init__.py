"""Pulls and their derivatives that are applied again and again, as generated functions, for one seed or for many.

May import: words, backends, rules, recording, primitives.selecting, memory, tracing, staging.shadow,
staging.statements, staging.generated, loops.bodies, staging.calls.
"""
