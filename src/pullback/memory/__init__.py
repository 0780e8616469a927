"""What is held and what is run again: the ledger, the executor, the reverse sweep, replay, what is in force.

May import: words, rules, policies, recording, stores.
May be imported by: tracing, shadow, staging, plain, calls, loops, transforms, sparsity, solving, inspect, the public
faces.
"""
