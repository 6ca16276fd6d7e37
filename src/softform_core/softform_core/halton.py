"""Actuations from a seeded, scrambled Halton sequence: spread evenly, and a longer list begins with the shorter one."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError

Keep = Callable[[Array, Array], NDArray[np.bool_]]

_BATCH = 1024


def halton_actuations(minimum: Array, maximum: Array, count: int, seed: int, keep: Keep | None = None) -> Array:
    """Draw actuations from the working range, (n, k) Pa.

    Args:
        minimum: (k,) lowest actuation.
        maximum: (k,) highest actuation.
        count: Number n of actuations.
        seed: Scrambles the sequence.
        keep: Given (m, k) points of the unit cube and (m,) one more Halton dimension as a coin, which of them to keep;
            None keeps all.

    Raises:
        SoftformError: If `count` is not positive.
    """
    if count < 1:
        raise SoftformError(f"{count} actuations cannot be drawn.", "Ask for one at least.")
    from scipy.stats import qmc  # here, as scipy.stats takes half a second, and few nodes draw actuations

    inputs = len(minimum)
    halton = qmc.Halton(inputs + (keep is not None), scramble=True, rng=np.random.default_rng(seed))
    kept: list[Array] = []
    missing = count
    while missing > 0:
        drawn = halton.random(_BATCH)
        points = drawn[:, :inputs]
        if keep is not None:
            points = points[keep(points, drawn[:, inputs])]
        kept.append(points[:missing])
        missing -= len(kept[-1])
    return minimum + np.concatenate(kept) * (maximum - minimum)
