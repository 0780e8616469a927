"""Checks of a memory policy: its schedule, its bits, on programs of every kind.

May import: words, scheduling.machine, policies, loops.functions, programs.marks, transforms.derivatives,
testing.comparing.
"""
