"""What a primitive declares: declaration, catalogue, record layouts, generated code, a cotangent brought to its primal.

May import: words, travelling.
"""
