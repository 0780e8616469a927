"""Steps that repeat as straight-line functions: what a step did is written down once, compared with every later one, and
computed by text that is generated from the record of it.

May import: words, rules, recording, primitives, memory, tracing.
May be imported by: loops, transforms, inspect.
"""
