"""Labels that cannot be right: markers exchanged, renamed or jumped, found before anything is learned from them.

A frame's markers are compared with the simulated positions of the same markers at the same actuation. Simulation and
reality mostly differ by less than the distance between markers, and everywhere by nearly as much as beside it, so the
simulated shape tells which label is which.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from softform_core.arrays import Array
from softform_core.errors import SoftformError
from softform_core.frames.frames import MarkerFrames
from softform_core.registration.marker_motion import exchanged_markers, neighbours_motion

_LEAST_JUMP = 0.06
"""Least jump: difference of two neighbours' gaps to the simulation, over the size of the set of markers."""
_JUMP_SPREAD = 8.0
"""Least jump in robust standard deviations of such differences."""
_ELSEWHERE = 0.25
"""Median distance to the simulated markers, over that size, beyond which a frame is not of this robot."""
_FEW = 0.1
"""Share of the markers above which more seem exchanged: then labels are shifted, and neighbours tell nothing."""
_NAMED_FAULTS = 5


@dataclass(frozen=True)
class MarkerFault:
    """A sentence on what is wrong with a frame, with its number and the indices of the markers."""

    frame: int
    markers: tuple[int, ...]
    reason: str


def marker_faults(frames: MarkerFrames, expected: Array) -> list[MarkerFault]:
    """Return frames whose labels cannot be right, by the same markers on the simulated shapes, (n, M, 3) m."""
    size = float(np.ptp(expected.reshape(-1, 3), axis=0).max())
    residual = frames.positions - expected
    # The gap between simulation and reality is smooth; a jump of one marker is not.
    gap = neighbours_motion(residual, frames.uv)
    departure = np.linalg.norm(residual - gap, axis=2)
    seen = departure[np.isfinite(departure)]
    spread = 1.48 * float(np.median(seen)) if len(seen) else 0.0
    furthest = max(_LEAST_JUMP * size, _JUMP_SPREAD * spread)
    faults = []
    for number, visible in enumerate(frames.visible):
        distance = np.linalg.norm(residual[number, visible], axis=1)
        if np.median(distance) > _ELSEWHERE * size:
            reason = f"its markers lie {np.median(distance):.3f} m from the robot"
            faults.append(MarkerFault(number, tuple(np.flatnonzero(visible)), reason))
            continue
        exchanged = exchanged_markers(frames.positions[number], expected[number])
        if len(exchanged) < _FEW * len(visible):
            # Where the gap is as large as the distance between markers, one lies where its neighbour is expected.
            beside_gap = exchanged_markers(frames.positions[number], expected[number] + gap[number])
            exchanged = np.intersect1d(exchanged, beside_gap)
        if len(exchanged):
            reason = f"markers {_names(frames, exchanged)} seem to be exchanged"
            faults.append(MarkerFault(number, tuple(exchanged), reason))
            continue
        jumped = np.flatnonzero(departure[number] > furthest)
        if len(jumped):
            reason = f"marker {_names(frames, jumped)} is {departure[number, jumped].max():.3f} m off its neighbours"
            faults.append(MarkerFault(number, tuple(jumped), reason))
    return faults


def check_markers(frames: MarkerFrames, expected: Array) -> None:
    """Raise a `SoftformError` that names frames and markers of `marker_faults`, if there are any."""
    faults = marker_faults(frames, expected)
    if faults:
        named = "; ".join(f"frame {fault.frame}: {fault.reason}" for fault in faults[:_NAMED_FAULTS])
        more = f"; and {len(faults) - _NAMED_FAULTS} more frames" if len(faults) > _NAMED_FAULTS else ""
        raise SoftformError(
            f"Markers cannot be where they are said to be: {named}{more}.",
            "Correct the labels in the capture system, or leave these frames out.",
        )


def _names(frames: MarkerFrames, indices: NDArray[np.int64]) -> str:
    return ", ".join(frames.names[index] for index in indices)
