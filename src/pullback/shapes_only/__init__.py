"""Arrays that have a shape and a dtype and no values: what a program is planned on from shapes alone.

May import: words, memory.
May be imported by: inspect, planning, commands, the public faces.
"""
