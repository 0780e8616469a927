"""What is held and what is run again: the ledger, the store, the executor, the reverse sweep, what is in force.

May import: words, rules, scheduling.optimal, scheduling.machine, policies, choosing, recording, stores.
"""
