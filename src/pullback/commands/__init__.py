"""The commands of the command line: demos, functions of yours, what is registered.

May import: adopting.modules, instruments.watching, shapes_only, words, rules, policies, choosing, memory,
transforms.derivatives, testing.gradients, testing.primitives, instruments.pictures, instruments.inspect,
instruments.profiling, instruments.planning, instruments.reports, demos.
"""
