"""What the best schedules do first, as numbers: closed forms and tables of dynamic programs, read by policies.

May import: words.
May be imported by: policies, memory, planning.
"""
