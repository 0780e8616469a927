"""Primitives that join many elements into fewer: sums, scans, folds, statistics, histograms, quantiles.

May import: words, rules, recording, primitives.shared, primitives.shaping, primitives.elementwise.
"""
