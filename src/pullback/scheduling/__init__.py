"""Schedules, as numbers and actions: what accepts and counts them, and what is optimal for loops, chains and graphs."""
