"""Which policy to take: forecasts of many from one run, in bytes and seconds.

May import: watching, shapes_only, words, optimal_schedules, scheduling, policies, choosing, memory, transforms,
inspect, profiling.
"""
