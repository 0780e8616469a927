"""Functions that are staged: calls of them that repeat are generated functions, one record each.

May import: words, travelling, rules, recording, memory, tracing, staging.shadow, staging.generated, continued_sums,
loops.bodies.
"""
