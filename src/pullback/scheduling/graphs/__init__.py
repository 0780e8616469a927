"""Chains and graphs of unequal operations: what to keep and what to compute again within a number of bytes.

May import: words.
"""
