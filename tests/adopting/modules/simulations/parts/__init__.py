"""A package beside the simulations."""
