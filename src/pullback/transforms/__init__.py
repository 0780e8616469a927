"""grad, vjp, jvp and what is built on them: Jacobians, Hessians, products with them.

May import: watching, words, travelling, rules, policies, recording, memory, tracing, plain_programs, staged_functions,
nested_derivatives, staged_pulls, marks.
May be imported by: sparsity, solving, scaling, testing.gradients, testing.policies, inspect, profiling, planning,
reports, demos, commands, the public faces.
"""
