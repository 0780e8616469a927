"""Programs that show the library at work: a wave inversion, data assimilation, digits.

May import: instruments.watching, words, policies, loops.functions, programs.marks, transforms.derivatives, scaling,
instruments.inspect, instruments.profiling.
"""
