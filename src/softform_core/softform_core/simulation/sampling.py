"""Which actuations to simulate.

Paper 000 (Sec. V-B1) simulates all 2^m corners of the box of actuations, and Halton samples which it resamples "by the
amount of chamber inflation". How, it leaves open. Our choice: a Halton point is kept with probability r^3, where r is
its mean distance from rest, each degree of freedom counted in its largest; large shapes move most with the actuation
and carry the largest errors. The coin is one more Halton dimension, so a longer list of samples begins with the shorter
one, and a store can grow. Where the corners are more than the samples, half of the samples are corners, drawn at
random.

Paper 001 (Sec. III-B) simulates a uniform grid.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.halton import halton_actuations
from softform_core.robots import Robot

__all__ = ["Sampling", "grid", "inflations"]

INFLATION_POWER = 3.0


@dataclass(frozen=True)
class Sampling:
    """Actuations and how they were chosen.

    Attributes:
        actuations: (n, m).
        settings: Settings that must be equal for a store to be continued.
        attributes: Attributes of the store: the settings and more.
        remark: Remark for the user; empty if there is none.
    """

    actuations: Array
    settings: dict[str, int]
    attributes: dict[str, object]
    remark: str = ""


def inflations(robot: Robot, samples: int, seed: int = 0) -> Sampling:
    """Corners and Halton samples of a robot's range, as paper 000.

    Raises:
        SoftformError: If `samples` is not positive.
    """
    low, high = robot.actuation_min, robot.actuation_max
    actuations = sample_actuations(low, high, samples, seed, robot.rest_actuation)
    corners = int(((actuations == low) | (actuations == high)).all(axis=1).sum())
    remark = ""
    if samples < 2 ** len(low):
        remark = (
            f"{corners} of the {2 ** len(low)} combinations of lowest and highest values are simulated, drawn at "
            "random; --samples of that number includes them all."
        )
    settings = {"seed": seed}
    return Sampling(actuations, settings, {"strategy": "corners and Halton", **settings, "n_corners": corners}, remark)


def grid(robot: Robot, segments: int) -> Sampling:
    """The uniform grid of N values of each degree of freedom, as paper 001.

    Raises:
        SoftformError: If there are fewer than two.
    """
    settings = {"segments": segments}
    actuations = grid_actuations(robot.actuation_min, robot.actuation_max, segments)
    return Sampling(actuations, settings, {"strategy": "grid", **settings})


def grid_actuations(minimum: Array, maximum: Array, segments: int) -> Array:
    """All combinations of N = `segments` values between `minimum` (m,) and `maximum` (m,), (N^m, m).

    Raises:
        SoftformError: If there are fewer than two.
    """
    if segments < 2:
        raise SoftformError(f"{segments} values of an actuation span no range.", "Give two at least.")
    axes = [np.linspace(*ends, segments) for ends in zip(minimum, maximum, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def corner_actuations(minimum: Array, maximum: Array) -> Array:
    """All corners of the box of actuations, (2^m, m); the first has every value at its minimum."""
    choices = np.array(list(itertools.product([False, True], repeat=len(minimum))))
    return np.where(choices, maximum, minimum)


def sample_actuations(minimum: Array, maximum: Array, samples: int, seed: int, rest: Array | None = None) -> Array:
    """Corners, then Halton samples drawn towards large inflation, (n, m).

    Args:
        minimum: (m,) lowest values.
        maximum: (m,) highest values.
        samples: Number n of actuations; below 2^m, half of them are corners.
        seed: Seed of the Halton sequence, and of the corners if they are drawn.
        rest: (m,) where the robot is at rest; by default zero, or what is nearest to it in the range.

    Raises:
        SoftformError: If `samples` is not positive.
    """
    if samples < 1:
        raise SoftformError(f"{samples} samples cannot be simulated.", "Ask for one at least.")
    if samples < 2 ** len(minimum):
        corners = _some_corners(minimum, maximum, (samples + 1) // 2, seed)
    else:
        corners = corner_actuations(minimum, maximum)
    if samples == len(corners):
        return corners
    still = ((np.clip(0.0, minimum, maximum) if rest is None else rest) - minimum) / (maximum - minimum)
    furthest = np.maximum(still, 1.0 - still)

    def large(points: Array, coin: Array) -> NDArray[np.bool_]:
        return np.asarray(coin < (np.abs(points - still) / furthest).mean(axis=1) ** INFLATION_POWER)

    drawn = halton_actuations(minimum, maximum, samples - len(corners), seed, large)
    return np.concatenate([corners, drawn])


def _some_corners(minimum: Array, maximum: Array, count: int, seed: int) -> Array:
    """Different corners at random, (count, m), of at least twice as many."""
    rng = np.random.default_rng(seed)
    choices = np.unique(rng.integers(0, 2, (8 * count + 64, len(minimum))), axis=0).astype(bool)
    return np.where(rng.permutation(choices)[:count], maximum, minimum)
