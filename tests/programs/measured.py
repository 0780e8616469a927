"""The most bytes that a call takes, as tracemalloc sees them."""

import gc
import tracemalloc


def peak_of(call, *args, **options):
    """What ``call(*args, **options)`` returns, and the most bytes that were taken meanwhile."""
    gc.collect()
    tracemalloc.start()
    try:
        return call(*args, **options), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
