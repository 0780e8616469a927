"""NumPy calls as statements: how they are written down, and others of the same bits in their place that cost less.

May import: backends, recording, words.
"""
