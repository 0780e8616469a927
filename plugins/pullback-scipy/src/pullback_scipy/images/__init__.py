"""What ``pullback_scipy.ndimage`` consists of: filters as correlations, and splines at coordinates."""
