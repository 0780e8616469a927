"""What executes recorded operations again: their entries, what a replay has to compute, and the replays.

May import: words, rules, recording, memory.
"""
