"""What people look at: graphs, saved values, dependencies, coverage, the text of stages.

May import: staging.generated, adopting.loops, programs.replay, staging.replay, programs.plain, shapes_only, words,
rules, staging.marks, programs.marks, instruments.pictures, policies, recording, primitives.shaping,
primitives.elementwise, primitives.selecting, memory, tracing, loops.functions, transforms.derivatives,
transforms.sparsity.
"""
