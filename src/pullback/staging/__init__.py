"""Steps that repeat, as generated functions: a shadow run compares each step with what is known, statements compute it.

May import: words, backends, rules, recording, primitives.selecting, memory, tracing.
May be imported by: plain, calls, loops.
"""
