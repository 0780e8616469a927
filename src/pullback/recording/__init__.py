"""How a program becomes a tape: handles, records, views and writes, what crosses between traces, what is refused.

May import: words, rules.
"""
