"""What goes to another process: functions that transforms have made, and primitives, by pickle.

May import: words.
"""
