"""Calls that repeat: functions that are staged, as generated functions; each is checked by a shadow run.

May import: words, rules, recording, memory, tracing, staging.
May be imported by: transforms, the public faces.
"""
