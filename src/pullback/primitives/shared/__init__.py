"""What several families of primitives use: axes, masked arithmetic, products of all but one, picked elements.

May import: words, rules, recording.
"""
