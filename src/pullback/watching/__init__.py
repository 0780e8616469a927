"""What clocks say of a run: the seconds of its phases, and how far it is.

May import: words, scheduling, memory.
May be imported by: loops, marks, transforms, profiling, planning, reports, demos, commands.
"""
