"""What everything speaks: exceptions, array specs, digests, structures, byte sizes, call sites, entry points.

May import: NumPy, attrs, optree and xxhash alone.
May be imported by: travelling, rules, optimal_schedules, graph_schedules, scheduling, policies, choosing, recording,
stores, primitives.shared, primitives.shaping, primitives.elementwise, primitives.reducing, primitives.selecting,
primitives.curves, shapes_only, watching, memory, tracing, bodies, replay, exact_budget, shadow, staging,
continued_sums, staged_replay, plain_programs, staged_functions, nested_derivatives, loops, resuming,
staged_pulls, staged_marks, marks, transforms, sparsity, solving, scaling, testing.comparing, testing.gradients,
testing.primitives, testing.policies, pictures, inspect, profiling, planning, reports, demos, commands, adopting,
adopted_loops, the public faces.
"""
