"""Plain programs under a policy: marked steps, programs that are cut by themselves, and how they are executed again.

May import: words, rules, scheduling.machine, policies, choosing, recording, memory, programs.replay, staging.replay,
programs.exact_budget.
"""
