"""Plain programs under a policy: marked steps, programs that are cut by themselves, and how they are executed again.

May import: words, backends, rules, machine, policies, choosing, recording, primitives.selecting, memory, shadow,
statements, staging, replay, patterns, exact.
May be imported by: inspect, loops, transforms.
"""
