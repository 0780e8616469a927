"""The report on a function: one page of its own with the curve, the timeline, what is saved, the schedules, the source.

May import: watching, words, policies, inspect, profiling, planning, transforms.
"""
