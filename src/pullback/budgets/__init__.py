"""Budgets: the policy that holds what a number of bytes allows, and the dynamic program behind it.

May import: policies, words.
May be imported by: the public faces.
"""
