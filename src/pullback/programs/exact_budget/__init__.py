"""What ``Budget(exact=True)`` does: which values of a plain program are held, which are computed again, and when.

May import: words, rules, scheduling.graphs, recording, memory, programs.replay.
"""
