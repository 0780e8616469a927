"""Graphs as pictures: folded where they are large, laid out, and written as SVG, Mermaid and DOT.

May import: words, machine, recording, memory.
May be imported by: inspect, commands.
"""
