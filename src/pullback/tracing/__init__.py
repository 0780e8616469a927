"""What users hold and NumPy calls: the tracer, NumPy's hooks, opening and closing a trace.

May import: words, rules, choosing, recording, primitives.shaping, primitives.selecting, memory.
"""
