"""Memory policies as schedules: actions, the machine that accepts them, the simulator, their costs, one policy a file.

May import: words, optima.
May be imported by: stores, memory, plain, loops, transforms, sparsity, solving, testing.policies, inspect, demos, the
public faces.
"""
