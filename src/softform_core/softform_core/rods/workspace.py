"""The workspace's width, by which all errors of paper 001 are measured."""

import numpy as np
from numpy.typing import NDArray


def workspace_width(tips: NDArray[np.float64]) -> float:
    """The smaller of the extents along x and y of the tips (s, n) that a robot reaches; in their unit.

    The paper does not define it, and its numbers do not agree on one; this is the strictest reading.
    """
    return float(np.ptp(tips[:, :2], axis=0).min())
