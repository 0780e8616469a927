"""``ArrayBox``, for programs that ask ``isinstance(x, ArrayBox)``: the tracer."""

from pullback import Tracer as ArrayBox

__all__ = ["ArrayBox"]
