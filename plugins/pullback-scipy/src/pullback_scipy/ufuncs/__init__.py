"""The universal functions of scipy.special, one line each, by family; they serve a plain ``import scipy.special``."""
