"""Plain programs under a policy: marked steps, programs that are cut by themselves, and how they are executed again.

May import: words, rules, scheduling, policies, choosing, recording, memory, replay, staged_replay, exact_budget.
"""
