"""Programs that show the library at work: a wave inversion, data assimilation, digits.

May import: watching, words, policies, loops, marks, transforms, scaling, inspect, profiling.
"""
