"""Kinds of values in adopted code: classes that are asked for, and NumPy's other kinds of arrays and iterators.

May import: words, recording.
"""
