"""What people look at: graphs, saved values, dependencies, coverage, the text of stages.

May import: staging, adopted_loops, replay, staged_replay, plain_programs, shapes_only, words, rules, staged_marks,
marks, pictures, policies, recording, primitives.shaping, primitives.elementwise, primitives.selecting, memory, tracing,
loops, transforms, sparsity.
"""
