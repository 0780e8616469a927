"""What optimal schedules do first, as numbers: closed forms and tables of dynamic programs, which policies read.

May import: words.
"""
