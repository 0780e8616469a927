"""Programs that show the library at work; ``pullback demo`` runs them."""
