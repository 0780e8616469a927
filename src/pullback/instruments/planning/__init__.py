"""Which policy to take: forecasts of many from one run, in bytes and seconds.

May import: instruments.watching, shapes_only, words, scheduling.optimal, scheduling.machine, policies, choosing,
memory, transforms.derivatives, instruments.inspect, instruments.profiling.
"""
