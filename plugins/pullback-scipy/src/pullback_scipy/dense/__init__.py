"""What ``pullback_scipy.linalg`` consists of: factors, solves, functions of matrices, spectra, layouts."""
