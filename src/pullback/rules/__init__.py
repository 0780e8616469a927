"""What a primitive declares: declaration, catalogue, record layouts, generated code, a cotangent brought to its primal.

May import: words, travelling.
May be imported by: recording, primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing,
primitives.selecting, primitives.curves, memory, tracing, replay, exact, shadow, staging, onward, patterns, plain,
calls, loops, repeated, marked, transforms, sparsity, solving, testing.primitives, inspect, commands, adopting,
adjoints, the public faces.
"""
