"""What everything speaks: exceptions, array specs, digests, structures, byte sizes, call sites, entry points.

May import: NumPy, attrs, optree and xxhash alone.
May be imported by: backends, travelling, rules, optima, graphs, machine, policies, choosing, recording, stores,
primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing, primitives.selecting,
primitives.curves, hollow, watching, memory, tracing, bodies, replay, exact, shadow, statements, staging, onward,
patterns, plain, calls, called, loops, resuming, repeated, marked, transforms, sparsity, solving, scaling,
testing.comparing, testing.gradients, testing.primitives, testing.policies, pictures, inspect, planning, reports,
demos, commands, adopting, adjoints, the public faces.
"""
