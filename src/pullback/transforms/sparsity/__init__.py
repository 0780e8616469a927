"""Which inputs reach which outputs, element by element, and sparse Jacobians by one derivative for each colour.

May import: words, travelling, rules, policies, recording, primitives.selecting, memory, tracing,
transforms.derivatives.
"""
