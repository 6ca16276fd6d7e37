"""Which actuations to simulate (paper 000, Sec. V-B1).

The paper simulates all 2^k corners of the pressure box, and Halton samples which it resamples "by the amount of chamber
inflation". How, it leaves open. Our choice: a Halton point is kept with probability (mean relative pressure)^3, since
large shapes move most with the pressures and carry the largest errors. The coin is one more Halton dimension, so a
longer list of samples begins with the shorter one, and a store can grow.
"""

import itertools

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError
from softform_core.halton import halton_actuations

INFLATION_POWER = 3.0


def corner_actuations(minimum: NDArray[np.float64], maximum: NDArray[np.float64]) -> NDArray[np.float64]:
    """All corners of the pressure box, (2^k, k) Pa; the first has every chamber at its minimum."""
    choices = np.array(list(itertools.product([False, True], repeat=len(minimum))))
    return np.where(choices, maximum, minimum)


def sample_actuations(
    minimum: NDArray[np.float64], maximum: NDArray[np.float64], samples: int, seed: int
) -> NDArray[np.float64]:
    """Corners, then Halton samples drawn towards large inflation.

    Args:
        minimum: (k,) lowest pressures, Pa.
        maximum: (k,) highest pressures, Pa.
        samples: Number n of actuations; if below 2^k, the first n corners of a seeded shuffle.
        seed: Scrambles the Halton sequence.

    Returns:
        (n, k) Pa.

    Raises:
        SoftformError: If `samples` is not positive.
    """
    if samples < 1:
        raise SoftformError(f"{samples} samples cannot be simulated.", "Ask for one at least.")
    corners = corner_actuations(minimum, maximum)
    if samples < len(corners):
        return corners[np.random.default_rng(seed).permutation(len(corners))[:samples]]
    if samples == len(corners):
        return corners
    drawn = halton_actuations(minimum, maximum, samples - len(corners), seed, _large_inflations)
    return np.concatenate([corners, drawn])


def _large_inflations(points: NDArray[np.float64], coin: NDArray[np.float64]) -> NDArray[np.bool_]:
    return coin < points.mean(axis=1) ** INFLATION_POWER
