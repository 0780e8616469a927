"""Checks of one primitive: what its rules return, read and leave alone, and their second order.

May import: words, rules, testing.comparing, testing.gradients.
"""
