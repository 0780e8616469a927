"""What ``pullback_scipy.sparse`` consists of: matrices whose nonzeros are traced, and solves with them."""
