"""The steps of a loop function: run, recorded, computed by generated functions, reversed, compared when run again.

May import: words, rules, scheduling, policies, recording, memory, tracing, bodies, shadow, staging, replay,
plain_programs, statements.
"""
