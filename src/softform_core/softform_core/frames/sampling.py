"""Which actuations to capture: the paper draws them at random (Sec. V-B2); ours are a seeded Halton sequence."""

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from softform_core.errors import SoftformError


def frame_actuations(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], frames: int, seed: int
) -> NDArray[np.float64]:
    """Spread actuations evenly over the working range; a longer list begins with the shorter one.

    Args:
        minimum: (k,) lowest pressures, Pa.
        maximum: (k,) highest pressures, Pa.
        frames: Number n of actuations.
        seed: Scrambles the Halton sequence.

    Returns:
        (n, k) Pa.

    Raises:
        SoftformError: If `frames` is not positive.
    """
    if frames < 1:
        raise SoftformError(f"{frames} frames cannot be collected.", "Ask for one at least.")
    halton = qmc.Halton(len(minimum), scramble=True, rng=np.random.default_rng(seed))
    return minimum + halton.random(frames) * (maximum - minimum)
