"""Loops of adopted code over numbers and slices, whose reverse is generated from their text: one record each.

May import: words, rules, primitives.shared, recording, memory.
"""
