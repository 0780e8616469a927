"""What executes recorded operations again: their recipes, what a replay has to compute, and the replays.

May import: words, rules, recording, memory.
"""
