"""Steps under a policy: scan, fori_loop and while_loop.

May import: words, rules, policies, recording, memory, tracing, bodies, shadow, staging, plain.
May be imported by: transforms, solving, testing.policies, inspect, demos, the public faces.
"""
