"""Arrays that have a shape and a dtype and no values: with them a program is planned from shapes alone.

May import: words, memory.
"""
