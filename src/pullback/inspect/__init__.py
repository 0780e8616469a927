"""Instruments: what a program holds, what a policy will cost, what it did cost."""
