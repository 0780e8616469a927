"""The functions that GradBench differentiates, as NumPy programs. Those with a derivative or a long loop inside know of
``pullback``, the others do not."""
