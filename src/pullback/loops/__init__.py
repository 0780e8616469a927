"""Steps under a policy: scan, fori_loop and while_loop.

May import: watching, words, rules, scheduling, policies, choosing, recording, memory, bodies, loop_steps.
"""
