"""What ``pullback_scipy.interpolate`` and ``spatial.distance`` consist of: curves through samples, and distances."""
