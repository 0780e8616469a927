"""What a primitive declares: declaration, catalogue, record layouts, generated code, a cotangent brought to its primal.

May import: words, travelling.
May be imported by: recording, primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing,
primitives.selecting, primitives.curves, memory, tracing, replay, exact_budget, shadow, staging, continued_sums,
staged_replay, plain_programs, staged_functions, loops, staged_pulls, staged_marks, marks, transforms, sparsity,
solving, testing.primitives, inspect, commands, adopting, adopted_loops, resuming, the public faces.
"""
