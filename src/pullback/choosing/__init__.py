"""Policies that choose another one within the run: from what is free, or from a pool that threads share.

May import: words, machine, policies.
May be imported by: memory, plain, loops, planning, commands, the public faces.
"""
