"""Steps under a policy: scan, fori_loop and while_loop.

May import: instruments.watching, words, rules, scheduling.machine, policies, choosing, recording, memory, loops.bodies,
loops.stepping.
"""
