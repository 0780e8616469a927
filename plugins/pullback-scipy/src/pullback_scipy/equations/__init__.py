"""What ``pullback_scipy.optimize`` and ``integrate`` consist of: solutions, differentiated by what they depend on."""
