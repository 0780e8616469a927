"""What clocks say of a run: the seconds of its phases, and how far it is.

May import: words, scheduling.machine, memory.
"""
