"""Operations that repeat, as generated functions: the statements that compute a step, where values lie, their text.

May import: words, backends, rules, recording, primitives.selecting, memory, shadow.
May be imported by: patterns, plain, calls, loops, repeated.
"""
