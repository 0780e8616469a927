"""What everything speaks: exceptions, array specs, digests, structures, byte sizes, call sites, entry points.

May import: NumPy, attrs, optree and xxhash alone.
"""
