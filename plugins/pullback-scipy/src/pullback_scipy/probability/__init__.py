"""What ``pullback_scipy.stats`` consists of: densities of distributions, and their distribution functions."""
