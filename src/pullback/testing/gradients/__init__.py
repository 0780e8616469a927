"""Checks of the gradient of a function: against differences, against forward mode, by a Taylor test.

May import: words, transforms.derivatives, testing.comparing.
"""
