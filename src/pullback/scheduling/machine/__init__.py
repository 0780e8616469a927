"""Schedules: actions, the state machine that accepts them, the simulator that counts them, the diagram.

May import: words.
"""
