"""The parts of ``bench_policies.py``: the same programs under policies and under what other libraries have."""
