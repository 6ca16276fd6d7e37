"""Split of samples into training, validation and test; captured frames are split by their numbers alone."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.errors import SoftformError

TEST_SHARE = 0.3
_FEWEST_ROWS = 20
_VALIDATION_SHARE = 0.1  # of the shapes that are not tested on; left open by the paper

EVERY = 8
"""One of so many frames is held out."""
LEAST = 3
"""Fewest frames that judge; of fewer than `EVERY` frames one does, as the others are needed to learn from."""

_TURNS = (7, 3, 5, 1, 6, 2, 4, 0)
"""Remainders of frame numbers by `EVERY` that are held out, in order; later ones only if frames are few."""

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
    """Return a seeded shuffle of the rows: 70 % train, 20 % select, 10 % test (paper 001, Sec. III-D).

    Raises:
        SoftformError: If there are too few rows.
    """
    if rows < _FEWEST_ROWS:
        raise SoftformError(f"{rows} samples are too few to train, select and test.", f"Give {_FEWEST_ROWS} at least.")
    order = np.random.default_rng(seed).permutation(rows)
    train, validation = round(0.7 * rows), round(0.9 * rows)
    return Split(order[:train], order[train:validation], order[validation:])


def hold_out(
    numbers: Collection[int], used: Collection[int] = (), held_out: Collection[int] = ()
) -> tuple[list[int], list[int]]:
    """Split frames into those to train on and those to judge by; returns their numbers, rising.

    Frames that an earlier model was trained on, or judged by, keep that role: a model that goes on from it must not be
    judged by what it knows.

    Args:
        numbers: Numbers of the usable frames.
        used: An earlier model was trained on these.
        held_out: And judged by these.

    Raises:
        SoftformError: If too few frames can be held out.
    """
    free = sorted(set(numbers) - set(used) - set(held_out))
    judged = set(numbers) & set(held_out)
    least = LEAST if len(set(numbers)) >= EVERY else 1
    for turn in _TURNS:
        if turn == _TURNS[0] or len(judged) < least:
            judged |= {number for number in free if number % EVERY == turn}
    if len(judged) < least:
        raise SoftformError(
            f"Of {len(set(numbers))} frames only {len(judged)} can be held out to judge the model, {least} are needed.",
            "Collect more frames into the same store: ./softform collect with a larger --frames goes on.",
        )
    return sorted(set(numbers) - judged), sorted(judged)
