"""Plain programs under a policy: marked steps, programs that are cut by themselves, and how they are executed again.

May import: words, backends, rules, scheduling, policies, choosing, recording, primitives.selecting, memory, shadow,
statements, staging, replay, staged_replay, exact_budget.
May be imported by: inspect, loops, transforms.
"""
