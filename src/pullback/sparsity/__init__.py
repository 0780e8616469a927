"""Which inputs reach which outputs, and sparse Jacobians from few sweeps: sets of names for tangents, colourings.

May import: words, rules, recording, primitives.selecting, memory, tracing, transforms.
May be imported by: inspect, the public faces.
"""
