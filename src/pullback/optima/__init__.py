"""What the best schedules do first, as numbers: tables of dynamic programs, made by NumPy and read by policies.

May import: NumPy alone.
May be imported by: policies.
"""
