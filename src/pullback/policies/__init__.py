"""Memory policies as schedules: actions, the machine that accepts them, the simulator, their costs, one policy a file.

May import: words.
May be imported by: memory, plain, loops, transforms, sparsity, solving, testing.policies, inspect, budgets, demos, the
public faces.
"""
