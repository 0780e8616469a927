"""Generated reverses of stages that add to cotangents which later readers of their arguments have sent already.

May import: words, rules, recording, statements, staging.
May be imported by: staged_functions.
"""
