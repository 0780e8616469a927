"""What a gradient holds and takes: forecast from one run, measured under each policy, and both as one table.

May import: words, scheduling.machine, policies, recording, memory, instruments.watching, loops.stepping,
loops.functions, transforms.derivatives, testing.comparing, testing.gradients, instruments.inspect.
"""
