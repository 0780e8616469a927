"""Operations that repeat, as generated functions: the forward and the reverse of a step, where values lie, their text.

May import: words, backends, rules, recording, primitives.selecting, memory, staging.shadow, staging.statements.
"""
