"""What a gradient holds and takes: forecast from one run, measured under each policy, and both as one table.

May import: words, scheduling, policies, recording, memory, watching, loop_steps, loops, transforms, testing.comparing,
testing.gradients, inspect.
"""
