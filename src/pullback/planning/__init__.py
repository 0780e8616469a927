"""Which policy to take: forecasts of many from one run, in bytes and seconds.

May import: watching, hollow, words, optima, machine, policies, choosing, memory, loops, transforms, inspect.
May be imported by: reports, commands, the public faces.
"""
