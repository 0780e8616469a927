"""Solutions of equations as one operation: roots, linear systems, differential equations; structures as vectors.

May import: words, rules, policies, recording, memory, tracing, loops.bodies, loops.functions, transforms.derivatives.
"""
