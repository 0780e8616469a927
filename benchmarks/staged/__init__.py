"""The parts of ``bench_staging.py``: loops, programs, derivatives, and whole runs in processes of their own.

Every row of every part has the same columns: the work, the candidate, microseconds a step or a call, the ratio ``x``
to the candidate named under ``over``, and a note. What cannot be measured here has a row that says what is missing.
"""
