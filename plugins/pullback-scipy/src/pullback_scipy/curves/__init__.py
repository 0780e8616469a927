"""What ``pullback_scipy.interpolate`` consists of: curves through samples."""
