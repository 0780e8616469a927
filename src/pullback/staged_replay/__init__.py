"""Steps of plain code that do the same: the functions that execute them again, and what is known of them.

May import: words, backends, rules, recording, primitives.selecting, memory, shadow, statements, staging,
replay.
May be imported by: plain_programs, loops, staged_marks.
"""
