"""Kinds of values in adopted code: classes that are asked for, iterators over elements, caches of calls.

May import: words, recording, primitives.shaping, memory.
"""
