"""The report on a function: one page of its own with the curve, the timeline, what is saved, the schedules, the source.

May import: instruments.watching, words, policies, instruments.inspect, instruments.profiling, instruments.planning,
transforms.derivatives.
"""
