"""The user's own run of marked steps as stages: what stands between two marks is compared, and computed at the next.

May import: words, rules, scheduling, recording, memory, shadow, statements, staging, replay, staged_functions.
"""
