"""grad, vjp, jvp and what is built on them: Jacobians, Hessians, products with them.

May import: watching, words, travelling, rules, policies, recording, memory, tracing, plain_programs, staged_functions,
nested_derivatives, staged_pulls, marks.
"""
