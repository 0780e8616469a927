"""What executes recorded operations again: their entries, what a replay has to compute, and the replays.

May import: words, rules, recording, memory.
May be imported by: marks, inspect, exact_budget, staged_replay, plain_programs, loops, staged_marks.
"""
