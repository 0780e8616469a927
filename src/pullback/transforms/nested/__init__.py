"""Derivatives that are asked for again and again within a trace, or of functions made anew: one record, no body runs.

May import: words, recording, memory, tracing, staging.shadow, staging.generated, loops.bodies, staging.calls.
"""
