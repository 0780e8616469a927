"""``ArrayBox``, for programs that ask ``isinstance(x, ArrayBox)``: the tracer."""

from pullback.tracing.tracer import Tracer as ArrayBox

__all__ = ["ArrayBox"]
