"""Reverses of stages that go on with cotangents which have come from after them, as generated functions.

May import: words, rules, recording, statements, staging.
May be imported by: staged_functions.
"""
