"""What users hold and NumPy calls: the tracer, NumPy's hooks, opening and closing a trace.

May import: words, rules, recording, primitives.shaping, primitives.selecting, memory.
May be imported by: shadow, calls, called, loops, repeated, transforms, sparsity, solving, inspect, adopting, the
public faces.
"""
