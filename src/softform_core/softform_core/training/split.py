"""Which samples train, which select, which test."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TEST_SHARE = 0.3
_VALIDATION_SHARE = 0.1  # of the shapes that are not tested on; left open by the paper

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Indices of the samples in each part."""

    train: Indices
    validation: Indices
    test: Indices


def split_shapes(orbit: NDArray[np.int64], seed: int) -> Split:
    """Split 7:3 (paper 000, Sec. V-B1) by orbits (n,): no test shape is the mirror image of a training shape."""
    shuffled = np.random.default_rng(seed).permutation(orbit.max() + 1)
    order = np.argsort(shuffled[orbit], kind="stable")
    place = shuffled[orbit][order]

    def cut(share: float) -> int:
        # A border never falls within an orbit.
        return int(np.searchsorted(place, place[min(len(order) - 1, round(share * len(order)))]))

    tested_from = cut(1.0 - TEST_SHARE)
    validated_from = cut((1.0 - TEST_SHARE) * (1.0 - _VALIDATION_SHARE))
    return Split(order[:validated_from], order[validated_from:tested_from], order[tested_from:])


def split_rows(rows: int, seed: int) -> Split:
    """A seeded shuffle of the rows: 70 % train, 20 % select, 10 % test (paper 001, Sec. III-D)."""
    order = np.random.default_rng(seed).permutation(rows)
    train, validation = round(0.7 * rows), round(0.9 * rows)
    return Split(order[:train], order[train:validation], order[validation:])
