"""Policies that choose another one within the run, by what is free, by a pool that threads share, or as ranks agree.

May import: words, scheduling.machine, policies.
"""
