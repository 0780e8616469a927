"""Conformance cases of np.unwrap."""

import numpy as np
from tests.primitives.case import Case

BOTH = ("float32", "float64")
ANGLES = np.array([[0.1, 2.9, -2.8, 0.43, -3.0], [1.0, -2.5, 2.6, 2.75, -0.3]])
PHASES: tuple[Case, ...] = (
    Case("unwrap", np.unwrap, (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case("unwrap axis", lambda p: np.unwrap(p, axis=0), (ANGLES,), ("unwrap", "unwrapped")),
    Case("unwrap discont", lambda p: np.unwrap(p, 5.5, -1), (ANGLES,), ("unwrap", "unwrapped")),
    Case("unwrap period", lambda p: np.unwrap(p, period=2.0), (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case("unwrap, integer period", lambda p: np.unwrap(p, period=3), (ANGLES,), ("unwrap", "unwrapped"), dtypes=BOTH),
    Case(
        "unwrap, traced period",
        lambda p, t: np.unwrap(p, period=t),
        (ANGLES, np.array(2.3)),
        ("unwrap", "unwrapped"),
        dtypes=BOTH,
    ),
    Case("unwrap of nothing", np.unwrap, (np.zeros((2, 0)),), ("unwrap", "unwrapped")),
    Case(
        "unwrap half a period", np.unwrap, (np.array([0.0, np.pi, 0.0, -np.pi]),), ("unwrap", "unwrapped"), rough="jump"
    ),
)


CASES: tuple[Case, ...] = (*PHASES,)
