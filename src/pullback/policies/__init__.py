"""Memory policies: frozen values that give a schedule for a loop, one policy a file.

May import: words, scheduling, optimal_schedules.
May be imported by: choosing, stores, memory, plain_programs, loops, marks, transforms, sparsity, solving, scaling,
testing.policies, inspect, profiling, planning, reports, demos, commands, the public faces.
"""
