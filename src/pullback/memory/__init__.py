"""What is held and what is run again: the ledger, the store, the executor, the reverse sweep, what is in force.

May import: words, rules, optimal_schedules, scheduling, policies, choosing, recording, stores.
May be imported by: shapes_only, watching, tracing, replay, exact_budget, shadow, staging, staged_replay,
plain_programs, staged_functions, nested_derivatives, loops, resuming, staged_pulls, staged_marks, marks, transforms,
sparsity, solving, scaling, pictures, inspect, profiling, planning, commands, adopting, adopted_loops, the public faces.
"""
