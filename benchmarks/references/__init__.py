"""Handwritten NumPy that the benchmarks measure the library against; nothing here imports the library."""
