"""Schedules: actions, the state machine that accepts them, the simulator that counts them, the diagram.

May import: words.
May be imported by: watching, policies, choosing, memory, plain_programs, staged_marks, loops, resuming, pictures,
testing.policies, profiling, planning, the public faces.
"""
