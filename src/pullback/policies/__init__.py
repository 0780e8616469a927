"""Memory policies: frozen values that give a schedule for a loop, one policy a file.

May import: words, scheduling.machine, scheduling.optimal.
"""
