"""Runs that were killed, taken up where they stood: the journal of a loop, its files, what it is compared by.

May import: words, rules, scheduling.machine, recording, loops.bodies, stores, memory, loops.stepping.
"""
