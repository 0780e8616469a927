"""NumPy calls as statements: how they are written down, and others of the same bits in their place that cost less.

May import: words, backends, recording.
May be imported by: staging, accumulating_reverses, staged_replay, plain_programs, staged_marks, staged_pulls.
"""
