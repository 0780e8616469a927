"""Steps under a policy: scan, fori_loop and while_loop, marked steps, plain code that is cut by itself.

May import: words, rules, policies, recording, memory, tracing, bodies, staging.
May be imported by: transforms, solving, testing.policies, inspect, demos, the public faces.
"""
