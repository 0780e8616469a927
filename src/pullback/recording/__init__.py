"""How a program becomes a tape: handles, records, views and writes, what crosses between traces, what is refused.

May import: words, rules.
May be imported by: primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing,
primitives.selecting, primitives.curves, stores, memory, tracing, bodies, replay, exact_budget, shadow, statements,
staging, continued_sums, staged_replay, plain_programs, staged_functions, nested_derivatives, loops, resuming,
staged_pulls, staged_marks, marks, transforms, sparsity, solving, pictures, inspect, adopting, adopted_loops, profiling,
the public faces.
"""
