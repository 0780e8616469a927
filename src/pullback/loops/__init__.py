"""Steps under a policy: scan, fori_loop and while_loop.

May import: watching, words, rules, machine, policies, choosing, recording, memory, tracing, bodies, shadow, staging,
replay, patterns, plain.
May be imported by: resuming, transforms, solving, testing.policies, inspect, planning, demos, the public faces.
"""
