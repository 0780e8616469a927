"""What users hold and NumPy calls: the tracer, NumPy's hooks, opening and closing a trace.

May import: words, rules, choosing, recording, primitives.shaping, primitives.selecting, memory.
May be imported by: shadow, staged_functions, nested_derivatives, loops, staged_pulls, transforms, sparsity, solving,
inspect, adopting, the public faces.
"""
