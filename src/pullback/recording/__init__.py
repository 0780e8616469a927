"""How a program becomes a tape: handles, records, views and writes, what crosses between traces, what is refused.

May import: words, rules.
May be imported by: primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing,
primitives.selecting, primitives.curves, stores, memory, tracing, bodies, replay, exact, shadow, statements, staging,
onward, patterns, plain, calls, called, loops, resuming, repeated, marked, transforms, sparsity, solving, pictures,
inspect, adopting, adjoints, the public faces.
"""
