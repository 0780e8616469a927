"""Loops over a function of a step, under a policy."""
