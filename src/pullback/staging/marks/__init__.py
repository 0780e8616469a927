"""The user's own run of marked steps as stages: what stands between two marks is compared, and computed at the next.

May import: words, rules, scheduling.machine, recording, memory, staging.shadow, staging.statements, staging.generated,
programs.replay, staging.calls.
"""
