"""The first evaluation, which shows that a tool speaks the protocol."""

from typing import Any


def square(x: Any) -> Any:
    return x * x
