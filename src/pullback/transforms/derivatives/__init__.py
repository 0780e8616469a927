"""grad, vjp, jvp and what is built on them: Jacobians, Hessians, products with them.

May import: instruments.watching, words, travelling, rules, policies, recording, memory, tracing, programs.plain,
staging.calls, transforms.nested, staging.pulls, programs.marks.
"""
