"""Graphs as pictures: folded where they are large, laid out, and written as SVG, Mermaid and DOT.

May import: words, scheduling.machine, recording, memory.
"""
