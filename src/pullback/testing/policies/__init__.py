"""Checks of a memory policy: its schedule, its bits, on programs of every kind.

May import: words, scheduling, policies, loops, marks, transforms, testing.comparing.
"""
