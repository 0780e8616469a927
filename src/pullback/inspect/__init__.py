"""What people look at: graphs, saved values, plans, profiles, coverage, dependencies.

May import: replay, plain, watching, hollow, words, rules, machine, pictures, policies, recording, primitives.shaping,
primitives.elementwise, primitives.selecting, memory, tracing, loops, transforms, sparsity, testing.comparing,
testing.gradients.
May be imported by: planning, reports, demos, commands, the public faces.
"""
