"""A primitive that gives something else in each call."""

import pullback as pb


def drifting_primitive():
    """``x`` times 2, 3, 4 ..., by the number of the call."""
    state = [1.0]

    def drifting(x):
        state[0] += 1.0
        return x * state[0]

    drift = pb.primitive(drifting)
    drift.vjp("x", fn=lambda ct: ct)
    return drift
