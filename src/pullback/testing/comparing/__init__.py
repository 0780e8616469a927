"""What the checkers compare with: bits, differences, the faults they list, structures of numbers.

May import: words.
"""
