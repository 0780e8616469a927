"""Kinds of values in adopted code: classes that are asked for, numbers, iterators over elements, caches of calls.

May import: words, rules, recording, primitives.shaping, memory.
"""
