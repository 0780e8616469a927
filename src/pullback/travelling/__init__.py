"""What goes to another process: functions that transforms have made, and primitives, by pickle.

May import: words.
May be imported by: rules, bodies, staged_functions, marks, transforms, sparsity, the public faces.
"""
