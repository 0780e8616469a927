"""The steps of a loop function: run, recorded, computed by generated functions, reversed, compared when run again.

May import: words, rules, scheduling.machine, policies, recording, memory, tracing, loops.bodies, staging.shadow,
staging.generated, programs.replay, programs.plain, staging.statements.
"""
