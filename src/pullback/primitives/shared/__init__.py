"""What several families of primitives use: axes, masked arithmetic, products of all but one, picked elements.

May import: words, rules, recording.
May be imported by: primitives.shaping, primitives.elementwise, primitives.reducing, primitives.selecting,
primitives.curves, adopted_loops, the public faces.
"""
