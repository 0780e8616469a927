"""Kinds of values in adopted code: classes that are asked for, by patterns and by dispatchers.

May import: recording.
"""
