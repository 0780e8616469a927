"""The logarithm of a sum of exponentials."""

from typing import Any

import numpy as np


def logsumexp(x: Any) -> Any:
    top = np.max(x)
    return top + np.log(np.sum(np.exp(x - top)))
