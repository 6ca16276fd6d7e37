"""A path as waypoints with times, dense enough that what happens between two of them can be neglected."""

from dataclasses import dataclass

import numpy as np

from softform_core.arrays import Array
from softform_core.inverse.timing import slew_durations
from softform_core.planning.surface_margins import MarginedSurface

_SAMPLES = 17
_RESERVE = 0.9  # between the samples the surface may move a little faster


@dataclass(frozen=True)
class Trajectory:
    """Waypoints (n, k), the start first, and their times, (n,) s after the start."""

    actuations: Array
    times: Array


def trajectory_along(path: Array, surface: MarginedSurface, slew_rate: Array, spacing_mm: float) -> Trajectory:
    """Waypoints, at most so many mm apart, of straight motions between corners (n, k), as fast as possible."""
    pieces = [path[:1]]
    for start, end in zip(path[:-1], path[1:], strict=True):
        places = np.linspace(0.0, 1.0, _SAMPLES)
        moved = surface.pipeline.points(start + places[:, None] * (end - start))
        ways = np.linalg.norm(np.diff(moved, axis=0), axis=2).max(axis=1)
        gone = np.concatenate([[0.0], np.cumsum(ways)])
        steps = max(1, int(np.ceil(gone[-1] / (_RESERVE * spacing_mm))))
        even = np.interp(np.linspace(0.0, gone[-1], steps + 1)[1:], gone, places)
        pieces.append(start + even[:, None] * (end - start))
    actuations = np.concatenate(pieces)
    legs = slew_durations(actuations[0], actuations[1:], slew_rate)
    # A leg on which nothing moves: two waypoints at one place and one moment.
    moving = np.concatenate([[True], legs > 0.0])
    times = np.concatenate([[0.0], np.cumsum(legs)])
    return Trajectory(actuations[moving], times[moving])
