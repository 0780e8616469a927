"""What the checkers compare with: bits, differences, the faults they list, structures of numbers.

May import: words.
May be imported by: testing.gradients, testing.primitives, testing.policies, profiling, the public faces.
"""
