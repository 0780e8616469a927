"""What is held and what is run again: the ledger, the executor, the reverse sweep, replay, what is in force.

May import: words, rules, optima, machine, policies, choosing, recording, stores.
May be imported by: hollow, watching, tracing, replay, exact, shadow, staging, patterns, plain, calls, called, loops,
resuming, repeated, marked, transforms, sparsity, solving, scaling, pictures, inspect, planning, reports, commands,
adopting, adjoints, the public faces.
"""
