"""Derivatives of a function: first ones, derivatives of derivatives, sparse ones."""
