"""The commands of the command line: demos, functions of yours, what is registered.

May import: adopting, watching, shapes_only, words, rules, policies, choosing, memory, transforms, testing.gradients,
testing.primitives, pictures, inspect, profiling, planning, reports, demos.
"""
