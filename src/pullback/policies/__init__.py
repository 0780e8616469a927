"""Memory policies: frozen values that give a schedule for a loop, one policy a file.

May import: words, machine, optima.
May be imported by: choosing, stores, memory, plain, loops, transforms, sparsity, solving, scaling, testing.policies,
inspect, planning, reports, demos, commands, the public faces.
"""
