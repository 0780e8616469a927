"""Kinds of values in adopted code: classes that are asked for, numbers, matrices, iterators over elements, caches.

May import: words, rules, recording, primitives.shaping, memory.
"""
