"""Where the steps of a trace begin that holds all of them."""

from attrs import define


@define(eq=False)
class MarkedSteps:
    """Steps of a trace that holds all of them, as they were marked."""

    cuts: list[int]
    """The first record of each; at last, where they end."""
    staging: str
    threads: int
