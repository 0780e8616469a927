"""The user's own run of marked steps, followed: what stands between two marks is compared, and computed at the next.

May import: words, rules, machine, recording, memory, shadow, statements, staging, replay, patterns, adjoints,
calls.
May be imported by: transforms, the public faces.
"""
