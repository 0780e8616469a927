"""Other people's programs, run as they are: a second copy of their modules, whose arrays can hold traced values.

May import: words, rules, recording, primitives.shaping, memory, tracing, adopting.loops, adopting.kinds.
"""
