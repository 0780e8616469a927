"""What people look at: graphs, saved values, plans, profiles, coverage, dependencies.

May import: replay, plain_programs, watching, shapes_only, words, rules, scheduling, pictures, policies, recording,
primitives.shaping, primitives.elementwise, primitives.selecting, memory, tracing, loops, transforms, sparsity,
testing.comparing, testing.gradients.
May be imported by: planning, reports, demos, commands, the public faces.
"""
