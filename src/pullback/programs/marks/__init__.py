"""Marks that a program carries: where a step begins, what is not held, which value has a name, where a gradient stops.

May import: words, travelling, rules, policies, recording, memory, instruments.watching, programs.replay,
programs.plain, staging.marks.
"""
